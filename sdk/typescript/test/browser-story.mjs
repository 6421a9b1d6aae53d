// What the page of the test in a browser does. It tells its result to whoever served it.
import { BatonError, Client, emptyView, reduce } from "../src/index.ts";

async function story(token) {
  // The page has the server's own origin, as far as it can see: there is nothing to say about where it is.
  const client = new Client({ token });
  const result = {};
  for (let n = 1; n <= 3; n += 1) await client.createTask({ title: `Task ${n}` });
  result.refusal = await client.getTask("TASK-2026-01-31-999").catch((error) => error instanceof BatonError && [error.code, error.status, error.hint]);

  result.positions = [];
  let cuts = 0;
  const onStatus = async (status) => {
    if (status.type !== "live") return;
    const isCut = cuts < 2;
    cuts += 1;
    if (isCut) await fetch("/test/cut", { method: "POST" }).catch(() => undefined);
    await client.createTask({ title: isCut ? "Meanwhile" : "Last" });
  };
  for await (const record of client.followEvents({}, { onStatus, retry: { firstMs: 5, maxMs: 50 } })) {
    result.positions.push(record.pos);
    if (record.type === "task.created" && record.payload.title === "Last") break;
  }
  result.cuts = cuts;

  const session = await client.startSession({ agent: "mock" });
  await client.sendInput(session.id, { text: "permission" });
  let view = emptyView();
  let isCrashing = false;
  for await (const item of client.followSession(session.id)) {
    view = reduce(view, item);
    const [asked] = item.kind === "state_event" && item.event.type === "permission_requested" ? view.pendingPermissions : [];
    if (asked) await client.answerPermission(session.id, asked.id, { answer: "allow" });
    if (view.state === "ready" && view.turns[0]?.end && !isCrashing) {
      isCrashing = true;
      result.said = view.turns[0].parts.map((part) => part.text ?? part.toolName);
      await client.sendInput(session.id, { text: "crash 3 2" });
    }
  }
  result.terminationInfo = view.terminationInfo;

  const abort = new AbortController();
  const stopping = (status) => status.type === "live" && abort.abort();
  result.aborted = await client.followEvents({ since: 1 << 20 }, { signal: abort.signal }).next().catch((error) => error.code);
  try {
    for await (const _ of client.followEvents({}, { signal: abort.signal, onStatus: stopping })) { /* until it is aborted */ }
  } catch (error) {
    result.abort = error.name;
  }
  return result;
}

/** Runs the story, and tells how it went. */
export async function run(token) {
  const result = await story(token).catch((error) => ({ failed: String(error?.stack ?? error) }));
  await fetch("/test/result", { method: "POST", body: JSON.stringify(result) });
}

globalThis.run = run;
