// What was said and done, turn by turn. The end is followed until somebody scrolls up.

import { useComputed, useSignal, type Signal } from "@preact/signals";
import type { Turn } from "@baton/sdk";
import { useCallback, useLayoutEffect, useRef } from "preact/hooks";
import { Empty } from "../../parts/States.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { plural } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { oneLine } from "../../state/text.js";
import type { Book, Mark } from "./book.js";
import { memo } from "./memo.js";
import { Past } from "./Past.js";
import { Call, Hook, Plan, Said } from "./Part.js";
import { Sign } from "./Sign.js";
import type { SessionFile } from "./state.js";

/** Parts that are drawn; more where it is asked for. */
const PARTS_DRAWN = 400;
/** So near to the end counts as there. */
const NEAR_PX = 48;

export function Transcript({ file, isFormatted }: { file: SessionFile; isFormatted: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const lastTop = useRef(0);
  const limit = useSignal(PARTS_DRAWN);
  const isPast = useSignal(false);
  const book = file.book.value;
  const stream = file.stream.value;
  const toEnd = useCallback(() => {
    const element = box.current;
    if (!element) return;
    element.scrollTop = element.scrollHeight;
    lastTop.current = element.scrollTop;
    isAtEnd.value = true;
  }, []);
  useLayoutEffect(() => { if (isAtEnd.peek()) toEnd(); });
  const { shown, hidden } = drawn(book, limit.value);
  return (
    <div class="transcript-frame">
      <div class="transcript" ref={box} tabIndex={0} role="region" aria-label="Transcript" onScroll={(event) => {
        const element = event.currentTarget;
        // It may have grown since it was scrolled: only whoever goes up leaves the end.
        if (element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_PX) isAtEnd.value = true;
        else if (element.scrollTop < lastTop.current) isAtEnd.value = false;
        lastTop.current = element.scrollTop;
      }}>
        {isPast.value || isWordless(book) ? <Past id={file.id} /> : (
          <>
            <Before book={book} id={file.id} hidden={hidden} onPast={() => { isPast.value = true; }} onMore={() => { isAtEnd.value = false; limit.value *= 2; }} />
            {shown.length === 0 && stream.kind !== "opening" ? (
              <Empty title="Nothing has been said yet"><p>Write what is to be done below.</p></Empty>
            ) : null}
            {shown.map(({ mark, turn, skip }) => (
              <TurnBlock key={mark.streamId} mark={mark} turn={turn} skip={skip} isFormatted={isFormatted} marked={file.marked} />
            ))}
          </>
        )}
        <Working file={file} />
      </div>
      {isAtEnd.value ? null : <button type="button" class="to-live primary" onClick={toEnd}>↓ {book.view.isEnded ? "To the end" : "Jump to live"}</button>}
      <EndKey toEnd={toEnd} />
    </div>
  );
}

/** The key has a component of its own, so that it is not told anew with every word. */
const EndKey = memo(({ toEnd }: { toEnd: () => void }) => {
  useKeys("Transcript", [{ keys: "End", does: "to the end, and follow it", run: toEnd }]);
  return null;
});

/** The turns that are drawn: the last ones, with at most so many parts. */
function drawn(book: Book, limit: number): { shown: readonly { mark: Mark; turn: Turn | undefined; skip: number }[]; hidden: number } {
  const turns = new Map(book.view.turns.map((turn) => [turn.streamId, turn]));
  const shown = [];
  let left = limit;
  let hidden = 0;
  for (const mark of book.marks.toReversed()) {
    const turn = turns.get(mark.streamId);
    const count = (turn?.parts.length ?? 0) || 1;
    if (left > 0) shown.push({ mark, turn, skip: Math.max(0, count - left) });
    hidden += Math.max(0, count - Math.max(0, left));
    left -= count;
  }
  return { shown: shown.reverse(), hidden };
}

/** Whether the words of a session that is over did not come with its stream. */
const isWordless = ({ view, marks }: Book): boolean => view.isEnded && view.turns.length === 0 && marks.some((mark) => mark.streamId !== "");

/** What is not in the page, said plainly. */
function Before({ book, id, hidden, onPast, onMore }: { book: Book; id: string; hidden: number; onPast: () => void; onMore: () => void }) {
  const { view } = book;
  const isCut = view.held.leftOut > 0 || view.hasGap;
  return (
    <>
      {isCut ? (
        <p class="left-out dim">
          Not all of the output is here; the whole is in <code>baton session show {id} --transcript</code>
          {view.isEnded ? <> <button type="button" onClick={onPast}>Show it</button></> : null}
        </p>
      ) : null}
      {hidden > 0 ? <p class="left-out"><button type="button" onClick={onMore}>Show more of what was before ({plural(hidden, "part")})</button></p> : null}
    </>
  );
}

interface TurnProps {
  mark: Mark;
  turn: Turn | undefined;
  skip: number;
  isFormatted: boolean;
  marked: Signal<string | undefined>;
}

const BEGINNINGS: { readonly [reason: string]: string } = {
  user_input: "Prompt", tools_completed: "After its tools", hooks_completed: "After the hooks", retry: "Tried again", spawned: "Before the first turn",
};

const TurnBlock = memo(({ mark, turn, skip, isFormatted, marked }: TurnProps) => {
  const parts = turn?.parts ?? [];
  const first = turn?.leftOut ?? 0;
  const called = new Set(parts.map((part) => (part.kind === "tool_call" ? part.callId : "")));
  const answeredOf = (callId: string | undefined) => (callId === undefined ? undefined : mark.answers.findLast((answered) => answered.asked.callId === callId));
  const others = mark.answers.filter(({ asked }) => asked.callId === undefined || !(called.has(asked.callId) || mark.tools.some((run) => run.callId === asked.callId)));
  return (
    <section class="turn" aria-label={BEGINNINGS[mark.reason] ?? "Turn"}>
      <h3 class="turn-head dim">{BEGINNINGS[mark.reason] ?? "Turn"}{mark.at > 0 ? <> · <Time at={mark.at} /></> : null}</h3>
      {mark.prompt ? <div class="said is-user"><Text text={mark.prompt} /></div> : null}
      {mark.prompt === "" ? <p class="said is-status dim">What it was told is not in this page; the transcript has it.</p> : null}
      {parts.slice(skip).map((part, at) => part.kind === "tool_call"
        ? <Call key={first + skip + at} call={part} run={mark.tools.findLast((run) => run.callId === part.callId)} answered={answeredOf(part.callId)} marked={marked} />
        : <Said key={first + skip + at} part={part} isFormatted={isFormatted} />)}
      <Plan plan={turn?.plan} />
      {mark.tools.filter((run) => !called.has(run.callId)).map((run) => (
        <Call key={run.runId} call={undefined} run={run} answered={answeredOf(run.callId)} marked={marked} />
      ))}
      {others.map(({ asked, answer, by }) => (
        <p key={asked.id} class="said is-status dim"><bdi>{oneLine(asked.title, 200)}</bdi>: {answer === "allow" ? "allowed" : answer === "deny" ? "denied" : oneLine(answer, 400)} by {oneLine(by, 40)}</p>
      ))}
      {mark.hooks.map((run) => <Hook key={run.runId} run={run} marked={marked} />)}
      {mark.errors.map((error, at) => (
        <p key={at} class={`said ${error.isWarning ? "is-warning" : "is-error"}`}><Sign kind={error.isWarning ? "warn" : "bad"}>{error.code}</Sign> <bdi>{oneLine(error.message, 1000)}</bdi></p>
      ))}
      {turn?.end?.type === "completed" && turn.end.reason !== "end_turn" ? <p class="said is-status dim">It ended: <bdi>{oneLine(String(turn.end.reason), 200)}</bdi></p> : null}
      {turn?.end?.type === "error" && mark.errors.length === 0 ? <p class="said is-error"><Sign kind="bad">failed</Sign> <bdi>{oneLine(turn.end.message, 1000)}</bdi></p> : null}
    </section>
  );
});

/** That something is under way, where nothing else says so. */
function Working({ file }: { file: SessionFile }) {
  const state = useComputed(() => file.book.value.view.state).value;
  const isAsking = useComputed(() => file.book.value.view.pendingPermissions.length > 0).value;
  if (state !== "calling_llm" && state !== "executing_tools" && state !== "post_tools_hook" && state !== "starting") return null;
  return <p class="working dim" role="status"><span class="dot" aria-hidden="true" /> {state === "starting" ? "The agent is starting" : isAsking ? "The agent waits for an answer" : "The agent is at work"}</p>;
}
