// Markdown, as much of it as briefs and reports use, read into a tree: headings, paragraphs, lists, code, quotes, tables, rules; and within a line code,
// emphasis, links and images. HTML is text like any other. Every step takes something off the text, and looks ahead only so far: no input takes long.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; inner: readonly Inline[] }
  | { kind: "link"; href: string; inner: readonly Inline[] }
  | { kind: "image"; href: string; text: string }
  | { kind: "break" };

export type Block =
  | { kind: "heading"; level: number; inner: readonly Inline[] }
  | { kind: "paragraph"; inner: readonly Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; blocks: readonly Block[] }
  | { kind: "list"; start: number | undefined; items: readonly Item[] }
  | { kind: "table"; header: readonly (readonly Inline[])[]; rows: readonly (readonly (readonly Inline[])[])[] }
  | { kind: "rule" };

export interface Item {
  /** Whether it is ticked, where it has a box. */
  checked: boolean | undefined;
  blocks: readonly Block[];
}

/** How deep blocks lie in each other, and how far the end of something is looked for. */
const DEPTH_MAX = 12;
const AHEAD_MAX = 2000;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
// These three are for lines without blanks at their end: two ways to read the same blanks take long.
const HEADING = /^ {0,3}(#{1,6})(?:\s|#*$)/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}$/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/;
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])(\s+|$)/;
const QUOTE = /^ {0,3}> ?/;

/** The blocks of a text. */
export function blocksOf(text: string, depth = 0): readonly Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = oneBlock(lines, at, line, depth);
    blocks.push(block);
    at = Math.max(next, at + 1);
  }
  return blocks;
}

function oneBlock(lines: readonly string[], at: number, line: string, depth: number): [Block, number] {
  const fence = FENCE.exec(line)?.[1];
  if (fence !== undefined) return fenced(lines, at, fence);
  const short = line.trimEnd();
  const heading = HEADING.exec(short);
  if (heading) return [{ kind: "heading", level: heading[1]?.length ?? 1, inner: inlinesOf(unclosed(short.slice(heading[0].length))) }, at + 1];
  if (RULE.test(short)) return [{ kind: "rule" }, at + 1];
  if (depth < DEPTH_MAX) {
    if (QUOTE.test(line)) return quoted(lines, at, depth);
    if (ITEM.test(line)) return listed(lines, at, depth);
  }
  if (line.includes("|") && DIVIDER.test((lines[at + 1] ?? "").trimEnd())) return tabled(lines, at);
  if (/^(?: {4}|\t)/.test(line)) return indented(lines, at);
  let end = at + 1;
  while (end < lines.length && !startsBlock(lines[end] ?? "")) end += 1;
  return [{ kind: "paragraph", inner: inlinesOf(lines.slice(at, end).map((one) => one.replace(/^\s+/, "")).join("\n")) }, end];
}

/** A heading without the signs that close it. */
function unclosed(text: string): string {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trim();
}

const startsBlock = (line: string): boolean =>
  line.trim() === "" || FENCE.test(line) || HEADING.test(line.trimEnd()) || RULE.test(line.trimEnd()) || QUOTE.test(line) || /^ {0,3}(?:[-*+]|1[.)])\s/.test(line);

function fenced(lines: readonly string[], at: number, fence: string): [Block, number] {
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(fence)) end += 1;
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function indented(lines: readonly string[], at: number): [Block, number] {
  let end = at;
  while (end < lines.length && /^(?: {4}|\t|\s*$)/.test(lines[end] ?? "")) end += 1;
  return [{ kind: "code", text: lines.slice(at, end).map((line) => line.replace(/^(?: {4}|\t)/, "")).join("\n").trimEnd() }, end];
}

function quoted(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end] ?? "")) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, "")).join("\n");
  return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

function listed(lines: readonly string[], at: number, depth: number): [Block, number] {
  const items: Item[] = [];
  const first = ITEM.exec(lines[at] ?? "");
  const start = first?.[3] === undefined ? undefined : Number(first[3]);
  let next = at;
  for (;;) {
    const found = ITEM.exec(lines[next] ?? "");
    if (!found || (found[3] === undefined) !== (start === undefined)) break;
    const indent = found[0].trimEnd().length + 1;
    const own = [(lines[next] ?? "").slice(found[0].length)];
    next += 1;
    while (next < lines.length) {
      const line = lines[next] ?? "";
      const isIndented = line.startsWith(" ".repeat(Math.min(indent, 2)));
      const isBlank = line.trim() === "";
      if (isBlank ? !(lines[next + 1] ?? "").startsWith("  ") : !isIndented && (startsBlock(line) || ITEM.test(line))) break;
      own.push(line.replace(new RegExp(`^ {0,${indent}}`), ""));
      next += 1;
    }
    const box = /^\[([ xX])\]\s+/.exec(own[0] ?? "");
    if (box) own[0] = (own[0] ?? "").slice(box[0].length);
    items.push({ checked: box ? box[1] !== " " : undefined, blocks: blocksOf(own.join("\n"), depth + 1) });
    if ((lines[next] ?? "").trim() === "" && ITEM.test(lines[next + 1] ?? "")) next += 1;
  }
  return [{ kind: "list", start, items }, next];
}

function tabled(lines: readonly string[], at: number): [Block, number] {
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inlinesOf(cell.trim()));
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? "").includes("|")) end += 1;
  return [{ kind: "table", header: cells(lines[at] ?? ""), rows: lines.slice(at + 2, end).map(cells) }, end];
}

const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]] as const;

/** What stands in a line. */
export function inlinesOf(text: string, depth = 0): readonly Inline[] {
  if (depth > DEPTH_MAX) return [{ kind: "text", text }];
  const found: Inline[] = [];
  let plain = 0;
  let at = 0;
  const flush = (end: number) => {
    if (end > plain) found.push({ kind: "text", text: text.slice(plain, end) });
  };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const special = SPECIAL.exec(text);
    if (!special) break;
    at = special.index;
    const one = special[0] === "\\" ? escaped(text, at) : oneInline(text, at, depth);
    if (one === undefined) {
      at += special[0].length;
      continue;
    }
    flush(at);
    found.push(one[0]);
    at = plain = one[1];
  }
  flush(text.length);
  return found;
}

function escaped(text: string, at: number): [Inline, number] | undefined {
  const next = text[at + 1];
  if (next === "\n") return [{ kind: "break" }, at + 2];
  return next !== undefined && /[!-/:-@[-`{-~]/.test(next) ? [{ kind: "text", text: next }, at + 2] : undefined;
}

function oneInline(text: string, at: number, depth: number): [Inline, number] | undefined {
  const rest = text.slice(at, at + AHEAD_MAX);
  if (rest.startsWith("\n")) return /\s{2}$/.test(text.slice(Math.max(0, at - 2), at)) ? [{ kind: "break" }, at + 1] : undefined;
  if (rest.startsWith("`")) {
    const ticks = /^`+/.exec(rest)?.[0] ?? "`";
    const end = rest.indexOf(ticks, ticks.length);
    return end < 0 ? undefined : [{ kind: "code", text: rest.slice(ticks.length, end).trim() }, at + end + ticks.length];
  }
  const link = /^(!?)\[([^\]\n]*)\]\(\s*(?!\s)<?([^\s)>]*)>?(?:\s+["'(][^)]*)?\)/.exec(rest);
  if (link) {
    const [whole, bang = "", label = "", href = ""] = link;
    const one: Inline = bang === "!" ? { kind: "image", href, text: label } : { kind: "link", href, inner: inlinesOf(label, depth + 1) };
    return [one, at + whole.length];
  }
  const bare = /^<(https?:\/\/[^\s<>]+)>|^(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/.exec(rest);
  if (bare) {
    const href = bare[1] ?? bare[2] ?? "";
    return [{ kind: "link", href, inner: [{ kind: "text", text: href }] }, at + bare[0].length];
  }
  for (const [mark, kind] of MARKS) {
    if (!rest.startsWith(mark) || /^\s/.test(rest.slice(mark.length))) continue;
    // Within a word an underline is a letter.
    if (mark.startsWith("_") && /\w$/.test(text.slice(Math.max(0, at - 1), at))) continue;
    const end = rest.indexOf(mark, mark.length + 1);
    if (end < 0 || /\s$/.test(rest.slice(0, end))) continue;
    return [{ kind, inner: inlinesOf(rest.slice(mark.length, end), depth + 1) }, at + end + mark.length];
  }
  return undefined;
}
