// All sessions: what waits for a person first, then what runs, then what has ended.

import { useSignal } from "@preact/signals";
import type { Session } from "@baton/sdk";
import { go, sessionPath } from "../../router.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Time } from "../../parts/Time.js";
import { shortId } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { loadOlderSessions, loadSessions } from "../../state/live.js";
import { sessions, sessionsLoading, sessionsNext, tasks } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { Sign } from "./Sign.js";
import { Start } from "./Start.js";
import { endKind, endWord, stateKind, stateWord } from "./words.js";
import "./session.css";

const PAGE = 200;

const waits = (session: Session): number => session.pendingPermissions?.length ?? 0;
const isOver = (session: Session): boolean => session.state === "stopped" || session.terminationInfo !== undefined;

/** What needs somebody first, then what runs; within each the newest first, as they come. */
export function inOrder(all: readonly Session[]): readonly Session[] {
  const rank = (session: Session): number => (isOver(session) ? 2 : waits(session) > 0 ? 0 : 1);
  return all.map((session, at) => ({ session, at })).sort((a, b) => rank(a.session) - rank(b.session) || a.at - b.at).map(({ session }) => session);
}

export function SessionsScreen() {
  const isStarting = useSignal(false);
  const limit = useSignal(PAGE);
  useKeys("Sessions", [
    { keys: "n", does: "start a session", run: () => { isStarting.value = true; } },
    { keys: "j", does: "next session", run: () => step(1) },
    { keys: "k", does: "session before", run: () => step(-1) },
  ]);
  const loading = sessionsLoading.value;
  const all = inOrder(sessions.value);
  const older = sessionsNext.value;
  return (
    <div class="screen">
      <header class="head">
        <h1>Sessions</h1>
        {all.length > 0 ? <span class="dim">{all.filter((session) => !isOver(session)).length} running, {all.length} {older === undefined ? "in all" : "shown"}</span> : null}
        <span class="grows" />
        <button type="button" class="primary" onClick={() => { isStarting.value = true; }}>Start a session</button>
      </header>
      {loading.kind === "loading" ? <Loading what="the sessions" /> : null}
      {loading.kind === "broken" && all.length === 0 ? <Broken what="The sessions" error={loading.error} retry={() => void loadSessions()} /> : null}
      {loading.kind === "whole" && all.length === 0 ? (
        <Empty title="No session yet"><p>One begins when a task is handed to an agent, or when you start an agent yourself.</p></Empty>
      ) : null}
      {all.length > 0 ? <ul class="sessions" aria-label="Sessions">{all.slice(0, limit.value).map((session) => <Row key={session.id} session={session} />)}</ul> : null}
      {all.length > limit.value ? <button type="button" onClick={() => { limit.value += PAGE; }}>Show more ({all.length - limit.value})</button> : null}
      {all.length <= limit.value && older !== undefined ? <button type="button" onClick={() => { limit.value += PAGE; void loadOlderSessions(older); }}>Show older</button> : null}
      {isStarting.value ? <Start onClose={() => { isStarting.value = false; }} onStarted={(id) => go(sessionPath(id))} /> : null}
    </div>
  );
}

function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>(".sessions a")];
  const at = links.findIndex((link) => link === document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus();
}

function Row({ session }: { session: Session }) {
  const over = isOver(session);
  const task = session.taskId === undefined ? undefined : tasks.value.get(session.taskId);
  const asked = session.pendingPermissions?.[0];
  const info = session.terminationInfo;
  return (
    <li>
      <a href={sessionPath(session.id)} class={waits(session) > 0 ? "is-waiting" : ""}>
        <span class="sessions-state">
          {waits(session) > 0 && !over ? <Sign kind="warn">waits for you</Sign> : over ? <Sign kind={endKind(session)}>{endWord(session) || "ended"}</Sign> : <Sign kind={stateKind(session.state)}>{stateWord(session.state)}</Sign>}
        </span>
        <span class="sessions-agent"><strong>{session.agent}</strong> <span class="dim id">{shortId(session.id)}</span></span>
        <span class="sessions-task dim"><bdi>{asked && !over ? oneLine(asked.title, 120) : session.taskId ? oneLine(task ? `${session.taskId} ${task.title}` : session.taskId, 120) : "no task"}</bdi></span>
        <span class="sessions-time dim"><Time at={String(session["startedAt"] ?? "")} /></span>
        {over && info?.message ? <span class="sessions-why dim"><bdi>{oneLine(info.message, 200)}</bdi></span> : null}
      </a>
    </li>
  );
}
