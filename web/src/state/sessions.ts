// The list of sessions as it is known: the newest first, each as it was when it was last asked for.

import type { Session } from "@baton/sdk";

/** A session's id: whoever appends by hand may name anything. Its beginning is the moment when it began. */
const SESSION_ID = /^sess_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const isSessionId = (text: unknown): text is string => typeof text === "string" && SESSION_ID.test(text);

/** What is known, and when each was asked for. */
export interface Known {
  sessions: readonly Session[];
  askedAt: ReadonlyMap<string, number>;
}

/** Takes in what was found of what was asked for at a time. What was named and is not there any more goes; what was asked for later stays as it is. */
export function taken({ sessions, askedAt }: Known, found: readonly Session[], at: number, named: readonly string[] = []): Known {
  const isNews = (id: string): boolean => (askedAt.get(id) ?? 0) <= at;
  const next = new Map(sessions.map((session) => [session.id, session]));
  const times = new Map(askedAt);
  for (const id of named) if (isNews(id)) next.delete(id);
  for (const session of found.filter(({ id }) => isNews(id))) {
    next.set(session.id, session);
    times.set(session.id, at);
  }
  return { sessions: [...next.values()].sort((a, b) => (a.id < b.id ? 1 : -1)), askedAt: times };
}
