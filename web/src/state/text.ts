// Text that comes from agents, made fit to be shown: whatever it holds, it is seen and does nothing.

/** Characters that are shown of one text before more is asked for. */
export const SHOWN_MAX = 20_000;

const ESCAPE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// What turns the direction of writing, joins or hides: shown by its number, so that nothing looks like what it is not.
const TRICKS = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** The same text without what a terminal or a direction of writing would act on. Colours are left out, everything else is shown by its number. */
export function plain(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(ESCAPE, "")
    .replace(CONTROLS, (found) => (found === "\t" ? found : `\\x${code(found, 2)}`))
    .replace(TRICKS, (found) => `\\u${found.length > 1 ? `{${code(found, 5)}}` : code(found, 4)}`);
}

const code = (found: string, digits: number): string => (found.codePointAt(0) ?? 0).toString(16).padStart(digits, "0");

/** One line of a text, cut where it is long. What is no text, against all that was agreed, is shown as what it is. */
export function oneLine(text: string, max = 200): string {
  const line = plain(shown(text).slice(0, max * 4)).replace(/\s+/g, " ").trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** Whatever a value is, as text to be read. */
export function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return String(value);
  }
}
