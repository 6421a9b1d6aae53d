// What the transcript of a session adds to what was told of it: prompts that were written elsewhere, and the last words before an end that nobody heard.
// Plain functions, as in `book.ts`.

import { emptyView, reduce, type SessionItem, type Transcript, type TurnPart } from "@baton/sdk";
import type { Book, Mark } from "./book.js";

type Line = Transcript["lines"][number];

/** So often is looked for a prompt that the transcript does not have. */
const LOOKS_MAX = 6;
/** So much of what was said last is looked for where the beginning is not known any more. */
const PROBE_CHARS = 2000;

const isLacking = ({ reason, prompt, isGuess }: Mark): boolean => reason === "user_input" && (prompt === undefined || isGuess);

/** Whether it is not known for sure what a turn was told. */
export const lacksPrompt = (book: Book): boolean => book.marks.some(isLacking);

/** Prompts as the transcript has them, each of its turn. What it does not have after some looks is empty, or what was guessed. */
export function withPrompts(book: Book, lines: readonly Line[]): Book {
  const found = new Map(lines.filter((line) => line["kind"] === "prompt").map((line) => [line["streamId"], String(line["text"] ?? "")]));
  const filled = (mark: Mark): Mark => {
    const prompt = found.get(mark.streamId);
    if (prompt !== undefined) return prompt === mark.prompt && !mark.isGuess ? mark : { ...mark, prompt, isGuess: false };
    if (!isLacking(mark)) return mark;
    const looks = mark.looks + 1;
    return looks < LOOKS_MAX ? { ...mark, looks } : { ...mark, looks, prompt: mark.prompt ?? "", isGuess: false };
  };
  return { ...book, marks: book.marks.map(filled) };
}

/** What was taken for the prompt of a turn is not: it was not sent. */
export const withoutGuess = (book: Book): Book =>
  ({ ...book, prompt: undefined, marks: book.marks.map((mark) => (mark.isGuess ? { ...mark, prompt: undefined, isGuess: false } : mark)) });

/** The last words of a session that is over, as the transcript has them, where it has more of them than were heard. */
export function withTail(book: Book, lines: readonly Line[]): Book {
  const first = book.marks.findLastIndex((mark) => mark.reason === "user_input");
  const own = new Set(book.marks.slice(Math.max(0, first)).map((mark) => mark.streamId));
  const turns = book.view.turns.filter((turn) => own.has(turn.streamId));
  const [turn] = turns;
  if (!turn) return book;
  const since = lines.slice(lines.findLastIndex((line) => line["kind"] === "prompt") + 1);
  const kept = since.reduce((view, line, at) => reduce(view, itemOf(line, turn.streamId, at + 1)), emptyView()).turns[0];
  const isCut = turns.some((other) => other.leftOut !== undefined);
  if (!kept || !isMore(textOf(kept.parts), textOf(turns.flatMap((other) => other.parts)), isCut)) return book;
  const { leftOut, ...rest } = turn;
  const whole = { ...rest, parts: kept.parts, ...(kept.leftOut === undefined ? {} : { leftOut: kept.leftOut }) };
  const told = book.view.turns.map((other) => (other === turn ? whole : own.has(other.streamId) ? { ...other, parts: [] } : other));
  return { ...book, view: { ...book.view, turns: told } };
}

/** A line of the transcript as it was told when it was said. */
function itemOf(line: Line, streamId: string, seq: number): SessionItem {
  const { kind, text, callId, toolName, output, error } = line;
  const event = kind === "text" ? { type: "text_delta", payload: { text, role: "assistant" } }
    : kind === "thought" ? { type: "thinking_delta", payload: { text } }
      : kind === "tool" ? { type: "tool_call_completed", payload: { callId, toolName, output, error } }
        : { type: "metadata", payload: {} };
  return { kind: "stream_event", at: seq, event: { streamId, seq, ...event } } as unknown as SessionItem;
}

const textOf = (parts: readonly TurnPart[]): string => parts.map((part) => (part.kind === "text" ? part.text : "")).join("");

/** Whether more was kept than is known. Where the beginning is not known any more, what was said last is looked for. */
function isMore(kept: string, known: string, isCut: boolean): boolean {
  if (!isCut) return kept.length > known.length;
  const probe = known.slice(-PROBE_CHARS);
  const at = kept.lastIndexOf(probe);
  return at >= 0 && at + probe.length < kept.length;
}
