// The columns of the board, their order, and what filters let through.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, task } from "./bundle.mjs";

const { filterOf, isWanted, columnsOf, choicesOf, find, step } = await load("state/board.ts", "screens/board/select.ts");
const NOW = Date.parse("2026-02-09T12:00:00.000Z");
const none = filterOf(new URLSearchParams());
const ids = (columns, status) => columns.find((column) => column.status === status)?.tasks.map((one) => one.id);
const lease = (expiresAt) => ({ agent: "ada", fence: 1, acquiredAt: "2026-02-09T11:00:00.000Z", expiresAt });

test("filters come out of the address", () => {
  const query = new URLSearchParams("q=log+in&agent=ada&tag=ui&priority=high&ended=1");
  assert.deepEqual(filterOf(query), { text: "log in", agent: "ada", tag: "ui", priority: "high", hasEnded: true });
  assert.deepEqual(none, { text: "", agent: "", tag: "", priority: "", hasEnded: false });
  assert.equal(filterOf(new URLSearchParams("ended=yes")).hasEnded, false);
});

test("every word has to be found, in whatever order, in id, title, agent, tags or phase", () => {
  const one = task("TASK-2026-02-09-001", { title: "Fix the Login", routing: { agent: "ada", tags: ["ui"] } });
  const wanted = (text) => isWanted(one, { ...none, text });
  for (const text of ["", "  ", "login", "LOGIN fix", "ada ui", "09-001", "implementation login"]) assert.ok(wanted(text), text);
  for (const text of ["logout", "login bob", ".*"]) assert.ok(!wanted(text), text);
});

test("agent, tag and priority have to be the very same", () => {
  const one = task("a", { priority: "high", routing: { agent: "ada", tags: ["ui", "login"] } });
  assert.ok(isWanted(one, { ...none, agent: "ada", tag: "login", priority: "high" }));
  assert.ok(!isWanted(one, { ...none, agent: "ad" }));
  assert.ok(!isWanted(one, { ...none, tag: "log" }));
  assert.ok(!isWanted(one, { ...none, priority: "normal" }));
  const held = task("b", { routing: { agent: "ada" }, lease: { ...lease("2026-02-09T13:00:00.000Z"), agent: "bob" } });
  assert.ok(isWanted(held, { ...none, agent: "bob" }), "whoever holds it counts, not whom it was meant for");
  assert.ok(!isWanted(held, { ...none, agent: "ada" }));
});

test("six columns, and two more on request", () => {
  const all = [task("a"), task("b", { status: "cancelled" }), task("c", { status: "deadletter" })];
  assert.deepEqual(columnsOf(all, none, NOW).map((column) => column.status), ["backlog", "ready", "in-progress", "blocked", "review", "done"]);
  const more = columnsOf(all, { ...none, hasEnded: true }, NOW);
  assert.deepEqual(more.map((column) => column.status).slice(-2), ["cancelled", "deadletter"]);
  assert.deepEqual([ids(more, "cancelled"), ids(more, "deadletter")], [["b"], ["c"]]);
});

test("what ran out comes first, then what is urgent, then what waits longest", () => {
  const at = (minute) => ({ lastTransitionAt: `2026-02-09T10:0${minute}:00.000Z`, status: "in-progress" });
  const all = [
    task("late", { ...at(1) }),
    task("later", { ...at(2) }),
    task("urgent", { ...at(3), priority: "critical", lease: lease("2026-02-09T13:00:00.000Z") }),
    task("low", { ...at(0), priority: "low" }),
    task("dead", { ...at(4), priority: "low", lease: lease("2026-02-09T11:59:00.000Z") }),
    task("strange", { ...at(0), priority: "whatever" }),
  ];
  assert.deepEqual(ids(columnsOf(all, none, NOW), "in-progress"), ["dead", "urgent", "strange", "late", "later", "low"]);
  assert.equal(ids(columnsOf(all, none, NOW - 3_600_000), "in-progress")[0], "urgent", "before the lease ran out");
});

test("of what is over the newest comes first", () => {
  const all = ["1", "3", "2"].map((minute) => task(`t${minute}`, { status: "done", lastTransitionAt: `2026-02-09T10:0${minute}:00.000Z`, priority: minute === "1" ? "critical" : "low" }));
  assert.deepEqual(ids(columnsOf(all, none, NOW), "done"), ["t3", "t2", "t1"]);
});

test("equal cards have the same order whatever order they came in", () => {
  const all = ["c", "a", "b"].map((id) => task(id));
  assert.deepEqual(ids(columnsOf(all, none, NOW), "ready"), ["a", "b", "c"]);
  assert.deepEqual(ids(columnsOf([...all].reverse(), none, NOW), "ready"), ["a", "b", "c"]);
});

test("ten thousand tasks are sorted in a moment", () => {
  const statuses = ["backlog", "ready", "in-progress", "blocked", "review", "done"];
  const all = Array.from({ length: 10_000 }, (_, n) => task(`TASK-${String((n * 7919) % 10_000).padStart(5, "0")}`, { status: statuses[n % 6], lastTransitionAt: new Date(NOW - ((n * 104_729) % 1e9)).toISOString() }));
  columnsOf(all, none, NOW);
  const began = performance.now();
  for (let n = 0; n < 10; n += 1) columnsOf(all, { ...none, text: "title task" }, NOW);
  const each = (performance.now() - began) / 10;
  assert.ok(each < 250, `${each} ms`);
});

test("choices are each agent and tag once, in order", () => {
  const all = [task("a", { routing: { agent: "bob", tags: ["x", "b"] } }), task("b", { routing: { agent: "ada", tags: ["b", 3] } }), task("c", { lease: lease("2026-02-09T13:00:00.000Z") })];
  assert.deepEqual(choicesOf(all), { agents: ["ada", "bob"], tags: ["b", "x"] });
});

const columns = columnsOf([task("a", { status: "backlog" }), task("b", { status: "backlog" }), task("c", { status: "blocked" }), task("d", { status: "done" })], none, NOW);

test("keys go down, up and to the side, past columns without cards, and stay at the ends", () => {
  assert.deepEqual(find(columns, "c"), { column: 3, index: 0 });
  assert.equal(find(columns, "nobody"), undefined);
  assert.equal(step(columns, undefined, 0, 1), "a");
  assert.equal(step(columns, "a", 0, 1), "b");
  assert.equal(step(columns, "b", 0, 1), "b");
  assert.equal(step(columns, "a", 0, -1), "a");
  assert.equal(step(columns, "b", 1, 0), "c");
  assert.equal(step(columns, "c", 1, 0), "d");
  assert.equal(step(columns, "d", 1, 0), "d");
  assert.equal(step(columns, "d", -1, 0), "c");
  assert.equal(step(columns, "gone", 1, 0), "a", "what is not shown any more is where one begins again");
  assert.equal(step([], "a", 1, 0), undefined);
});

test("a status that nobody knows has a column of its own, the last", () => {
  const odd = [task("a"), task("b", { status: "frozen" }), task("c", { status: {} }), task("d", { status: null, title: null }), task("e", { status: "cancelled" })];
  const columns = columnsOf(odd, none, NOW);
  assert.deepEqual(columns.map((column) => column.status), ["backlog", "ready", "in-progress", "blocked", "review", "done", "other"]);
  assert.deepEqual(ids(columns, "other"), ["b", "c", "d"]);
  assert.deepEqual(ids(columnsOf(odd, { ...none, hasEnded: true }, NOW), "cancelled"), ["e"], "what is known to have ended is not among them");
  assert.equal(columnsOf([task("a")], none, NOW).length, 6, "without any it is not there");
  assert.equal(step(columns, "a", 1, 0), "b", "keys lead there");
});
