// What a person may do to a task now, as the server decides it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Allowed, Status, TaskActions } from "@baton/sdk";
import { fetched } from "./failure.js";
import { client } from "./live.js";
import type { Fetched } from "./store.js";

export const getActions = (id: string): Promise<Fetched<TaskActions>> => fetched(client.getTaskActions(id));

/** Whether a task may be moved there. */
export const moveTo = (actions: TaskActions, to: Status): Allowed =>
  actions.moves.find((move) => move.to === to) ?? { allowed: false, why: "it is there already" };

interface Asked {
  actions: Fetched<TaskActions>;
  again: () => void;
  /** What is known, or will be: for whoever is faster than the answer. */
  known: () => Promise<TaskActions | undefined>;
}

/** What may be done to a task, asked again whenever it has changed; what was known stays until the answer comes. */
export function useActions(id: string, rev: number | undefined): Asked {
  const [actions, setActions] = useState<Fetched<TaskActions>>({ kind: "loading" });
  const [count, setCount] = useState(0);
  const coming = useRef<Promise<Fetched<TaskActions>> | undefined>(undefined);
  useEffect(() => {
    let isCurrent = true;
    coming.current = getActions(id);
    void coming.current.then((came) => { if (isCurrent) setActions(came); });
    return () => { isCurrent = false; };
  }, [id, rev, count]);
  const known = async () => {
    const came = actions.kind === "ready" ? actions : await (coming.current ??= getActions(id));
    return came?.kind === "ready" ? came.value : undefined;
  };
  return { actions, again: () => setCount(count + 1), known };
}
