// The focus goes with the selected card: to where keys lead, and along when the card is drawn elsewhere.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** Whether the selected card is to have the focus as soon as it is drawn. */
const isWanted = signal(false);
/** Whether a card had the focus last. An element that goes away takes the focus with it without a word. */
let isKept = false;

export function wantFocus(): void {
  isWanted.value = true;
}

/** Notices whether a card or something else has the focus. */
export function useFocusWatch(): void {
  useEffect(() => {
    const look = (event: FocusEvent) => { isKept = event.target instanceof Element && event.target.classList.contains("card-title"); };
    addEventListener("focusin", look);
    return () => removeEventListener("focusin", look);
  }, []);
}

/** For a card: takes the focus where it is meant to have it. Whoever writes somewhere is left there. */
export function useFocus(isSelected: boolean): RefObject<HTMLAnchorElement | null> {
  const element = useRef<HTMLAnchorElement>(null);
  if (isSelected) void isWanted.value;
  useLayoutEffect(() => {
    if (!isSelected || document.querySelector("dialog[open]")) return;
    const focused = document.activeElement;
    if (isWanted.peek() && !focused?.matches("input, select, textarea")) element.current?.focus({ preventScroll: true });
    else if (isKept && focused === document.body) element.current?.focus({ preventScroll: true });
    isWanted.value = false;
  });
  return element;
}
