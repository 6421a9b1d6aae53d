// Keys: what each does here and now. Screens add theirs while they are shown; `?` lists them all.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Key {
  /** As it is typed: `j`, `Enter`, or `g b` for one after the other. */
  keys: string;
  does: string;
  run: () => void;
}

export const keys = signal<readonly { group: string; keys: readonly Key[] }[]>([]);
const WAIT_MS = 1500;
const MOVES = new Set(["h", "j", "k", "l", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);
let before: { key: string; at: number } | undefined;

/** Gives keys a meaning as long as whoever uses this is shown. */
export function useKeys(group: string, own: readonly Key[]): void {
  useEffect(() => {
    const entry = { group, keys: own };
    keys.value = [...keys.value, entry];
    return () => { keys.value = keys.value.filter((other) => other !== entry); };
  });
}

/** Listens, once. Whoever writes somewhere is left alone, and so is whoever has a dialog open. */
export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.metaKey || event.altKey) return;
    // A key that is held down says once what it means, unless it goes through a list: whoever holds `a` allows one thing.
    if (event.repeat && !MOVES.has(event.key)) return;
    const name = event.ctrlKey ? `Ctrl+${event.key.toLowerCase()}` : event.key;
    const target = event.target instanceof Element ? event.target : null;
    if (!event.ctrlKey && target?.closest("input, textarea, select, [contenteditable]")) return;
    // A dialog has its own keys, and the browser closes it with Escape.
    if (document.querySelector("dialog[open]")) return;
    // What has the focus does its own with these.
    if ((name === "Enter" || name === " ") && target?.closest("a, button, summary, [role=button], [role=tab]")) return;
    const now = Date.now();
    const chord = before !== undefined && now - before.at < WAIT_MS ? `${before.key} ${name}` : undefined;
    const all = keys.value.flatMap((entry) => entry.keys).reverse();
    const found = all.find((key) => key.keys === chord) ?? all.find((key) => key.keys === name);
    before = all.some((key) => key.keys.startsWith(`${name} `)) ? { key: name, at: now } : undefined;
    if (found) {
      event.preventDefault();
      before = undefined;
      found.run();
    } else if (before) {
      event.preventDefault();
    }
  });
}
