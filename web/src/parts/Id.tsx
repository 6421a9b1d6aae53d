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

export function Id({ id, text }: { id: string; text?: string }) {
  return (
    <button type="button" class="id" title={`${id}: copy`} onClick={() => void copy(id, id)}>
      {text ?? shortId(id)}
    </button>
  );
}
