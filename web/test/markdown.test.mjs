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

test("nothing is lost, and nothing takes long", () => {
  for (const hostile of ["*".repeat(50_000), "[".repeat(50_000), "`".repeat(50_001), "> ".repeat(20_000), "- ".repeat(20_000), "**a".repeat(20_000), "[a](".repeat(20_000), "|".repeat(50_000), "#".repeat(50_000), "<http://".repeat(10_000), `${"  ".repeat(5000)}- a`]) {
    const began = performance.now();
    blocksOf(hostile);
    assert.ok(performance.now() - began < 5000, hostile.slice(0, 8));
  }
});
