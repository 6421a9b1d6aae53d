// What somebody judges of a task, and what of it is another thing to judge.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, task } from "./bundle.mjs";

const { BatonError, changeInWords, isSameToJudge, seenOf, toWhatWasSeen } = await load("state/seen.ts", "../../sdk/typescript/src/index.ts");
const inReview = (more = {}) => task("a", { status: "review", phase: "REVIEW", rev: 7, card: { run: { id: "run_1" } }, ...more });
const overtaken = () => new BatonError({ code: "W010", status: 412, title: "it has changed", detail: undefined, hint: undefined });

test("words that are added change nothing of what is judged; a status, a phase and another attempt do", () => {
  const seen = seenOf(inReview());
  assert.ok(isSameToJudge(seen, seenOf(inReview({ rev: 9, title: "other words" }))));
  for (const [more, words] of [
    [{ status: "ready", phase: "IMPLEMENTATION" }, "it was review, review, and is ready, implementation now"],
    [{ phase: "READY_FOR_MERGE" }, "it was review, review, and is review, ready for merge now"],
    [{ card: { run: { id: "run_2" } } }, "another attempt was made at it"],
    [{ card: undefined }, "another attempt was made at it"],
  ]) {
    const now = seenOf(inReview(more));
    assert.ok(!isSameToJudge(seen, now));
    assert.equal(changeInWords(seen, now), words);
  }
});

test("what was only overtaken by words is judged all the same, at the revision that it has by then", async () => {
  const asked = [];
  let rev = 7;
  const look = () => Promise.resolve(inReview({ rev: (rev += 1) }));
  const done = await toWhatWasSeen(seenOf(inReview()), look, async ({ ifMatch }) => {
    asked.push(ifMatch.rev);
    if (asked.length < 3) throw overtaken();
    return "done";
  });
  assert.equal(done, "done");
  assert.deepEqual(asked, [7, 8, 9]);
});

test("what is another thing by then is not judged", async () => {
  let count = 0;
  const judged = toWhatWasSeen(seenOf(inReview()), () => Promise.resolve(inReview({ card: { run: { id: "run_2" } } })), () => {
    count += 1;
    return Promise.reject(overtaken());
  });
  await assert.rejects(judged, { code: "W010" });
  assert.equal(count, 1);
});

test("what fails otherwise fails at once, and what is overtaken again and again does in the end", async () => {
  let count = 0;
  const fails = (error) => toWhatWasSeen(seenOf(inReview()), () => Promise.resolve(inReview()), () => { count += 1; return Promise.reject(error); });
  await assert.rejects(fails(new Error("no network")), /no network/);
  assert.equal(count, 1);
  await assert.rejects(fails(overtaken()), { code: "W010" });
  assert.ok(count > 2 && count < 20, `${count}`);
});
