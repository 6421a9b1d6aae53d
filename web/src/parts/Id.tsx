// An id that can be copied: short to look at, whole in the clipboard.

import { shortId } from "../state/format.js";
import { tell } from "../state/store.js";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell("ok", `${what} is in the clipboard`);
  } catch {
    tell("bad", `the browser does not let this page copy: ${text}`);
  }
}

/** Among many, `isTabbed: false` leaves it out of the way of the tab key: the same id is on the screen of what it names. */
export function Id({ id, text, isTabbed = true }: { id: string; text?: string; isTabbed?: boolean }) {
  return (
    <button type="button" class="id" title={`${id}: copy`} tabIndex={isTabbed ? undefined : -1} onClick={() => void copy(id, id)}>
      {text ?? shortId(id)}
    </button>
  );
}
