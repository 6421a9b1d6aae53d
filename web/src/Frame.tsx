// What stands around every screen: the rail, what needs a person, how the connection is, the keys, and what was said.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { KINDS, Needs } from "./Needs.js";
import { back, go, place } from "./router.js";
import { Dialog } from "./parts/Dialog.js";
import { SEARCH_ID } from "./screens/board/Filters.js";
import { damage } from "./state/damage.js";
import { span } from "./state/format.js";
import { keys, useKeys } from "./state/keys.js";
import type { Need } from "./state/needs.js";
import { looksOnly } from "./state/role.js";
import { isLookedAt } from "./state/tabs.js";
import { dismiss, link, needs, now, sessionsLoading, tasksLoading, toasts } from "./state/store.js";
import { oneLine } from "./state/text.js";
import { nextTheme, theme } from "./state/theme.js";

/** The screens, each with its sign as the strokes of a drawing of 16 by 16. */
const RAIL = [
  { path: "/", name: "Board", sign: "M2 3h3v10H2zM6.5 3h3v6h-3zM11 3h3v8h-3z", key: "g b", screens: ["board", "task"] },
  { path: "/sessions", name: "Sessions", sign: "M2 4h12v8H2zM4.5 6.5l2 1.5-2 1.5M8 10h3", key: "g s", screens: ["sessions", "session"] },
  { path: "/traces", name: "Traces", sign: "M6 2.5h4v4H6zM6 9.5h4v4H6zM8 6.5v3", key: "g t", screens: ["traces", "trace"] },
  { path: "/health", name: "Health", sign: "M1.5 8h3l2-4.5 3 9 2-4.5h3", key: "g h", screens: ["health"] },
];

export function Frame({ children }: { children: ComponentChildren }) {
  // Signals: a key may come before what the one before it changed is drawn.
  const isHelp = useSignal(false);
  const isNeeds = useSignal(false);
  useKeys("Everywhere", [
    ...RAIL.map((item) => ({ keys: item.key, does: `go to ${item.name.toLowerCase()}`, run: () => go(item.path) })),
    { keys: "Ctrl+k", does: "search the tasks", run: () => searchTasks() },
    { keys: "!", does: "what needs a person", run: () => { isNeeds.value = !isNeeds.value; } },
    { keys: "?", does: "these keys", run: () => { isHelp.value = true; } },
    { keys: "Escape", does: "back", run: () => { if (isNeeds.value) isNeeds.value = false; else if (place.value.screen !== "board") back(); } },
  ]);
  useNotices();
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
      <nav class="rail" aria-label="Screens">
        {RAIL.map((item) => (
          <a key={item.path} href={item.path} aria-current={item.screens.includes(place.value.screen) ? "page" : undefined} title={`${item.name} (${item.key})`}>
            <svg class="sign" viewBox="0 0 16 16" aria-hidden="true"><path d={item.sign} /></svg><span>{item.name}</span>
          </a>
        ))}
      </nav>
      <header class="strip">
        <strong class="brand">Baton</strong>
        <LinkDot />
        {damage.value.size > 0 ? <span role="alert"><a class="mark is-bad" href="/health">✕ ledger damaged</a></span> : null}
        {looksOnly() === undefined ? null : <span class="mark is-warn" title={looksOnly()}>view only</span>}
        <span class="grows" />
        <button type="button" class={`needs-button ${needs.value.length > 0 ? "is-wanted" : ""}`} aria-expanded={isNeeds.value} onClick={() => { isNeeds.value = !isNeeds.value; }}>
          {needs.value.length === 0 ? "Nothing needs you" : `${needs.value.length} need${needs.value.length === 1 ? "s" : ""} you`}
        </button>
        <button type="button" class="quiet strip-search" onClick={searchTasks} aria-label="Search the tasks: Ctrl+K" title="Search the tasks">
          <svg class="sign" viewBox="0 0 16 16" aria-hidden="true"><path d="M11 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM10 10l4 4" /></svg><kbd>Ctrl+K</kbd>
        </button>
        <button type="button" class="quiet" onClick={nextTheme} title="Light, dark, or as the system has it">{theme.value}</button>
        <button type="button" class="quiet" onClick={() => { isHelp.value = true; }} aria-label="Keys">?</button>
      </header>
      {isNeeds.value ? <Needs onClose={() => { isNeeds.value = false; }} /> : null}
      <main id="main" tabIndex={-1}>{children}</main>
      <div class="toasts" role="log" aria-live="polite" aria-label="Messages">
        {toasts.value.map((toast) => (
          <p key={toast.id} class={`toast is-${toast.kind}`}>
            <bdi>{oneLine(toast.text, 600)}</bdi>
            <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>×</button>
          </p>
        ))}
      </div>
      {isHelp.value ? <Help onClose={() => { isHelp.value = false; }} /> : null}
    </div>
  );
}

/** To the search of the board, from wherever it is; once the board is drawn. */
function searchTasks(): void {
  if (place.value.screen !== "board") go("/");
  setTimeout(() => document.querySelector<HTMLInputElement>(`#${SEARCH_ID}`)?.select());
}

/** Whether what is shown is how things are. */
function LinkDot() {
  const state = link.value;
  const [name, text] = state.kind === "live" ? ["good", "live"]
    : state.kind === "connecting" ? ["off", "connecting"]
      : state.kind === "denied" ? ["bad", "no access"]
        : ["bad", "offline: trying again"];
  return (
    <span class={`link is-${name}`} title={state.kind === "waiting" ? state.reason : ""}>
      <span class="dot" aria-hidden="true" /><span role="status">{text}</span>
      {state.kind === "waiting" ? <span aria-hidden="true">for {span(now.value - state.since)}</span> : null}
    </span>
  );
}

/** The count in the title, and a notice on the desktop for what is new, where that is allowed. */
function useNotices(): void {
  const [known] = useState(() => ({ keys: undefined as Set<string> | undefined }));
  const all = needs.value;
  const isLoaded = tasksLoading.value.kind === "whole" && sessionsLoading.value.kind === "whole";
  const screen = place.value.screen;
  useEffect(() => {
    const name = `${screen[0]?.toUpperCase()}${screen.slice(1)} · Baton`;
    document.title = all.length > 0 ? `(${all.length}) ${name}` : name;
    // What was there before the page had loaded everything is nothing new.
    if (!isLoaded) return;
    const fresh = known.keys ? all.filter((need) => !known.keys?.has(need.key)) : [];
    known.keys = new Set(all.map((need) => need.key));
    if (fresh.length === 0 || typeof Notification === "undefined" || Notification.permission !== "granted") return;
    const first = fresh[0];
    if (first) void isLookedAt().then((isSeen) => { if (!isSeen) notify(first, fresh.length); });
  }, [all, screen, isLoaded]);
}

/** A notice on the desktop: of several tabs that tell the same, one is shown. */
function notify(first: Need, count: number): void {
  const title = count === 1 ? `${KINDS[first.kind]}: ${oneLine(first.title, 80)}` : `${count} things need you`;
  try {
    const notice = new Notification(title, { body: oneLine(first.detail, 120), tag: "baton" });
    notice.onclick = () => { window.focus(); go(first.path); };
  } catch {
    // Some browsers let only workers tell: the count in the title has to do.
  }
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      {keys.value.map((entry) => (
        <section key={entry.group}>
          <h3>{entry.group}</h3>
          <dl class="keys">{entry.keys.map((key) => <div key={key.keys}><dt><kbd>{key.keys}</kbd></dt><dd>{key.does}</dd></div>)}</dl>
        </section>
      ))}
    </Dialog>
  );
}
