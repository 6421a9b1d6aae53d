// What the tests of the page stand on: a real server on a data directory of its own, a real browser, and what they leave behind.
//
// BATON_BIN names the program (target/debug/baton of the repository, if nothing is said); BATON_PAGE_DIR, where it is set, the folder that the server gives
// the page out of; CHROMIUM the browser. Every test has a deadline, and whatever it started ends with it.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, appendFileSync, constants, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, test as plainTest } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const target = resolve(process.env["CARGO_TARGET_DIR"] ?? join(root, "target"));
export const binary = resolve(process.env["BATON_BIN"] ?? join(target, "debug/baton"));
const DEADLINE_MS = 120_000;
/** How long one thing is waited for. */
export const WAIT_MS = 20_000;

function find(...names) {
  for (const dir of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of names) {
      try {
        accessSync(join(dir, name), constants.X_OK);
        return join(dir, name);
      } catch {
        // It is not there.
      }
    }
  }
  return undefined;
}

const browserPath = process.env["CHROMIUM"] ?? find("chromium", "chromium-browser", "google-chrome");
const skip = browserPath ? false : "there is no Chromium on the PATH; on Debian: apt-get install chromium";

/** A test of `node:test` with a deadline, skipped where there is no browser. */
export function test(name, ...rest) {
  const body = rest.pop();
  return plainTest(name, { timeout: DEADLINE_MS, skip, ...rest[0] }, body);
}

const started = new Set();
process.once("exit", () => started.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.once(signal, () => process.exit(1));

/**
 * A server, which ends with the test. `config` is added to its `baton.toml`; with `dispatch: false` it hands no tasks to agents; `prepare(server)` is called
 * before it serves; `env` is added to the environment.
 */
export async function start(t, { config = "", dispatch = true, prepare, env = {} } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "baton-page-"));
  const server = new Server(dir, { dispatch, env });
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  execFileSync(binary, ["init", "-q"], { cwd: dir, env: server.env, stdio: ["ignore", "ignore", "inherit"] });
  if (config !== "") appendFileSync(join(dir, ".baton/baton.toml"), `\n${config}\n`);
  await prepare?.(server);
  await server.serve();
  const [ledger] = readdirSync(join(dir, "state")).filter((name) => name.startsWith("led_"));
  server.token = readFileSync(join(dir, "state", ledger, "admin.token"), "utf8").trim();
  return server;
}

/** From here on servers give the page out that is within the program: the folder in which a debug build looks for it is empty. */
export function fromWithin() {
  const nothing = mkdtempSync(join(tmpdir(), "baton-no-page-"));
  process.once("exit", () => rmSync(nothing, { recursive: true, force: true }));
  process.env["BATON_PAGE_DIR"] = nothing;
}

class Server {
  constructor(dir, { dispatch, env }) {
    /** Where it works; the data directory is `.baton` in it. */
    this.dir = dir;
    this.dispatch = dispatch;
    // Nothing of whoever runs the tests comes along.
    const page = process.env["BATON_PAGE_DIR"];
    this.env = { PATH: process.env["PATH"], HOME: dir, BATON_STATE_DIR: join(dir, "state"), ...(page ? { BATON_PAGE_DIR: resolve(page) } : {}), ...env };
    this.url = undefined;
    this.token = undefined;
    this.log = "";
  }

  /** The link that lets a browser in. */
  get link() {
    return this.linkTo("/");
  }

  linkTo(path) {
    const url = new URL(path, this.url);
    url.searchParams.set("token", this.token);
    return url.href;
  }

  /** Runs the command line; gives what it printed. What fails throws, with what it said. */
  async baton(args, { input } = {}) {
    const running = promisify(execFile)(binary, args, { cwd: this.dir, env: this.env, maxBuffer: 64 << 20 });
    // What it does not read is no fault: it says itself what is.
    running.child.stdin.on("error", () => {});
    running.child.stdin.end(input ?? "");
    try {
      return (await running).stdout;
    } catch (error) {
      throw new Error(`baton ${args.join(" ")}: ${error.stderr || error.message}`);
    }
  }

  /** The same with --json; gives the last object. */
  async json(args, options) {
    const lines = (await this.baton([...args, "--json"], options)).trim().split("\n");
    return JSON.parse(lines.at(-1));
  }

  /** Asks over HTTP, with the administrator's token; gives the object that was answered. */
  async api(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const answer = await fetch(new URL(path, this.url), { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  /** Begins to serve; at the same port as before, where it served before. */
  async serve() {
    const listen = this.url === undefined ? "127.0.0.1:0" : new URL(this.url).host;
    const args = ["serve", "--listen", listen, "--json", ...(this.dispatch ? [] : ["--no-dispatch"])];
    const child = spawn(binary, args, { cwd: this.dir, env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    started.add(child);
    child.once("exit", () => started.delete(child));
    child.stderr.on("data", (text) => (this.log = (this.log + text).slice(-20_000)));
    const lines = createInterface({ input: child.stdout });
    const [first] = await Promise.race([
      once(lines, "line"),
      once(child, "exit").then(([code]) => assert.fail(`baton serve ended with ${code}: ${this.log}`)),
    ]);
    this.url = JSON.parse(first).url;
  }

  /** Ends it as a person does, and waits until it is gone. */
  stop() {
    return this.end("SIGTERM");
  }

  /** Ends it as a crash does. */
  kill() {
    return this.end("SIGKILL");
  }

  /** Starts it again, at the same address. */
  async restart() {
    await this.stop();
    await this.serve();
  }

  async end(signal) {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(late);
  }
}

let browser;
after(async () => { await (await browser)?.close(); });

/** One browser for all tests of a file. */
function launch() {
  // As root there is no sandbox to be had.
  const args = ["--disable-dev-shm-usage", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];
  return (browser ??= chromium.launch({ executablePath: browserPath, args }));
}

/**
 * A page that is logged in by the link; it ends with the test. `path` is where it goes; `before(page)` is called before it goes anywhere, to route requests;
 * with `isWaiting: false` nobody waits until it is live. `page.problems` has what the console said of errors and of the
 * content security policy. A test in which anything was asked of another host fails, but for those of `others`.
 */
export async function open(t, server, { dark = false, width = 1280, height = 800, path = "/", before, isWaiting = true, others = [] } = {}) {
  const context = await (await launch()).newContext({ colorScheme: dark ? "dark" : "light", viewport: { width, height }, reducedMotion: "reduce" });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  page.problems = [];
  const strangers = [];
  t.after(async () => {
    await context.close();
    assert.deepEqual(strangers, [], "nothing is asked of another host");
  });
  page.on("pageerror", (error) => page.problems.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    // That something was not found or not answered is a matter of the test.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.problems.push(message.text());
  });
  const origins = [server, ...others].map((one) => new URL(one.linkTo("/")).origin);
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && !origins.includes(origin)) strangers.push(request.url());
  });
  await before?.(page);
  await page.goto(server.linkTo(path));
  if (isWaiting) await page.locator(".link.is-good").waitFor();
  return page;
}

const axeSource = readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");

/** What axe finds that is serious or critical, each as a line. The content security policy stays as it is. */
export async function axe(page) {
  const devtools = await page.context().newCDPSession(page);
  const run = async (expression) => {
    const { result, exceptionDetails } = await devtools.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  // It may have been there already: then it is only run again.
  await run(`globalThis.axe === undefined && (0, function () { ${axeSource} })(), undefined`);
  const found = await run("axe.run(document, { preload: false }).then((all) => JSON.stringify(all.violations))");
  await devtools.detach();
  return JSON.parse(found)
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => `${violation.id}: ${violation.help}: ${violation.nodes.slice(0, 5).map((node) => `${node.target.join(" ")} (${node.any[0]?.message ?? node.all[0]?.message ?? ""})`).join("; ")}`);
}

/** Leads to a place of the page as one of its own links does: without a reload. */
export async function follow(page, path) {
  await page.evaluate((to) => {
    const link = document.createElement("a");
    link.href = to;
    document.body.append(link);
    link.click();
    link.remove();
  }, path);
  await page.waitForURL((url) => url.pathname + url.search === path);
}

/** Keeps a picture of the page, to be looked at: target/page-shots/NAME.png. */
export async function shot(page, name) {
  const dir = join(target, "page-shots");
  mkdirSync(dir, { recursive: true });
  await page.screenshot({ path: join(dir, `${name}.png`) });
}

/** The newest file of the ledger. */
export function segment(server) {
  const dir = join(server.dir, ".baton/events");
  return join(dir, readdirSync(dir).filter((name) => name.endsWith(".jsonl")).sort().at(-1));
}

/** Changes what is on the disk, wherever it is there; the file stays as long as it was. Gives a way back. */
export function tamper(server, from, to) {
  assert.equal(from.length, to.length);
  const file = segment(server);
  const change = (a, b) => {
    const text = readFileSync(file, "latin1");
    assert.ok(text.includes(a), `${a} is in the ledger`);
    writeFileSync(file, text.replaceAll(a, b), "latin1");
  };
  change(from, to);
  return () => change(to, from);
}

/** Waits until something holds: asks again and again, until the deadline. */
export async function until(what, check, ms = WAIT_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) assert.fail(`not within ${ms} ms: ${what}`);
    await new Promise((later) => setTimeout(later, 50));
  }
}
