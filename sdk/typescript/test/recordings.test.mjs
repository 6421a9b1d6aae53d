// The reducer against recorded sessions: fixtures/sessions/, which the Rust tests record, and fold with the machine's own view.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { Client, emptyView, reduce } from "../dist/index.js";
import { test } from "./deadline.mjs";

const folder = new URL("../../../fixtures/sessions/", import.meta.url);
const read = (file) => readFileSync(new URL(file, folder), "utf8");
const names = readdirSync(folder).filter((file) => file.endsWith(".jsonl")).map((file) => file.slice(0, -".jsonl".length));

/** A recording: its lines, the items that a follower makes of them, and the view that is expected. */
function recording(name) {
  const lines = read(`${name}.jsonl`).trim().split("\n").map((line) => JSON.parse(line));
  const items = lines.map(({ id, event, data }) => (event === "ended" ? { kind: event, at: id, terminationInfo: data } : { kind: event, at: id, event: data }));
  const { along, words, ...shared } = JSON.parse(read(`${name}.view.json`));
  return { lines, items, along, words, shared };
}

/** Folds, and shows that no view is changed on the way. */
const fold = (items, view = emptyView()) => items.reduce((now, item) => reduce(Object.freeze(now), item), view);

/** What the machine's view has too. */
function sharedOf(view) {
  const { state, streamId, toolRuns, hookRuns, pendingPermissions, lastError, exitCode, terminationInfo } = view;
  return JSON.parse(JSON.stringify({ state, streamId, toolRuns, hookRuns, pendingPermissions, lastError, exitCode, terminationInfo }));
}

function wordsOf(view) {
  const of = (kind) => view.turns.flatMap((turn) => turn.parts).filter((part) => part.kind === kind).map((part) => part.text).join("");
  return { text: of("text"), thought: of("thinking") };
}

/** A view in a line, as the Rust test writes it. */
function shortOf({ state, toolRuns, hookRuns, pendingPermissions, lastError }) {
  const of = (run, name) => (run ? `${run[name]} ${run.status} #${run.attempt}` : "");
  return `${state}|${of(toolRuns.at(-1), "toolName")}|${of(hookRuns.at(-1), "hookName")}|${pendingPermissions.length}|${lastError?.code ?? ""}`;
}

function isExpected(view, { shared, words, items }, what) {
  assert.deepEqual(sharedOf(view), shared, what);
  assert.deepEqual(wordsOf(view), words, what);
  assert.deepEqual(view.unknown, [], what);
  assert.equal(view.isEnded, items.at(-1).kind === "ended", what);
}

test("there are recordings", () => {
  assert.ok(names.length >= 12, names.join());
  assert.ok(recording("long").items.length > 300);
});

for (const name of names) {
  const given = recording(name);
  const { items, lines } = given;
  const whole = fold(items);

  test(`${name}: the view is that of the machine, after every event`, () => {
    isExpected(whole, given, name);
    assert.equal(whole.hasGap, false);
    const along = [];
    let last = "";
    let view = emptyView();
    for (const item of items) {
      view = reduce(view, item);
      const now = shortOf(view);
      if (now !== last) along.push(`${item.at}: ${now}`);
      last = now;
    }
    assert.deepEqual(along, given.along);
  });

  test(`${name}: what comes twice changes nothing`, () => {
    assert.deepEqual(fold(items.flatMap((item) => [item, item])), whole, "each event twice");
    assert.deepEqual(fold(items, whole), whole, "everything again");
  });

  test(`${name}: wherever it is cut, it goes on`, () => {
    for (let at = 0; at <= items.length; at += 1) {
      const first = fold(items.slice(0, at));
      assert.deepEqual(fold(items.slice(at), first), whole, `resumed after ${at}`);
      assert.deepEqual(fold(items, first), whole, `from the beginning again after ${at}`);
      assert.deepEqual(fold(items.slice(Math.max(0, at - 3)), first), whole, `with the last three before ${at} once more`);
      // A copy is as good: a page may keep a view and come again.
      if (at % 16 === 0) assert.deepEqual(fold(items.slice(at), structuredClone(first)), whole, `a copy, resumed after ${at}`);
    }
  });

  if (items.at(-1).kind === "ended") test(`${name}: one that is over is told again without its words, and they stay`, () => {
    for (let at = 1; at < items.length; at += 1) {
      const before = fold(items.slice(0, at));
      // As the server does it: a gap, then the state events without positions, then the end.
      let last = before.at;
      const again = items.filter(({ kind }) => kind === "state_event").map((item) => ({ ...item, at: (last += 1) }));
      const view = fold([{ kind: "gap", at: before.at, resumeFrom: 0 }, ...again, { ...items.at(-1), at: last }], before);
      assert.deepEqual(sharedOf(view), given.shared, `after ${at}`);
      assert.deepEqual(wordsOf(view), wordsOf(before), `after ${at}`);
      assert.ok(view.hasGap && view.isEnded);
    }
  });

  test(`${name}: over a connection that breaks after every few events`, async () => {
    const asked = [];
    // A server that gives the next events after the position that it is told, one of them broken off.
    const fetch = async (_url, init) => {
      const after = Number(new Headers(init.headers).get("last-event-id") ?? 0);
      asked.push(after);
      const next = lines.filter(({ id }) => id > after).slice(0, 40);
      const text = next.map(({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");
      const isLast = next.at(-1)?.id === lines.at(-1).id;
      return new Response(isLast || next.length < 2 ? text : text.slice(0, -9), { headers: { "content-type": "text/event-stream" } });
    };
    const client = new Client({ url: "http://127.0.0.1:1", fetch });
    let view = emptyView();
    for await (const item of client.followSession("sess_1", { retry: { firstMs: 0, maxMs: 0 } })) {
      view = reduce(view, item);
      if (view.at === lines.at(-1).id) break;
    }
    assert.deepEqual(view, whole);
    assert.ok(lines.length <= 40 || asked.length > 1);
  });
}
