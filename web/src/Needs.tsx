// What needs a person, as a list over the screen: the focus goes into it when it opens, and back to where it was when it closes.

import { useLayoutEffect, useRef } from "preact/hooks";
import { Time } from "./parts/Time.js";
import type { Need } from "./state/needs.js";
import { needs } from "./state/store.js";
import { oneLine } from "./state/text.js";

export const KINDS: { readonly [kind in Need["kind"]]: string } = {
  permission: "Permission", question: "Question", review: "Review", blocked: "Blocked", deadletter: "Given up",
};

const DRAWN_MAX = 200;
/** Down or up, by the arrows and by the letters that lists have everywhere. */
const STEPS: { readonly [key: string]: number } = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

export function Needs({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLElement>(null);
  const at = useRef(0);
  const all = needs.value;
  const canAsk = typeof Notification !== "undefined" && Notification.permission === "default";
  const links = () => [...(box.current?.querySelectorAll<HTMLElement>("li a") ?? [])];
  const focus = (index: number) => {
    const found = links();
    at.current = Math.max(0, Math.min(found.length - 1, index));
    (found[at.current] ?? box.current)?.focus();
  };
  // Before the next key, so that it is the list's.
  useLayoutEffect(() => {
    const before = document.activeElement;
    focus(0);
    return () => {
      // Whoever went on to somewhere else stays there.
      const isLost = document.activeElement === document.body || box.current?.contains(document.activeElement);
      if (isLost && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  // What is answered elsewhere leaves the list, and takes the focus with it without a word.
  useLayoutEffect(() => { if (document.activeElement === document.body) focus(at.current); }, [all]);
  return (
    <section ref={box} class="needs" aria-label="What needs you" tabIndex={-1}
      onFocusIn={(event) => { at.current = Math.max(0, links().indexOf((event.target as Element).closest("a") as HTMLElement)); }}
      onKeyDown={(event) => {
        const by = event.ctrlKey || event.metaKey || event.altKey ? undefined : STEPS[event.key];
        if (by !== undefined) focus(at.current + by);
        else if (event.key === "Escape") onClose();
        else return;
        event.preventDefault();
      }}>
      {all.length === 0 ? <p class="dim">Nothing waits for a person.</p> : (
        <ul>
          {all.slice(0, DRAWN_MAX).map((need) => (
            <li key={need.key}>
              <a href={need.path} onClick={() => { document.getElementById("main")?.focus(); onClose(); }}>
                <span class={`mark is-${need.kind === "deadletter" || need.kind === "blocked" ? "bad" : "warn"}`}>{KINDS[need.kind]}</span>
                <span class="needs-title"><bdi>{oneLine(need.title)}</bdi></span>
                <span class="dim needs-detail"><bdi>{oneLine(need.detail)}</bdi></span>
                <span class="dim"><Time at={need.since} /></span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {all.length > DRAWN_MAX ? <p class="dim">and {all.length - DRAWN_MAX} more</p> : null}
      {canAsk ? <button type="button" onClick={() => void Notification.requestPermission()}>Tell me on the desktop</button> : null}
    </section>
  );
}
