// Checked by the compiler alone: what people write with these types, and what must not pass.

import { BatonError, Client, emptyView, reduce, type LedgerRecord, type Session, type SessionView, type Task, type TerminationInfo } from "../src/index.js";

export async function uses(client: Client): Promise<void> {
  const task: Task = await client.createTask({ title: "Work", status: "ready", dependsOn: ["TASK-1"] });
  const extra: unknown = task["createdAt"];
  await client.editTask(task.id, { title: String(extra) }, { ifMatch: task, signal: AbortSignal.timeout(1000) });
  // @ts-expect-error A title is needed.
  await client.createTask({});
  // @ts-expect-error A task begins in the backlog or is ready.
  await client.createTask({ title: "x", status: "done" });
  // @ts-expect-error There is no such field.
  await client.createTask({ title: "x", titel: "y" });
  // @ts-expect-error In whose name has to be said.
  await client.appendEvents("trc_1", { type: "note" });

  for await (const record of client.followEvents({ type: ["task.created"] })) {
    const position: number = record.pos;
    const { payload }: LedgerRecord = record;
    void [position, payload];
  }

  let view: SessionView = emptyView();
  for await (const item of client.followSession("sess_1")) {
    view = reduce(view, item);
    if (item.kind === "state_event" && item.event.type === "state_changed") item.event.to satisfies string;
    if (item.kind === "ended") item.terminationInfo?.stderr?.head satisfies string | undefined;
  }
  // @ts-expect-error A view is never changed.
  view.state = "ready";

  const session: Session = await client.getSession("sess_1");
  const info: TerminationInfo | undefined = session.terminationInfo;
  if (info?.cause === "quota") info.resets_at satisfies string | undefined;
  // @ts-expect-error There is no such cause.
  void (info?.cause === "boredom");
}

export function explains(error: unknown): string {
  return error instanceof BatonError ? `${error.code} ${error.status} ${error.hint ?? ""}` : "";
}
