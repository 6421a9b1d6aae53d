// Markdown: what briefs and reports use is read, everything else is text, and nothing takes long.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { blocksOf, inlinesOf } = await load("state/markdown.ts");

const text = (inlines) => inlines.map((one) => one.text ?? (one.inner ? text(one.inner) : "")).join("");

test("blocks are told from each other", () => {
  const brief = "# Title\n\nA line\nand more.\n\n- one\n- two\n  - deeper\n\n1. first\n2. second\n\n> said\n\n```sh\nrm -rf *\n```\n\n---\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n    indented";
  const blocks = blocksOf(brief);
  assert.deepEqual(blocks.map((block) => block.kind), ["heading", "paragraph", "list", "list", "quote", "code", "rule", "table", "code"]);
  assert.equal(text(blocks[1].inner), "A line\nand more.");
  assert.equal(blocks[2].items.length, 2);
  assert.deepEqual(blocks[2].items[1].blocks.map((block) => block.kind), ["paragraph", "list"]);
  assert.equal(blocks[3].start, 1);
  assert.equal(blocks[5].text, "rm -rf *");
  assert.equal(blocks[7].rows.length, 1);
});

test("boxes are ticked or not", () => {
  const [list] = blocksOf("- [ ] open\n- [x] done\n- plain");
  assert.deepEqual(list.items.map((item) => item.checked), [false, true, undefined]);
});

test("a line has code, emphasis, links and images", () => {
  const kinds = (line) => inlinesOf(line).map((one) => one.kind);
  assert.deepEqual(kinds("a `b` **c** *d* ~~e~~"), ["text", "code", "text", "strong", "text", "em", "text", "del"]);
  assert.deepEqual(inlinesOf("[x](javascript:alert(1))")[0].href, "javascript:alert(1");
  assert.deepEqual(kinds("![x](https://a.example/x.png)"), ["image"]);
  assert.deepEqual(inlinesOf("see https://a.example/b.")[1].href, "https://a.example/b");
  // Within words an underline is a letter, and a lone mark is itself.
  assert.equal(text(inlinesOf("snake_case_name and 2 * 3 * 4")), "snake_case_name and 2 * 3 * 4");
  assert.deepEqual(kinds("snake_case_name"), ["text"]);
  assert.equal(text(inlinesOf("\\*not\\*")), "*not*");
});

test("HTML is text", () => {
  const [block] = blocksOf("<script>alert(1)</script> <b onclick=x>hi</b>");
  assert.equal(block.kind, "paragraph");
  assert.equal(text(block.inner), "<script>alert(1)</script> <b onclick=x>hi</b>");
});

test("headings, rules and dividers are what they are, with blanks at their end too", () => {
  for (const [line, level, inner] of [["# a", 1, "a"], ["## a  b ##  ", 2, "a  b"], ["#", 1, ""], ["###### ", 6, ""], ["########", 6, ""], ["   # #", 1, ""], ["#\ta # #", 1, "a #"]]) {
    const [block] = blocksOf(line);
    assert.deepEqual([block.kind, block.level, text(block.inner)], ["heading", level, inner], line);
  }
  for (const rule of ["***", "- - -  ", " _  _\t_ _", "---"]) assert.deepEqual(blocksOf(rule), [{ kind: "rule" }], rule);
  for (const plain of ["#a", "####### a", "**", "-*-", "    # a"]) assert.ok(!["heading", "rule"].includes(blocksOf(plain)[0].kind), plain);
  for (const divider of ["-|-", "| :-- | --: |  ", "|-", " --- "]) assert.equal(blocksOf(`a|b\n${divider}`)[0].kind, "table", divider);
  for (const plain of ["|", "| - x |", ":|:"]) assert.equal(blocksOf(`a|b\n${plain}`)[0].kind, "paragraph", plain);
});

test("nothing is lost, and nothing takes long", () => {
  const LONG = 100_000;
  const blanks = " ".repeat(LONG);
  const tabs = "\t".repeat(LONG);
  for (const hostile of [
    "*".repeat(50_000), "[".repeat(50_000), "`".repeat(50_001), "> ".repeat(20_000), "- ".repeat(20_000), "**a".repeat(20_000), "[a](".repeat(20_000), "|".repeat(50_000), "#".repeat(50_000), "<http://".repeat(10_000), `${"  ".repeat(5000)}- a`,
    // Blanks that may belong to what is before them or after them.
    `# a${blanks}b`, `#${blanks}#${blanks}b`, `# ${"a # ".repeat(LONG / 4)}b`, `# ${"#".repeat(LONG)}b`, `a\n# a${blanks}b`, `# a${tabs}b`,
    `*${blanks}x`, `${"* ".repeat(LONG / 2)}x`, `${"_ ".repeat(LONG / 2)}x`, `a\n-${blanks}x`, `a\n${"*  ".repeat(LONG / 3)}x`, `${"*".repeat(LONG)}x`,
    `a|b\n-${blanks}x`, `a|b\n|${blanks}x`, `a|b\n${"-|".repeat(LONG / 2)}x`, `a|b\n${"| - ".repeat(LONG / 4)}x`, `a|b\n${"-".repeat(LONG)}x`, `a|b\n${`-${" ".repeat(300)}|`.repeat(300)}x`,
    `-${blanks}x`, `1.${blanks}x`, `- [x]${blanks}x`, `${blanks}x`, `a${blanks}\nb`, `${" \n".repeat(LONG / 2)}x`, `${"    \n".repeat(LONG / 5)}x`, `${"a |\n".repeat(LONG / 4)}`,
    `[a](${blanks}x`, `[a](b${blanks}x`, `[a](b${blanks}"x`, `${"[".repeat(1000)}](${" ".repeat(998)}`.repeat(50), `${"[".repeat(900)}](${" ".repeat(500)}"${"x".repeat(598)}`.repeat(50), `${"![a](b \"".repeat(LONG / 8)}`, `${"[a](<".repeat(LONG / 5)}`,
    `https://${".".repeat(LONG)}`, "https://.".repeat(LONG / 9), `<https://${"a".repeat(LONG)}`, `${"<https://a".repeat(LONG / 10)}`,
    "*a ".repeat(LONG / 3), "_a_".repeat(LONG / 3), "~~a".repeat(LONG / 3), "\\".repeat(LONG), "``` ".repeat(LONG / 4), "a  \n".repeat(LONG / 4), `${"> - ".repeat(LONG / 4)}`, `${"- a\n\n".repeat(LONG / 5)}`, `${"```\n".repeat(LONG / 4)}`,
  ]) {
    const began = performance.now();
    blocksOf(hostile);
    const ms = performance.now() - began;
    assert.ok(ms < 5000, `${JSON.stringify(hostile.slice(0, 12))} (${hostile.length}): ${ms} ms`);
  }
});
