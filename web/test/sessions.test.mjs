// The list of sessions as it is known.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { isSessionId, taken } = await load("state/sessions.ts");
const NOTHING = { sessions: [], askedAt: new Map() };
const one = (id, state = "ready") => ({ id, agent: "ada", harness: "mock", state });
const shown = ({ sessions }) => sessions.map(({ id, state }) => `${id} ${state}`);

test("the newest comes first, whatever came when", () => {
  const first = taken(NOTHING, [one("c"), one("a")], 1);
  assert.deepEqual(shown(taken(first, [one("b"), one("d")], 2)), ["d ready", "c ready", "b ready", "a ready"]);
});

test("an answer that was asked for earlier takes nothing back", () => {
  const known = taken(taken(NOTHING, [one("a"), one("b")], 1), [one("a", "stopped")], 3, ["a"]);
  assert.deepEqual(shown(taken(known, [one("a"), one("b", "error")], 2)), ["b error", "a stopped"]);
  assert.deepEqual(shown(taken(known, [], 2, ["a"])), ["b ready", "a stopped"]);
});

test("what was named and is not there any more goes, and nothing else", () => {
  const known = taken(NOTHING, [one("a"), one("b"), one("c")], 1);
  assert.deepEqual(shown(taken(known, [one("b", "error")], 2, ["a", "b"])), ["c ready", "b error"]);
});

test("only what is the id of a session is asked for", () => {
  assert.ok(isSessionId("sess_019c4180-0a00-7000-8000-000000000001"));
  for (const odd of [undefined, true, "", "sess_1", "sess_019c4180-0a00-4000-8000-000000000001", "SESS_019c4180-0a00-7000-8000-000000000001", "sess_019c4180-0a00-7000-8000-000000000001&live=true"]) assert.equal(isSessionId(odd), false, String(odd));
});
