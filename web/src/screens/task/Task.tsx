// One task: what it is, where it has been, what was done about it, and what a person may do now.

import type { Allowed } from "@baton/sdk";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask } from "../../router.js";
import { MoveDialog } from "../../parts/MoveDialog.js";
import { ReviewDialog } from "../../parts/ReviewDialog.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Tabs } from "../../parts/Tabs.js";
import { useKeys } from "../../state/keys.js";
import { tell } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { Brief } from "./Brief.js";
import { Changes } from "./Changes.js";
import { Handoffs } from "./Handoffs.js";
import { Header } from "./Header.js";
import { Log } from "./Log.js";
import { Path } from "./Path.js";
import { Raw } from "./Raw.js";
import { Runs } from "./Runs.js";
import { TaskModel } from "./state.js";
import "./task.css";

const TABS = [
  { id: "brief", label: "Brief" }, { id: "log", label: "Work log" }, { id: "runs", label: "Runs" },
  { id: "changes", label: "Changes" }, { id: "handoffs", label: "Hand-offs" }, { id: "raw", label: "Raw" },
] as const;

/** What is asked for before it is done. */
export type Asked = "approve" | "reject" | "move";

export function TaskScreen({ id, tab }: { id: string; tab: string }) {
  const model = useMemo(() => new TaskModel(id), [id]);
  const [asked, setAsked] = useState<Asked>();
  useEffect(() => model.start(), [model]);
  const current = TABS.some((one) => one.id === tab) ? tab : "brief";
  useEffect(() => {
    model.tab.value = current;
    document.getElementById(`tab-${current}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [model, current, model.task.value === undefined]);
  const close = () => setAsked(undefined);
  const choose = (next: string) => ask({ tab: next === "brief" ? "" : next });
  const may = (what: Allowed | undefined, does: string, run: () => void) => () => {
    if (what?.allowed) run();
    else tell("bad", what ? `${does} is not possible now: ${oneLine(what.why ?? "it is not allowed")}` : "It is not known yet what can be done");
  };
  const actions = model.actions.value;
  const moves = actions?.moves.filter((move) => move.allowed) ?? [];
  useKeys("This task", [
    ...TABS.map((one, at) => ({ keys: String(at + 1), does: `show ${one.label.toLowerCase()}`, run: () => choose(one.id) })),
    { keys: "a", does: "approve", run: may(actions?.approve, "To approve", () => setAsked("approve")) },
    { keys: "x", does: "reject", run: may(actions?.reject, "To reject", () => setAsked("reject")) },
    { keys: "m", does: "move", run: may(actions && { allowed: moves.length > 0, why: "no status can follow" }, "To move", () => setAsked("move")) },
  ]);
  const task = model.task.value;
  const state = model.whole.now.value;
  if (state.kind === "broken" && state.error.code === "T001") {
    return (
      <Empty title={`There is no task ${oneLine(id, 80)}`}>
        <p>Try: <code>{oneLine(state.error.hint ?? "baton task ls")}</code></p>
        <p><a href="/">To the board</a></p>
      </Empty>
    );
  }
  if (state.kind === "broken") return <Broken what="The task" error={state.error} retry={model.whole.retry} />;
  if (task === undefined) return <Loading what="the task" />;
  return (
    <div class="screen task">
      <Header model={model} task={task} onAsk={setAsked} />
      <Path model={model} task={task} />
      <Tabs label="Parts of the task" tabs={TABS} current={current} onChoose={choose} />
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
        {current === "brief" ? <Brief model={model} task={task} /> : null}
        {current === "log" ? <Log model={model} /> : null}
        {current === "runs" ? <Runs model={model} task={task} /> : null}
        {current === "changes" ? <Changes model={model} /> : null}
        {current === "handoffs" ? <Handoffs model={model} task={task} /> : null}
        {current === "raw" ? <Raw model={model} /> : null}
      </div>
      {asked === undefined ? null : asked === "move" ? <MoveDialog id={id} onClose={close} /> : <ReviewDialog id={id} kind={asked} onClose={close} />}
    </div>
  );
}
