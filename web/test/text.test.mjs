// Text of agents: whatever it holds, it is seen and does nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { plain, oneLine, shown } = await load("state/text.ts");

test("ordinary text stays as it is", () => {
  for (const text of ["", "a b", "tab\there", "two\nlines", "Ünïcödé 漢字 👩‍💻".replace("\u200d", ""), "<b>&amp;</b>"]) assert.equal(plain(text), text);
});

test("line ends become one kind", () => assert.equal(plain("a\r\nb\rc\nd"), "a\nb\nc\nd"));

test("what a terminal would act on is gone or shown by its number", () => {
  assert.equal(plain("\u001b[31mred\u001b[0m"), "red");
  assert.equal(plain("\u001b]0;title\u0007after"), "after");
  assert.equal(plain("\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\"), "link");
  assert.equal(plain("bell\u0007"), "bell\\x07");
  assert.equal(plain("nul\u0000"), "nul\\x00");
  assert.equal(plain("c1\u009b31m"), "c1\\x9b31m");
  assert.equal(plain("alone\u001b"), "alone\\x1b");
});

test("what turns, joins or hides is shown by its number", () => {
  assert.equal(plain("a\u202egpj.exe"), "a\\u202egpj.exe");
  assert.equal(plain("zero\u200bwidth"), "zero\\u200bwidth");
  assert.equal(plain("\ufeffbom"), "\\ufeffbom");
  assert.equal(plain("\u2066isolate\u2069"), "\\u2066isolate\\u2069");
  assert.equal(plain("pay\u00adpal"), "pay\\u00adpal", "a hyphen that is not seen");
  assert.equal(plain("a\u034fb"), "a\\u034fb", "a joiner without a form");
  assert.equal(plain("\u3164name"), "\\u3164name", "a letter without a form");
  assert.equal(plain("\u115f\u1160\uffa0"), "\\u115f\\u1160\\uffa0");
  assert.equal(plain("do\u{e0041}\u{e007f} it"), "do\\u{e0041}\\u{e007f} it", "text in characters that are never seen");
  assert.equal(plain("half \ud83d, a face \u{1f600}"), "half \ud83d, a face \u{1f600}");
});

test("a long sequence that never ends costs no time", () => {
  const began = performance.now();
  plain(`\u001b]${"x".repeat(200_000)}`.repeat(3));
  plain("\u001b[".repeat(100_000));
  assert.ok(performance.now() - began < 2000);
});

test("one line is one line, cut where it is long", () => {
  assert.equal(oneLine("  a\n\n b\t c "), "a b c");
  assert.equal(oneLine("x".repeat(300)).length, 200);
  assert.equal(oneLine("x".repeat(300), 10), "xxxxxxxxx…");
  assert.equal(oneLine("x".repeat(5_000_000), 10), "xxxxxxxxx…");
});

test("whatever a value is, it is text", () => {
  const circle = {};
  circle.self = circle;
  assert.equal(shown("a"), "a");
  assert.equal(shown(undefined), "");
  assert.equal(shown(null), "null");
  assert.equal(shown({ a: [1] }), '{\n  "a": [\n    1\n  ]\n}');
  assert.equal(shown(circle), "[object Object]");
  assert.equal(shown(10n), "10");
});

test("what is no text at all is shown as what it is", () => {
  for (const [odd, line] of [[null, "null"], [undefined, ""], [{}, "{}"], [7, "7"], [["a"], '[ "a" ]']]) assert.equal(oneLine(odd), line);
});
