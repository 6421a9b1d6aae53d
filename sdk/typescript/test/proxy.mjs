// A small reverse proxy between a client and a server, which can lose answers and cut connections.
//
// The server heeds only requests whose `Host`, and `Origin` where a browser gives one, are its own: it has no CORS, on purpose. So both are rewritten here.
// For the test in a browser this also serves the page, which thereby reaches the server from its own origin.
import { createServer, request as send } from "node:http";
import { once } from "node:events";

export async function startProxy(t, server) {
  const proxy = new Proxy(server);
  await proxy.listen();
  t.after(() => proxy.close());
  return proxy;
}

class Proxy {
  constructor(server) {
    this.server = server;
    /** What came: the path and the headers of each request. */
    this.requests = [];
    /** Paths that are answered here: a function that gives [type, body]. */
    this.pages = new Map();
    /** What is answered here in the server's stead, first to last: a status, a type and a text. */
    this.answers = [];
    /** Bytes of the next stream after which its connection is cut; once. */
    this.cutAfter = undefined;
    /** How many answers of requests that change something are lost: done by the server, and never heard of. */
    this.losesAnswers = 0;
    /** Whether nobody gets through. */
    this.isDown = false;
    /** Streams that are open. */
    this.streams = 0;
    this.http = createServer((incoming, outgoing) => this.take(incoming, outgoing));
  }

  async listen() {
    this.http.listen(0, "127.0.0.1");
    await once(this.http, "listening");
    this.url = `http://127.0.0.1:${this.http.address().port}`;
  }

  async close() {
    this.http.close();
    this.cut();
    await once(this.http, "close").catch(() => undefined);
  }

  /** Cuts every connection, in the middle of whatever it carries. */
  cut() {
    this.http.closeAllConnections();
  }

  /** Cuts every connection, and takes no other. */
  goDown() {
    this.isDown = true;
    this.cut();
  }

  async take(incoming, outgoing) {
    if (this.isDown) return outgoing.destroy();
    const { method, url, headers } = incoming;
    const page = this.pages.get(url.split("?")[0]);
    if (page) {
      const chunks = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const [type, body] = page(Buffer.concat(chunks).toString());
      outgoing.writeHead(200, { "content-type": type }).end(body);
      return;
    }
    this.requests.push({ method, url, headers });
    const own = this.answers.shift();
    if (own) {
      const [status, type, text] = own;
      outgoing.writeHead(status, { "content-type": type }).end(text);
      return;
    }
    const target = new URL(this.server.url);
    const rewritten = { ...headers, host: target.host };
    if (headers.origin) rewritten.origin = target.origin;
    const forwarded = send(new URL(url, target), { method, headers: rewritten, agent: false }, (answer) => {
      if (method !== "GET" && this.losesAnswers > 0) {
        this.losesAnswers -= 1;
        answer.resume().on("end", () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode, answer.headers);
      const isStream = (answer.headers["content-type"] ?? "").startsWith("text/event-stream");
      if (isStream) {
        this.streams += 1;
        outgoing.on("close", () => (this.streams -= 1));
        outgoing.flushHeaders();
      }
      if (isStream && this.cutAfter !== undefined) this.cutLater(answer, outgoing);
      else answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }

  cutLater(answer, outgoing) {
    let left = this.cutAfter;
    this.cutAfter = undefined;
    answer.on("data", (chunk) => {
      if (left <= 0) return;
      const kept = chunk.subarray(0, left);
      left -= kept.length;
      // What is before the cut is on its way before the connection is gone.
      outgoing.write(kept, () => left <= 0 && outgoing.destroy());
    });
    answer.on("end", () => left > 0 && outgoing.end());
  }
}

/** An answer that is a problem document. */
export function problem(status, code) {
  return [status, "application/problem+json", JSON.stringify({ code, title: "no", status })];
}
