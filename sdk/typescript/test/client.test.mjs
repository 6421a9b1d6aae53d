// Calls: tasks, claims, errors, retries.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { BatonError, Client, ConnectionError } from "../dist/index.js";
import { test } from "./deadline.mjs";
import { problem, startProxy } from "./proxy.mjs";
import { startServer } from "./server.mjs";

const clientOf = (server, more = {}) => new Client({ url: server.url, token: server.token, ...more });

/** That something is refused, with this code and status. */
async function refused(promise, code, status) {
  const error = await promise.then(() => assert.fail(`expected ${code}`), (error) => error);
  assert.ok(error instanceof BatonError, String(error));
  assert.deepEqual([error.code, error.status], [code, status], error.message);
  return error;
}

test("a task is created, read, listed page by page and edited, and a change of another state is refused", async (t) => {
  const server = await startServer(t);
  const client = clientOf(server);
  assert.deepEqual(await client.getHealth(), { status: "ok", scope: "admin" });

  let etag;
  const created = await client.createTask({ title: "Limit the upload size", priority: "high" }, { onResponse: (r) => (etag = r.headers.get("etag")) });
  assert.equal(created.status, "backlog");
  assert.equal(etag, `"${created.rev}"`, "a task's revision is its ETag, which `ifMatch` relies on");
  assert.equal((await client.getTask(created.id)).title, "Limit the upload size");

  for (let n = 2; n <= 5; n += 1) await client.createTask({ title: `Task ${n}`, status: n % 2 ? "ready" : "backlog" });
  const page = await client.listTasks({ limit: 2 });
  assert.equal(page.tasks.length, 2);
  assert.ok(page.next);
  const all = [];
  for await (const task of client.eachTask({ limit: 2 })) all.push(task.title);
  assert.deepEqual(all, ["Limit the upload size", "Task 2", "Task 3", "Task 4", "Task 5"]);
  const ready = await client.listTasks({ status: ["ready", "done"] });
  assert.deepEqual(ready.tasks.map((task) => task.title), ["Task 3", "Task 5"]);

  const edited = await client.editTask(created.id, { title: "Limit it" }, { ifMatch: created });
  assert.equal(edited.title, "Limit it");
  const conflict = await refused(client.editTask(created.id, { title: "Too late" }, { ifMatch: created }), "W010", 412);
  assert.match(conflict.detail, /If-Match/);
  assert.equal((await client.getTask(created.id)).title, "Limit it");
});

test("a task is claimed, beaten for and released, and who has lost it is told", async (t) => {
  const client = clientOf(await startServer(t));
  const { id } = await client.createTask({ title: "Work", status: "ready" });
  const claimed = await client.claimTask(id, { agent: "ada", ttl: "10m" });
  assert.equal(claimed.agent, "ada");
  const held = { agent: "ada", fence: claimed.fence };
  assert.equal((await client.beatTask(id, held)).taskId, id);
  const taken = await client.claimTask(id, { agent: "bob" }).catch((error) => error);
  assert.ok(taken instanceof BatonError && taken.status === 409, String(taken));
  const stale = await client.beatTask(id, { ...held, fence: claimed.fence + 7 }).catch((error) => error);
  assert.ok(stale instanceof BatonError && stale.status === 409, String(stale));
  assert.equal((await client.releaseTask(id, held)).status, "ready");
  const { runs } = await client.getTaskRuns(id);
  assert.equal(runs.length, 1);
});

test("what the server refuses is an error with its code, title, detail and hint", async (t) => {
  const server = await startServer(t);
  const client = clientOf(server);
  const missing = await refused(client.getTask("TASK-2026-01-31-999"), "T001", 404);
  assert.equal(missing.hint, "baton task ls");
  assert.match(missing.title, /TASK-2026-01-31-999/);
  assert.match(missing.message, /^T001: /);
  await refused(client.createTask({ titel: "?" }), "W004", 400);
  await refused(new Client({ url: server.url, token: "wrong" }).listTasks(), "W001", 401);
  await refused(new Client({ url: server.url }).listTasks(), "W001", 401);
  await assert.rejects(async () => client.getTask(""), TypeError);
  await refused(client.getTask("../../healthz"), "T001", 404);
  const message = await client.sendMessage({ protocol: "aof", version: 1, type: "nonsense" });
  assert.equal(message.accepted, false, "a refused message is an answer");
  assert.equal(typeof message.reason, "string");
});

test("bytes go both ways, and a trace is verified", async (t) => {
  const client = clientOf(await startServer(t));
  const bytes = new TextEncoder().encode("all well\n");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  assert.deepEqual((await client.putArtifact(sha256, bytes)).bytes, bytes.length);
  assert.deepEqual(await client.getArtifact(sha256), bytes);
  const { trace } = await client.openTrace({ title: "By hand" });
  await client.appendEvents(trace, { type: "note", payload: { text: "hello" } }, { agent: "ada" });
  const { events } = await client.getTrace(trace);
  assert.equal(events.at(-1)?.type, "note");
  const bundle = await client.exportTrace(trace);
  const report = await client.verifyBundle(bundle);
  assert.match(report.verdict, /^pass/);
  assert.match(await client.getMetrics(), /^# /m);
});

test("a call whose answer is lost is made again with the same key, and done once", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const client = clientOf({ url: proxy.url, token: server.token }, { retry: { firstMs: 1 } });
  proxy.losesAnswers = 2;
  let replayed;
  const task = await client.createTask({ title: "Once" }, { onResponse: (r) => (replayed = r.headers.get("idempotency-replayed")) });
  assert.equal(replayed, "true");
  const keys = proxy.requests.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 3);
  assert.ok(keys[0]);
  assert.equal(new Set(keys).size, 1);
  const { tasks } = await client.listTasks();
  assert.deepEqual(tasks.map(({ id }) => id), [task.id]);
  const other = await client.createTask({ title: "Once" });
  assert.notEqual(other.id, task.id, "another call has another key");
});

test("who does not answer is asked again so often and no more", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const client = clientOf({ url: proxy.url, token: server.token }, { retry: { attempts: 3, firstMs: 1 } });
  proxy.losesAnswers = Infinity;
  await assert.rejects(client.createTask({ title: "x" }), ConnectionError);
  assert.equal(proxy.requests.length, 3);
});

test("a server that says it is busy is asked again, and what is wrong is not", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const client = clientOf({ url: proxy.url, token: server.token }, { retry: { attempts: 10, firstMs: 1, maxMs: 2 } });
  proxy.answers = [problem(503, "W014"), problem(429, "W013"), problem(409, "W012"), problem(408, "W015"), problem(422, "T009")];
  await refused(client.retryTask("TASK-1"), "T009", 422);
  assert.equal(proxy.requests.length, 5);
  assert.equal(new Set(proxy.requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("an abort ends a call that waits for its next attempt", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const client = clientOf({ url: proxy.url, token: server.token }, { retry: { attempts: 100, firstMs: 600_000, maxMs: 600_000 } });
  const abort = new AbortController();
  proxy.answers = [problem(503, "W014")];
  const onResponse = () => setImmediate(() => abort.abort());
  await assert.rejects(client.createTask({ title: "y" }, { signal: abort.signal, onResponse }), { name: "AbortError" });
  assert.equal(proxy.requests.length, 1);
});
