// Unified diffs as lines with their numbers.

export interface Line {
  kind: "same" | "added" | "removed" | "hunk" | "note";
  before: number | undefined;
  after: number | undefined;
  text: string;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The lines of a patch of one file. What stands before its first hunk is its head, and left out. */
export function linesOf(patch: string): readonly Line[] {
  const lines: Line[] = [];
  let before = 0;
  let after = 0;
  let isInside = false;
  const all = patch.split("\n");
  if (all.at(-1) === "") all.pop();
  for (const raw of all) {
    const hunk = HUNK.exec(raw);
    if (hunk) {
      isInside = true;
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      lines.push({ kind: "hunk", before: undefined, after: undefined, text: raw });
      continue;
    }
    if (!isInside) continue;
    const text = raw.slice(1);
    switch (raw[0]) {
      case "+":
        lines.push({ kind: "added", before: undefined, after: after++, text });
        break;
      case "-":
        lines.push({ kind: "removed", before: before++, after: undefined, text });
        break;
      case "\\":
        lines.push({ kind: "note", before: undefined, after: undefined, text: text.trim() });
        break;
      default:
        lines.push({ kind: "same", before: before++, after: after++, text });
    }
  }
  return lines;
}

const AROUND = 2;

/** What is different between two texts: the lines in the middle, with a few around them. */
export function lineChanges(before: string, after: string): readonly Line[] {
  const old = before.split("\n");
  const young = after.split("\n");
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < young.length - head && old.at(-1 - tail) === young.at(-1 - tail)) tail += 1;
  const lines: Line[] = [];
  const same = (at: number, shift: number): void => {
    lines.push({ kind: "same", before: at + 1, after: at + 1 + shift, text: old[at] ?? "" });
  };
  for (let at = Math.max(0, head - AROUND); at < head; at += 1) same(at, 0);
  for (let at = head; at < old.length - tail; at += 1) lines.push({ kind: "removed", before: at + 1, after: undefined, text: old[at] ?? "" });
  for (let at = head; at < young.length - tail; at += 1) lines.push({ kind: "added", before: undefined, after: at + 1, text: young[at] ?? "" });
  for (let at = old.length - tail; at < Math.min(old.length, old.length - tail + AROUND); at += 1) same(at, young.length - old.length);
  return lines;
}
