// What a record cites: where it is, how large, a look at its text, and whether it is still what was cited.

import { useEffect, useState } from "preact/hooks";
import { Mark } from "../../parts/Badge.js";
import { Id } from "../../parts/Id.js";
import { Text } from "../../parts/Text.js";
import { fetched, inWords } from "../../state/failure.js";
import { bytes, shortHash } from "../../state/format.js";
import { client } from "../../state/live.js";
import type { Fetched } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { canHash, sha256, type Artifact } from "./record.js";

/** What is larger is downloaded, not shown. */
const PREVIEW_BYTES_MAX = 1_000_000;
const PREVIEW_CHARS = 8000;

export function Artifacts({ all, isOpen = false }: { all: readonly Artifact[]; isOpen?: boolean }) {
  return <ul class="record-artifacts">{all.map((artifact, at) => <One key={`${at} ${artifact.sha256}`} artifact={artifact} isOpen={isOpen} />)}</ul>;
}

interface Looked {
  text: string | undefined;
  hash: string | undefined;
}

async function look(artifact: Artifact, signal: AbortSignal): Promise<Looked> {
  const found = (await client.getArtifact(artifact.sha256, { signal })) as Uint8Array<ArrayBuffer>;
  const hash = canHash() ? await sha256(found) : undefined;
  try {
    return { hash, text: new TextDecoder("utf-8", { fatal: true }).decode(found) };
  } catch {
    return { hash, text: undefined };
  }
}

function One({ artifact, isOpen }: { artifact: Artifact; isOpen: boolean }) {
  const [isShown, setShown] = useState(isOpen);
  const [found, setFound] = useState<Fetched<Looked>>({ kind: "loading" });
  const isSmall = artifact.bytes <= PREVIEW_BYTES_MAX;
  useEffect(() => {
    if (!isShown || !isSmall) return;
    const stopped = new AbortController();
    void fetched(look(artifact, stopped.signal)).then((came) => { if (!stopped.signal.aborted) setFound(came); });
    return () => stopped.abort();
  }, [isShown, artifact.sha256]);
  return (
    <li>
      <p class="record-artifact">
        <a href={`/v1/artifacts/${encodeURIComponent(artifact.sha256)}`} download={artifact.sha256}><bdi>{oneLine(artifact.name, 80)}</bdi></a>
        <span class="dim">{oneLine(artifact.media_type, 60)}, {bytes(artifact.bytes)}</span>
        <Id id={artifact.sha256} text={shortHash(artifact.sha256)} />
        {isSmall ? <button type="button" class="more" aria-expanded={isShown} onClick={() => setShown(!isShown)}>{isShown ? "Hide" : "Look at it"}</button> : null}
      </p>
      {isShown && isSmall ? <Preview found={found} artifact={artifact} /> : null}
    </li>
  );
}

function Preview({ found, artifact }: { found: Fetched<Looked>; artifact: Artifact }) {
  if (found.kind === "loading") return <p class="dim">Loading…</p>;
  if (found.kind === "broken") return <p class="text-bad"><Mark kind="bad">not there</Mark> {inWords(found.error)}</p>;
  const { text, hash } = found.value;
  return (
    <>
      {hash === undefined ? null : hash === artifact.sha256 ? <p><Mark kind="good">its hash is the cited one</Mark></p> : <p><Mark kind="bad">its hash is another one</Mark> <code>{hash}</code></p>}
      {text === undefined ? <p class="dim">It is no text.</p> : text === "" ? <p class="dim">It is empty.</p> : <Text text={text} max={PREVIEW_CHARS} />}
    </>
  );
}
