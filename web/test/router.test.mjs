// The place that an address names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { placeOf, taskPath, sessionPath, tracePath } = await load("router.ts");
const at = (address) => {
  const url = new URL(address, "http://here");
  return placeOf(url.pathname, url.searchParams);
};

test("every screen has its address", () => {
  assert.deepEqual(at("/"), { screen: "board" });
  assert.deepEqual(at("/?q=x"), { screen: "board" });
  assert.deepEqual(at("/tasks"), { screen: "board" });
  assert.deepEqual(at("/tasks/TASK-1"), { screen: "task", id: "TASK-1", tab: "brief" });
  assert.deepEqual(at("/tasks/TASK-1?tab=runs"), { screen: "task", id: "TASK-1", tab: "runs" });
  assert.deepEqual(at("/sessions"), { screen: "sessions" });
  assert.deepEqual(at("/sessions/sess_1/"), { screen: "session", id: "sess_1" });
  assert.deepEqual(at("/traces"), { screen: "traces" });
  assert.deepEqual(at("/traces/trc_1?event=evt_2"), { screen: "trace", id: "trc_1", event: "evt_2" });
  assert.deepEqual(at("/traces/trc_1"), { screen: "trace", id: "trc_1", event: undefined });
  assert.deepEqual(at("/health"), { screen: "health" });
});

test("everything else is nowhere", () => {
  for (const path of ["/nothing", "/health/x", "/tasks/a/b", "/index.html"]) assert.equal(at(path).screen, "nowhere", path);
});

test("what a path is made of comes out of it again", () => {
  for (const id of ["TASK-1", "a/b", "a b", "ü?#&", "%zz", ".."]) {
    const path = (made) => made.split("?")[0];
    assert.equal(placeOf(path(taskPath(id)), new URLSearchParams()).id, id);
    assert.equal(placeOf(path(sessionPath(id)), new URLSearchParams()).id, id);
    assert.equal(placeOf(path(tracePath(id)), new URLSearchParams()).id, id);
  }
  assert.deepEqual(at(tracePath("trc_1", "evt&2")), { screen: "trace", id: "trc_1", event: "evt&2" });
  assert.equal(placeOf("/tasks/%zz", new URLSearchParams()).id, "%zz", "what does not decode is taken as it is");
});
