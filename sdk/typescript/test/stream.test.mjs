// The ledger's stream: what there is, what comes, and everything that may happen to a connection.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { BatonError, Client, ConnectionError } from "../dist/index.js";
import { test } from "./deadline.mjs";
import { problem, startProxy } from "./proxy.mjs";
import { deferred, startServer } from "./server.mjs";

const QUICK = { retry: { firstMs: 5, maxMs: 50 } };

/** A server with a proxy before it, a client by each way, and `n` tasks. */
async function setUp(t, n = 0) {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const direct = () => new Client({ url: server.url, token: server.token });
  for (let i = 1; i <= n; i += 1) await direct().createTask({ title: `Task ${i}` });
  return { server, proxy, direct, client: new Client({ url: proxy.url, token: server.token }) };
}

/** Follows until a record is what is waited for; gives all positions. */
async function collect(stream, isLast) {
  const positions = [];
  for await (const record of stream) {
    positions.push(record.pos);
    if (await isLast(record)) break;
  }
  return positions;
}

const upTo = (n) => Array.from({ length: n }, (_, index) => index + 1);
const lastEventIds = (proxy) => proxy.requests.filter(({ url }) => url.startsWith("/v1/events")).map(({ headers }) => headers["last-event-id"]);

/** The position of the last record. */
async function endOf(client) {
  let end = 0;
  for await (const record of client.followEvents({ follow: false })) end = record.pos;
  return end;
}

test("what there is comes first, then what is added, and a stream that does not follow ends", async (t) => {
  const { direct } = await setUp(t, 3);
  const end = await endOf(direct());
  assert.ok(end >= 7);
  const statuses = [];
  let last;
  const positions = await collect(direct().followEvents({}, {
    onStatus: (status) => {
      statuses.push(status);
      if (status.type === "live") last = direct().createTask({ title: "Later" });
    },
  }), async (record) => record.type === "task.created" && record.payload.title === "Later");
  await last;
  assert.deepEqual(positions, upTo(positions.length));
  assert.ok(positions.length > end);
  assert.deepEqual(statuses, [{ type: "open", after: undefined }, { type: "live", position: end }]);
});

test("a stream may begin at a position, and be of some types or of one task", async (t) => {
  const { direct } = await setUp(t, 3);
  const end = await endOf(direct());
  const one = { follow: false };
  const from = async (query, options) => collect(direct().followEvents({ ...one, ...query }, options), () => false);
  assert.deepEqual(await from({ since: end - 2 }), [end - 1, end]);
  assert.deepEqual(await from({}, { after: end - 1 }), [end]);
  const created = [];
  for await (const record of direct().followEvents({ ...one, type: ["task.created"] })) created.push(record.payload.title);
  assert.deepEqual(created, ["Task 1", "Task 2", "Task 3"]);
  const [{ id }] = (await direct().listTasks({ limit: 1 })).tasks;
  for await (const record of direct().followEvents({ ...one, task: id })) assert.equal(record.task, id);
});

test("a connection that is cut anywhere in the middle costs nothing and repeats nothing", async (t) => {
  const { proxy, client } = await setUp(t, 4);
  const end = await endOf(client);
  // One cut after the other: before, inside and between events.
  for (const bytes of [1, 7, 400, 701, 1024, 2222, 3000]) {
    proxy.requests = [];
    proxy.cutAfter = bytes;
    const positions = await collect(client.followEvents({ follow: false }, QUICK), () => false);
    assert.deepEqual(positions, upTo(end), `cut after ${bytes} bytes`);
    const ids = lastEventIds(proxy);
    assert.equal(ids.length, 2, `cut after ${bytes} bytes`);
    assert.equal(ids[0], undefined);
  }
  assert.ok(lastEventIds(proxy)[1] > 0, "it went on, and did not begin again");
});

test("a connection that is cut while it follows goes on where it was", async (t) => {
  const { proxy, client, direct } = await setUp(t, 1);
  let rounds = 0;
  const positions = await collect(client.followEvents({}, {
    ...QUICK,
    onStatus: (status) => {
      if (status.type !== "live") return;
      rounds += 1;
      // Something happens while nobody is connected.
      if (rounds <= 5) proxy.cut();
      void direct().createTask({ title: rounds <= 5 ? "Meanwhile" : "Last" });
    },
  }), (record) => record.payload.title === "Last" && record.type === "task.created");
  assert.deepEqual(positions, upTo(positions.length));
  assert.equal(rounds, 6);
});

test("a server that is killed and comes back is followed on", async (t) => {
  const { server, client, direct } = await setUp(t, 2);
  const waiting = deferred();
  let lives = 0;
  let stopped;
  const following = collect(client.followEvents({}, {
    ...QUICK,
    onStatus: (status) => {
      if (status.type === "live" && (lives += 1) === 1) stopped = server.stop("SIGKILL");
      if (status.type === "waiting" && status.failures >= 3) waiting.resolve();
    },
  }), (record) => record.type === "task.created" && record.payload.title === "After");
  await waiting.promise;
  // Connections are gone before the process is, and with it the lock.
  await stopped;
  await server.start();
  await direct().createTask({ title: "After" });
  const positions = await following;
  assert.deepEqual(positions, upTo(positions.length));
});

test("a server that ends properly says so, and is followed on when it is back", async (t) => {
  const { server, client, direct } = await setUp(t, 1);
  let lives = 0;
  const following = collect(client.followEvents({ type: ["task.created"] }, {
    ...QUICK,
    onStatus: (status) => {
      if (status.type === "live" && (lives += 1) === 1) {
        void server.stop("SIGTERM").then(() => server.start()).then(() => direct().createTask({ title: "After" }));
      }
    },
  }), (record) => record.payload.title === "After");
  assert.equal((await following).length, 2);
});

test("an abort ends a stream, whether it reads, waits or has not begun", async (t) => {
  const { server, direct, client } = await setUp(t, 1);
  const abort = new AbortController();
  const reading = collect(direct().followEvents({}, { signal: abort.signal, onStatus: ({ type }) => type === "live" && setImmediate(() => abort.abort()) }), () => false);
  await assert.rejects(reading, { name: "AbortError" });
  await assert.rejects(collect(direct().followEvents({}, { signal: abort.signal }), () => false), { name: "AbortError" });
  await server.stop("SIGKILL");
  const waits = new AbortController();
  const waiting = collect(client.followEvents({}, {
    signal: waits.signal,
    retry: { firstMs: 600_000, maxMs: 600_000 },
    onStatus: ({ type }) => type === "waiting" && setImmediate(() => waits.abort(new Error("enough"))),
  }), () => false);
  await assert.rejects(waiting, { message: "enough" });
});

test("a stream gives up after so many attempts where that is wanted, and at once where it is refused", async (t) => {
  const { server, proxy, client } = await setUp(t);
  const wrong = new Client({ url: server.url, token: "wrong" });
  await assert.rejects(collect(wrong.followEvents(), () => false), (error) => error instanceof BatonError && error.code === "W001");
  await assert.rejects(collect(client.followEvents({}, { after: 1_000_000 }), () => false), (error) => error instanceof BatonError && error.code === "L034");
  proxy.answers = [problem(503, "W014"), problem(503, "W014"), problem(503, "W014")];
  proxy.requests = [];
  await assert.rejects(collect(client.followEvents({}, { retry: { attempts: 3, firstMs: 1, maxMs: 2 } }), () => false), ConnectionError);
  assert.equal(proxy.requests.length, 3);
});

test("who was too slow is told, and goes on from where the server says", async (t) => {
  const { proxy, client } = await setUp(t, 2);
  const end = await endOf(client);
  // As the server gives it to whoever is more than 20,000 events behind; here it is the proxy that says so.
  const record = (id) => `id: ${id}\ndata: {"pos":${id}}\n\n`;
  const stream = (...events) => [200, "text/event-stream", events.join("")];
  proxy.answers = [stream(record(1), record(2), 'event: gap\ndata: {"resumeFrom":2,"end":50000}\n\n')];
  proxy.requests = [];
  const gaps = [];
  const positions = await collect(client.followEvents({ follow: false }, { ...QUICK, onStatus: (status) => status.type === "gap" && gaps.push(status.resumeFrom) }), () => false);
  assert.deepEqual(positions, upTo(end));
  assert.deepEqual(gaps, [2]);
  assert.deepEqual(lastEventIds(proxy), [undefined, "2"]);

  // What comes again is left out, words that nobody knows are passed over, and an error is one.
  proxy.answers = [stream(record(1), record(1), ": alive\n\n", "event: weather\ndata: {}\n\n"), stream(record(1), record(2), "event: end\ndata: {}\n\n")];
  assert.deepEqual(await collect(client.followEvents({ follow: false }, QUICK), () => false), upTo(end));
  proxy.answers = [stream('event: error\ndata: {"title":"the disk is gone"}\n\n')];
  await assert.rejects(collect(client.followEvents({ follow: false }, QUICK), () => false), (error) => error instanceof BatonError && error.title === "the disk is gone");
});

test("a connection that is silent for too long is given up", async (t) => {
  const { client } = await setUp(t, 1);
  const reasons = [];
  const opened = [];
  const abort = new AbortController();
  const following = collect(client.followEvents({}, {
    ...QUICK,
    signal: abort.signal,
    silenceMs: 50,
    onStatus: (status) => {
      if (status.type === "open") opened.push(status.after);
      if (status.type === "waiting") reasons.push(status.reason);
      if (opened.length === 3) setImmediate(() => abort.abort());
    },
  }), () => false);
  await assert.rejects(following, { name: "AbortError" });
  assert.match(reasons[0], /silent for 50 ms/);
});

test("a server that takes a connection and never answers is given up, too", async (t) => {
  const mute = createServer(() => undefined);
  mute.listen(0, "127.0.0.1");
  await once(mute, "listening");
  t.after(() => (mute.close(), mute.closeAllConnections()));
  const client = new Client({ url: `http://127.0.0.1:${mute.address().port}`, token: "t" });
  const following = collect(client.followEvents({}, { silenceMs: 50, retry: { attempts: 2, firstMs: 1, maxMs: 2 } }), () => false);
  await assert.rejects(following, /did not answer within 50 ms/);
});

test("who leaves a stream leaves no connection behind", async (t) => {
  const { proxy, client } = await setUp(t, 2);
  const open = [];
  await collect(client.followEvents(), () => open.push(proxy.streams));
  assert.deepEqual(open, [1]);
  // The other side hears of it a moment later; the deadline is the test's.
  while (proxy.streams > 0) await new Promise((resolve) => setImmediate(resolve));
});
