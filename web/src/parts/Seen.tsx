// For dialogs in which a task is judged: what it was when they were opened, and what became of it meanwhile.

import type { Task } from "@baton/sdk";
import { useState } from "preact/hooks";
import { changeInWords, isSameToJudge, seenOf, type Seen } from "../state/seen.js";

interface Looked {
  /** What is judged. */
  seen: Seen | undefined;
  /** What it became meanwhile, where that is another thing to judge. */
  change: string | undefined;
  /** From now on it is judged as it is now. */
  lookAgain: () => void;
}

export function useSeen(task: Task | undefined): Looked {
  const now = task === undefined ? undefined : seenOf(task);
  const [seen, setSeen] = useState(now);
  const isOther = seen !== undefined && now !== undefined && !isSameToJudge(seen, now);
  return { seen, change: isOther ? changeInWords(seen, now) : undefined, lookAgain: () => setSeen(now) };
}

export function Changed({ words, onLook }: { words: string; onLook: () => void }) {
  return (
    <p class="problem" role="alert">This is not what you looked at any more: {words}. <button type="button" onClick={onLook}>Judge it as it is now</button></p>
  );
}
