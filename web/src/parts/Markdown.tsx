// Markdown as elements of the page: each part of the tree becomes an element of ours. HTML in it stays text, and a link leads to the web or nowhere.
// No string ever becomes markup.

import type { ComponentChildren } from "preact";
import { blocksOf, type Block, type Inline } from "../state/markdown.js";
import { plain } from "../state/text.js";
import { Text } from "./Text.js";

/** A text that is longer is shown as it is. */
const CHARS_MAX = 200_000;

export function Markdown({ text }: { text: string }) {
  if (text.length > CHARS_MAX) return <Text text={text} />;
  return <div class="markdown" dir="auto">{all(blocksOf(plain(text)))}</div>;
}

/** Where a link may lead: the web, or mail. */
export function safeLink(href: string): string | undefined {
  try {
    const url = new URL(href);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

const all = (blocks: readonly Block[]): ComponentChildren => blocks.map((block, at) => <One key={at} block={block} />);
const line = (inlines: readonly Inline[]): ComponentChildren => inlines.map((inline, at) => <Piece key={at} inline={inline} />);

function One({ block }: { block: Block }): ComponentChildren {
  switch (block.kind) {
    case "heading": {
      // Below the headings of the page itself.
      const Level = `h${Math.min(6, block.level + 2)}` as "h3";
      return <Level>{line(block.inner)}</Level>;
    }
    case "paragraph":
      return <p>{line(block.inner)}</p>;
    case "code":
      return <pre class="text" tabIndex={0}><code>{block.text}</code></pre>;
    case "quote":
      return <blockquote>{all(block.blocks)}</blockquote>;
    case "rule":
      return <hr />;
    case "list": {
      const items = block.items.map((item, at) => (
        <li key={at} class={item.checked === undefined ? "" : "is-task"}>
          {item.checked === undefined ? null : <span role="img" aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑ " : "☐ "}</span>}
          {item.blocks.length === 1 && item.blocks[0]?.kind === "paragraph" ? line(item.blocks[0].inner) : all(item.blocks)}
        </li>
      ));
      return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div class="scrolls" tabIndex={0}><table>
          <thead><tr>{block.header.map((cell, at) => <th key={at}>{line(cell)}</th>)}</tr></thead>
          <tbody>{block.rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{line(cell)}</td>)}</tr>)}</tbody>
        </table></div>
      );
  }
}

function Piece({ inline }: { inline: Inline }): ComponentChildren {
  switch (inline.kind) {
    case "text":
      return inline.text;
    case "code":
      return <code>{inline.text}</code>;
    case "strong":
      return <strong>{line(inline.inner)}</strong>;
    case "em":
      return <em>{line(inline.inner)}</em>;
    case "del":
      return <del>{line(inline.inner)}</del>;
    case "break":
      return <br />;
    case "image":
      // Nothing is loaded from elsewhere.
      return <span class="dim">[image: {inline.text || inline.href}]</span>;
    case "link": {
      const to = safeLink(inline.href);
      if (to === undefined) return <span title={inline.href}>{line(inline.inner)}</span>;
      return <a href={to} title={to} target="_blank" rel="noopener noreferrer nofollow">{line(inline.inner)}</a>;
    }
  }
}
