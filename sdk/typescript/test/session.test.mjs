// Sessions with the mock agent: turns, permissions, deaths, and the view that the reducer makes of them.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BatonError, Client, emptyView, reduce, viewOf } from "../dist/index.js";
import { test } from "./deadline.mjs";
import { startProxy } from "./proxy.mjs";
import { startServer } from "./server.mjs";

async function setUp(t) {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const direct = new Client({ url: server.url, token: server.token });
  return { server, proxy, direct, client: new Client({ url: proxy.url, token: server.token }) };
}

const QUICK = { retry: { firstMs: 5, maxMs: 50 } };

/** Follows a session from its beginning until its view is as it is waited for; gives the view and the positions. */
async function follow(client, id, isThere, options = QUICK) {
  let view = emptyView();
  const positions = [];
  for await (const item of client.followSession(id, options)) {
    positions.push(item.at);
    view = reduce(view, item);
    if (await isThere(view)) break;
  }
  return { view, positions };
}

/** Whether `turns` turns have ended, and it takes input again. */
const idleAfter = (turns) => (view) => view.state === "ready" && view.turns.length === turns && view.turns.every((turn) => turn.end);
const textOf = (turn) => turn.parts.filter((part) => part.kind === "text").map((part) => part.text).join("");
const upTo = (n) => Array.from({ length: n }, (_, index) => index + 1);

/** What a view and `getSession` both tell. */
const common = ({ state, toolRuns, hookRuns, pendingPermissions, lastError }) => ({ state, toolRuns, hookRuns, pendingPermissions, lastError });

test("a session is started, prompted, and followed until it is idle", async (t) => {
  const { direct: client } = await setUp(t);
  const session = await client.startSession({ agent: "mock" });
  assert.equal(session.state, "ready");
  await client.sendInput(session.id, { text: "tool write echo hello" });
  const { view, positions } = await follow(client, session.id, idleAfter(1));
  assert.deepEqual(positions, upTo(positions.length));
  assert.deepEqual(view.toolRuns.map((run) => [run.toolName, run.status, run.mutating]), [["read_file", "succeeded", false], ["write_file", "succeeded", true]]);
  const [turn] = view.turns;
  assert.equal(turn.end.type, "completed");
  assert.match(textOf(turn), /hello/);
  assert.deepEqual(turn.parts.filter((part) => part.kind === "tool_call").map((part) => [part.toolName, part.status]), [["read_file", "completed"], ["write_file", "completed"]]);
  assert.deepEqual(view.unknown, [], "everything that it said is known here");
  assert.deepEqual(common(view), common(viewOf(await client.getSession(session.id))), "the reducer folds as the server does");

  await client.sendInput(session.id, { text: "echo again" });
  assert.equal((await follow(client, session.id, idleAfter(2))).view.turns.length, 2);
  const stopped = await client.stopSession(session.id);
  assert.equal(stopped.terminationInfo?.reason, "terminated");
  const { sessions } = await client.listSessions();
  assert.deepEqual(sessions.map(({ id }) => id), [session.id]);
  // More than a page of them: each once, the newest first.
  const others = [(await client.startSession({ agent: "mock" })).id, (await client.startSession({ agent: "mock" })).id];
  const all = [];
  for await (const { id } of client.eachSession({ limit: 1 })) all.push(id);
  assert.deepEqual(all, [...others.reverse(), session.id]);
});

test("hooks, warnings, errors and retries are in the view as the server has them", async (t) => {
  const { server } = await setUp(t);
  const hook = (name, command, failure_policy) => ({ name, command: ["sh", "-c", command], failure_policy });
  const hooks = [
    hook("count", "echo 1 file", { type: "fail_session" }),
    hook("lint", "exit 2", { type: "warn_continue" }),
    hook("flaky", "test -e tried || { touch tried; exit 1; }", { type: "fail_session" }),
  ];
  writeFileSync(join(server.dir, ".baton/hooks.json"), JSON.stringify({ hooks }));
  // They are read when a server begins.
  await server.stop("SIGTERM");
  await server.start();
  const client = new Client({ url: server.url, token: server.token });
  const { id } = await client.startSession({ agent: "mock" });
  await client.sendInput(id, { text: "write" });
  const failed = (await follow(client, id, idleAfter(1))).view;
  assert.deepEqual(failed.hookRuns.map((run) => [run.hookName, run.status, run.output]), [["count", "succeeded", "1 file\n"], ["lint", "failed", undefined], ["flaky", "failed", undefined]]);
  assert.equal(failed.lastError.code, "hook_execution_failed");
  assert.equal(failed.warnings.length, 1);
  assert.deepEqual(common(failed), common(viewOf(await client.getSession(id))));

  await client.retryHook(id, failed.hookRuns[2].runId);
  const { view } = await follow(client, id, (now) => now.state === "ready" && now.hookRuns[2]?.status === "succeeded");
  assert.deepEqual([view.hookRuns[2].attempt, view.lastError, view.hookRuns.length], [2, undefined, 3]);
  assert.deepEqual(common(view), common(viewOf(await client.getSession(id))));
  assert.deepEqual(view.unknown, []);
  const refusal = await client.retryTool(id, view.toolRuns[0].runId).catch((error) => error);
  assert.ok(refusal instanceof BatonError, String(refusal));
});

test("what an agent asks for is answered, and the second answer comes too late", async (t) => {
  const { direct: client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  await client.sendInput(id, { text: "permission" });
  let asked;
  const { view } = await follow(client, id, async (now) => {
    const [permission] = now.pendingPermissions;
    if (permission && !asked) {
      asked = permission;
      await client.answerPermission(id, permission.id, { answer: "allow" });
    }
    return idleAfter(1)(now);
  });
  assert.deepEqual([asked.kind, asked.title], ["tool", "run_command: make"]);
  assert.deepEqual(view.pendingPermissions, []);
  assert.match(textOf(view.turns[0]), /permission: once/);
  const late = await client.answerPermission(id, asked.id, { answer: "deny" }).catch((error) => error);
  assert.ok(late instanceof BatonError, String(late));
});

test("a crash is told with its exit code, its cause and what it wrote on its standard error", async (t) => {
  const { direct: client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  await client.sendInput(id, { text: "crash 3 2" });
  const { view } = await follow(client, id, () => false);
  assert.ok(view.isEnded);
  assert.deepEqual([view.state, view.exitCode, view.lastError.code, view.hasGap], ["stopped", 3, "harness_failed", false]);
  assert.deepEqual(view.turns[0].end, { type: "error", message: "the agent exited with code 3 in a turn", code: "process_exit" });
  const info = view.terminationInfo;
  assert.deepEqual([info.reason, info.terminated_by, info.exit_code, info.cause], ["error", "agent", 3, "crash"]);
  assert.deepEqual(info.stderr, { head: "mock: crash line 1 of 2\nmock: crash line 2 of 2", truncated: false, total_lines: 2 });
  const session = await client.getSession(id);
  assert.deepEqual(session.terminationInfo, info);
  assert.deepEqual(common(view), common(viewOf(session)));

  // Whoever comes afterwards learns what became of it, and how it ended; whoever had a part of it, that it starts over.
  const items = [];
  for await (const item of client.followSession(id)) items.push(item);
  const kinds = items.map((item) => item.kind);
  assert.deepEqual([new Set(kinds.slice(0, -1)), kinds.at(-1)], [new Set(["state_event"]), "ended"]);
  assert.deepEqual(items.at(-1).terminationInfo, info);
  const late = items.reduce(reduce, emptyView());
  assert.deepEqual(common(late), common(view));
  const again = await client.followSession(id, { after: 3 }).next();
  assert.deepEqual([again.value.kind, again.value.resumeFrom], ["gap", 0]);
  const missing = await client.followSession("sess_019b76da-addc-7101-8101-010101010102").next().catch((error) => error);
  assert.ok(missing instanceof BatonError && missing.code === "A001", String(missing));
});

test("a session's stream that is cut in the middle of a turn goes on without loss and without repetition", async (t) => {
  const { direct, proxy, client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  await direct.sendInput(id, { text: "slow" });
  let cuts = 0;
  const { view, positions } = await follow(client, id, (now) => {
    const seen = now.turns[0]?.seq ?? 0;
    if (cuts < 3 && seen > cuts * 2) {
      cuts += 1;
      proxy.cut();
    }
    return idleAfter(1)(now);
  });
  assert.equal(cuts, 3);
  assert.deepEqual(positions, upTo(positions.length));
  const { view: whole } = await follow(direct, id, idleAfter(1));
  assert.deepEqual(view, whole);
  assert.ok(proxy.requests.filter(({ headers }) => headers["last-event-id"]).length >= 2);
});

test("a session that dies with its server is told as such once the server is back", async (t) => {
  const { server, client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  await client.sendInput(id, { text: "hang" });
  let kills = 0;
  const { view } = await follow(client, id, (now) => {
    if (now.state === "calling_llm" && (kills += 1) === 1) void server.stop("SIGKILL").then(() => server.start());
    return false;
  });
  assert.ok(view.isEnded && view.hasGap);
  assert.deepEqual([view.terminationInfo?.reason, view.terminationInfo?.terminated_by], ["terminated", "daemon"]);
});

test("an abort ends the stream of a session", async (t) => {
  const { direct: client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  const abort = new AbortController();
  const following = follow(client, id, (now) => {
    if (now.state === "ready") setImmediate(() => abort.abort());
    return false;
  }, { signal: abort.signal });
  await assert.rejects(following, { name: "AbortError" });
});

test("who comes too late for the beginning is told of the gap, and goes on from there", async (t) => {
  const { direct: client } = await setUp(t);
  const { id } = await client.startSession({ agent: "mock" });
  // The server keeps 384 KiB of what a session says.
  const words = Array.from({ length: 8 }, (_, n) => `${n}${"x".repeat(60_000)}`).join(" ");
  await client.sendInput(id, { text: `echo ${words}` });
  await follow(client, id, idleAfter(1));
  await client.sendInput(id, { text: "echo once more" });
  const items = [];
  let view = viewOf(await client.getSession(id));
  for await (const item of client.followSession(id)) {
    items.push(item);
    view = reduce(view, item);
    if (view.turns.at(-1)?.end && textOf(view.turns.at(-1)).includes("once more") && view.state === "ready") break;
  }
  assert.equal(items[0].kind, "gap");
  assert.ok(view.hasGap);
  const rest = items.slice(1).map((item) => item.at);
  assert.deepEqual(rest, rest.map((_, n) => items[0].resumeFrom + 1 + n), "after the gap nothing is missing");
});

test("a session that is over is told whole after its connection broke in the middle, and says where it begins again", async (t) => {
  const { server, proxy, direct, client } = await setUp(t);
  const { id } = await direct.startSession({ agent: "mock" });
  await direct.sendInput(id, { text: "tool" });
  await follow(direct, id, idleAfter(1));
  await direct.stopSession(id);
  // Another server knows of it what the ledger has, and that has no positions of the stream.
  await server.stop("SIGTERM");
  await server.start();
  const all = async (by) => {
    const items = [];
    for await (const item of by.followSession(id, QUICK)) items.push(item);
    return items;
  };
  const told = ({ kind, event }) => (kind === "ended" ? kind : event.eventId);
  const whole = await all(new Client({ url: server.url, token: server.token }));
  assert.ok(whole.length > 4 && whole.at(-1).kind === "ended");
  proxy.cutAfter = 1200;
  const cut = await all(client);
  const again = cut.findLastIndex((item) => item.kind === "gap");
  assert.ok(again > 0, "it broke after some of it");
  assert.deepEqual(cut[again], { kind: "gap", at: cut[again - 1].at, resumeFrom: 0 });
  assert.deepEqual(cut.slice(again + 1).map(told), whole.filter(({ kind }) => kind !== "gap").map(told));
});
