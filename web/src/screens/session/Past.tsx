// What was said in a session that is over, from its transcript: the stream of it has gone by.

import type { Transcript } from "@baton/sdk";
import { useEffect, useState } from "preact/hooks";
import { Broken, Loading } from "../../parts/States.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { fetched } from "../../state/failure.js";
import { client } from "../../state/live.js";
import type { Fetched } from "../../state/store.js";
import { oneLine, shown } from "../../state/text.js";
import { Sign } from "./Sign.js";

/** Lines that are drawn; more where it is asked for. */
const LINES_DRAWN = 400;

type Line = Transcript["lines"][number];

export function Past({ id }: { id: string }) {
  const [past, setPast] = useState<Fetched<Transcript>>({ kind: "loading" });
  const [limit, setLimit] = useState(LINES_DRAWN);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    void fetched(client.getTranscript(id)).then((came) => { if (isCurrent) setPast(came); });
    return () => { isCurrent = false; };
  }, [id, tries]);
  if (past.kind === "loading") return <Loading what="what was said" />;
  if (past.kind === "broken") return <Broken what="What was said" error={past.error} retry={() => setTries(tries + 1)} />;
  const { lines, isTruncated } = past.value;
  const from = Math.max(0, lines.length - limit);
  return (
    <>
      {isTruncated ? <p class="left-out dim">Earlier output is left out; the whole is in <code>baton session show {id} --transcript</code></p> : null}
      {from > 0 ? <p class="left-out"><button type="button" onClick={() => setLimit(limit * 2)}>Show more of what was before</button></p> : null}
      {lines.slice(from).map((line, at) => <Spoken key={from + at} line={line} />)}
    </>
  );
}

function Spoken({ line }: { line: Line }) {
  const text = (name: string): string => (typeof line[name] === "string" ? line[name] : shown(line[name]));
  switch (line["kind"]) {
    case "prompt":
      return (
        <section class="turn" aria-label="Prompt">
          <h3 class="turn-head dim">Prompt · <Time at={text("at")} /></h3>
          <div class="said is-user"><Text text={text("text")} /></div>
        </section>
      );
    case "text":
      return <Text class="said" text={text("text")} />;
    case "tool":
      return (
        <details class="past-tool">
          <summary>{oneLine(text("toolName") || "a tool")}{line["error"] === undefined ? "" : " · failed"}</summary>
          <Text text={text("output") || text("error")} />
        </details>
      );
    case "permission_requested":
      return <p class="said is-status dim">asks: {oneLine(text("title"))}</p>;
    case "permission_resolved":
      return <p class="said is-status dim">answered: {oneLine(text("answer"))} by {oneLine(text("by"))}</p>;
    case "session_error":
    case "session_warning":
      return <p class="said is-error"><Sign kind="bad">{oneLine(text("code"))}</Sign> <bdi>{oneLine(text("message"), 1000)}</bdi></p>;
    default: {
      const { at: _at, v: _v, kind, ...rest } = line;
      return (
        <details class="past-tool">
          <summary>{oneLine(shown(kind))}</summary>
          <Text text={shown(rest)} />
        </details>
      );
    }
  }
}
