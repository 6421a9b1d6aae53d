// The page's fold of a session beside the SDK's reducer, over recorded sessions: states over time, attempts as bars, what belongs to which turn.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";
import { BEGAN, itemsOf, NAMES, viewOf } from "./recorded.mjs";

const { emptyBook, take, withPrompt, withSession, lacksPrompt, withPrompts, withTail, withoutGuess } = await load("screens/session/book.ts", "screens/session/kept.ts");
const told = (items, book = emptyBook()) => items.reduce(take, book);
const bandsOf = (book) => book.bands.map(({ state, from, to }) => [state, from - BEGAN, to === undefined ? undefined : to - BEGAN]);
const barsOf = (book) => book.bars.map(({ name, attempt, status, from, to }) => [name, attempt, status, from - BEGAN, to - BEGAN]);

for (const name of NAMES) {
  test(`${name}: the states follow each other without a hole, and the last is the view's`, () => {
    const changes = itemsOf(name).filter(({ event }) => event?.type === "state_changed");
    const book = told(itemsOf(name));
    assert.deepEqual(book.bands.map(({ state, from }) => [state, from]), changes.map(({ event }) => [event.to, event.timestampMs]));
    book.bands.forEach((band, at) => {
      const next = book.bands[at + 1];
      if (next) assert.equal(band.to, next.from);
    });
    assert.equal(book.bands.at(-1)?.state, viewOf(name).state);
    if (viewOf(name).terminationInfo) assert.ok(book.bands.every(({ to }) => to !== undefined), "nothing is open once it has ended");
  });

  test(`${name}: each attempt of a tool or a hook has one bar, that ends as its run did`, () => {
    const book = told(itemsOf(name));
    const lives = itemsOf(name).map(({ event }) => event).filter((event) => /^(tool|hook)_lifecycle$/.test(event?.type));
    assert.deepEqual(new Set(book.bars.map(({ key }) => key)), new Set(lives.map(({ runId, attempt }) => `${runId} ${attempt}`)));
    assert.equal(new Set(book.bars.map(({ key }) => key)).size, book.bars.length);
    for (const run of [...viewOf(name).toolRuns, ...viewOf(name).hookRuns]) {
      const bar = book.bars.findLast(({ runId }) => runId === run.runId);
      assert.deepEqual([bar.status, bar.attempt, bar.to], [run.status, run.attempt, run.finishedAtMs]);
    }
  });

  test(`${name}: every turn that said something has a mark, and every run stands in exactly one`, () => {
    const book = told(itemsOf(name));
    const streams = book.marks.map(({ streamId }) => streamId);
    assert.equal(new Set(streams).size, streams.length);
    for (const turn of book.view.turns) assert.ok(streams.includes(turn.streamId));
    const runs = book.marks.flatMap(({ tools, hooks }) => [...tools, ...hooks]).map(({ runId }) => runId).sort();
    assert.deepEqual(runs, [...book.view.toolRuns, ...book.view.hookRuns].map(({ runId }) => runId).sort());
    for (const { tools } of book.marks) for (const run of tools) assert.deepEqual(run, book.view.toolRuns.find(({ runId }) => runId === run.runId), "as it stands now");
  });

  test(`${name}: told twice, or cut off and told on, it comes to the same`, () => {
    const items = itemsOf(name);
    const once = told(items);
    assert.deepEqual(told(items.flatMap((item) => [item, item])), once);
    const events = items.filter(({ kind }) => kind !== "ended");
    for (let cut = 1; cut < events.length; cut += 1) assert.deepEqual(told(events.slice(Math.max(0, cut - 3)), told(events.slice(0, cut))), told(events));
  });
}

test("a tool that is tried again is a bar for each attempt, in its turn, and its error stands there", () => {
  const book = told(itemsOf("tool-tried-again"));
  assert.deepEqual(barsOf(book), [["bash", 1, "failed", 85, 90], ["write_file", 1, "succeeded", 95, 100], ["bash", 2, "failed", 1110, 1115], ["bash", 3, "succeeded", 1125, 1130]]);
  const [first, second] = book.marks;
  assert.deepEqual(first.tools.map(({ toolName, attempt, status }) => [toolName, attempt, status]), [["bash", 3, "succeeded"], ["write_file", 1, "succeeded"]]);
  assert.equal(first.errors.length, 2);
  assert.deepEqual([second.tools, second.errors, second.reason], [[], [], "tools_completed"]);
  assert.deepEqual(bandsOf(book).slice(4, 8), [["executing_tools", 80, 100], ["error", 100, 1105], ["executing_tools", 1105, 1115], ["error", 1115, 1115]]);
});

test("a stop is seen from when it was asked for", () => {
  const items = itemsOf("stop-in-stream");
  assert.equal(told(items.slice(0, 11)).stoppingSince, undefined);
  const stopping = told(items.slice(0, 12));
  assert.equal(stopping.stoppingSince - BEGAN, 85);
  assert.deepEqual(bandsOf(stopping).at(-1), ["stopping", 85, undefined]);
  assert.equal(barsOf(stopping).at(-1)[2], "canceled");
  assert.deepEqual(bandsOf(told(items)).slice(-2), [["stopping", 85, 90], ["stopped", 90, 90]]);
});

test("what was answered stands in the turn that asked, with the text of an answer", () => {
  const { marks: [mark] } = told(itemsOf("permission-allowed"));
  assert.deepEqual(mark.answers.map(({ asked, answer }) => [asked.kind, answer]), [["tool", "allow"], ["question", "main"]]);
  assert.ok(mark.answers.every(({ by }) => typeof by === "string" && by !== ""));
});

test("what was sent from here is the prompt of the next turn, until the transcript says otherwise", () => {
  const items = itemsOf("two-turns");
  const starts = items.map(({ event }, at) => (event?.to === "calling_llm" ? at : -1)).filter((at) => at >= 0);
  let book = told(items.slice(0, starts[0]));
  assert.equal(lacksPrompt(book), false);
  book = told(items.slice(starts[0], starts[1]), withPrompt(book, "what I wrote"));
  assert.deepEqual([book.marks[0].prompt, book.marks[0].isGuess, book.prompt], ["what I wrote", true, undefined]);
  assert.ok(lacksPrompt(book), "somebody else may have been faster");
  book = told(items.slice(starts[1]), book);
  assert.equal(book.marks[1].prompt, undefined);
  const lines = book.marks.map(({ streamId }, at) => ({ kind: "prompt", streamId, text: `prompt ${at}` }));
  const whole = withPrompts(book, lines);
  assert.deepEqual(whole.marks.map(({ prompt, isGuess }) => [prompt, isGuess]), [["prompt 0", false], ["prompt 1", false]]);
  assert.equal(lacksPrompt(whole), false);
  assert.equal(withoutGuess(book).marks[0].prompt, undefined, "it was not sent after all");
  // What the transcript never has is looked for so often, and not for ever.
  let looked = book;
  for (let looks = 0; lacksPrompt(looked); looks += 1) {
    assert.ok(looks < 20);
    looked = withPrompts(looked, []);
  }
  assert.deepEqual(looked.marks.map(({ prompt }) => prompt), ["what I wrote", ""]);
});

test("a session that is told from its beginning again is not there twice, and keeps its words", () => {
  const items = itemsOf("two-turns");
  const before = told(items.filter(({ kind }) => kind !== "ended"));
  const last = items.at(-1);
  // Of one that is over only what happened is told, and counted on.
  const again = [{ kind: "gap", at: before.view.at, resumeFrom: 0 }, ...items.filter(({ kind }) => kind === "state_event").map((item, at) => ({ ...item, at: before.view.at + at + 1 })), { ...last, at: 100 }];
  const book = told(again, before);
  assert.deepEqual(bandsOf(book), bandsOf(told(items)));
  assert.deepEqual(barsOf(book), barsOf(told(items)));
  assert.deepEqual(book.marks.map(({ streamId }) => streamId), before.marks.map(({ streamId }) => streamId));
  assert.deepEqual(book.view.turns, before.view.turns);
});

test("whoever comes too late has the state as it stands, from then on", () => {
  const { state, toolRuns, hookRuns } = viewOf("tool-tried-again");
  const session = { id: "sess_1", agent: "ada", harness: "acp", state: "ready", toolRuns, hookRuns, pendingPermissions: [] };
  assert.equal(state, "stopped");
  const late = withSession(emptyBook(), session, BEGAN + 5000);
  assert.deepEqual(bandsOf(late), [["ready", 5000, undefined]]);
  assert.equal(late.bars.length, toolRuns.length + hookRuns.length);
  assert.deepEqual(withSession(late, session, BEGAN + 9000).bands, late.bands, "nothing is new");
  const on = take(late, { kind: "state_event", at: 50, event: { type: "state_changed", from: "ready", to: "calling_llm", reason: "user_input", streamId: "turn_9", timestampMs: BEGAN + 7000 } });
  assert.deepEqual(bandsOf(on), [["ready", 5000, 7000], ["calling_llm", 7000, undefined]]);
});

test("last words that only the transcript has are added to their turn", () => {
  const items = itemsOf("two-turns").filter(({ event }) => event?.type !== "completed");
  const book = told(items);
  const { streamId, parts } = book.view.turns.at(-1);
  const heard = parts.filter(({ kind }) => kind === "text").map(({ text }) => text).join("");
  const lines = [{ kind: "prompt", streamId, text: "p" }, { kind: "text", text: `${heard} and one more word` }];
  const words = (one) => one.view.turns.at(-1).parts.filter(({ kind }) => kind === "text").map(({ text }) => text).join("");
  assert.equal(words(withTail(book, lines)), `${heard} and one more word`);
  assert.equal(words(withTail(book, [lines[0], { kind: "text", text: heard.slice(0, -1) }])), heard, "less than was heard changes nothing");
});

test("however long a session talks, what is kept of it is bounded, and is the last", () => {
  const change = (n, from, to) => ({ kind: "state_event", at: n, event: { type: "state_changed", from, to, reason: "user_input", streamId: `turn_${n}`, timestampMs: BEGAN + n } });
  const items = Array.from({ length: 3000 }, (_, n) => (n % 2 === 0 ? change(n + 1, "ready", "calling_llm") : change(n + 1, "calling_llm", "ready")));
  const book = told(items);
  assert.ok(book.bands.length <= 400 && book.marks.length <= 400, `${book.bands.length} ${book.marks.length}`);
  assert.equal(book.bands.at(-1).from - BEGAN, 3000);
  assert.equal(book.marks.at(-1).streamId, "turn_2999");
});

test("what is no event breaks nothing", () => {
  for (const event of [undefined, null, {}, { type: 7 }, { type: "state_changed" }, { type: "tool_lifecycle" }, { type: "permission_resolved", id: {} }]) {
    told([{ kind: "state_event", at: 1, event }, { kind: "stream_event", at: 2, event }, { kind: "other", at: 3, name: "x", event }]);
  }
});
