// Server-sent events: bytes in, events out. Written after the event stream format of the HTML standard.

import { ConnectionError, connectionError } from "./error.js";

/** One event as it came. */
export interface ServerSentEvent {
  /** `message` where the server gave none. */
  name: string;
  /** Its position, where it has one. */
  id: number | undefined;
  data: string;
}

/** Characters of one event, at most; the largest record of a ledger is a sixteenth of it. */
const EVENT_CHARS_MAX = 16 << 20;

/** Takes text in pieces, however it is cut, and gives the events that are whole. Comments are passed over. */
export class EventParser {
  /** Pieces of a line that is not whole yet. */
  private rest: string[] = [];
  private size = 0;
  private endedInReturn = false;
  private name = "";
  private id: number | undefined;
  private data: string[] = [];

  push(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    // A line feed at the beginning belongs to a carriage return at the end of the piece before.
    const piece = this.endedInReturn && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") this.endedInReturn = text.endsWith("\r");
    const lines = piece.split(/\r\n|\r|\n/);
    const last = lines.pop() ?? "";
    for (const line of lines) {
      this.rest.push(line);
      this.take(this.rest.join(""), events);
      this.rest = [];
    }
    if (last !== "") this.rest.push(last);
    this.size = lines.length > 0 ? last.length + this.data.reduce((sum, part) => sum + part.length, 0) : this.size + last.length;
    if (this.size > EVENT_CHARS_MAX) throw new ConnectionError(`an event is longer than ${EVENT_CHARS_MAX} characters`);
    return events;
  }

  private take(line: string, events: ServerSentEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push({ name: this.name || "message", id: this.id, data: this.data.join("\n") });
      this.name = "";
      this.id = undefined;
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && /^\d+$/.test(value)) this.id = Number(value);
  }
}

/**
 * The events of a body. An event that the end of the body cuts off is none.
 *
 * A connection that is silent for `silenceMs` while it is waited for is given up: the server says every 15 seconds that it is there.
 */
export async function* eventsOf(body: ReadableStream<Uint8Array>, silenceMs: number): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, silenceMs);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Whatever becomes of it, nobody reads on.
    reader.cancel().catch(() => undefined);
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, ms: number): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionError(`the server was silent for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([reader.read(), silent]);
  } catch (error) {
    throw connectionError(error);
  } finally {
    clearTimeout(timer);
  }
}
