// Sessions that were recorded (fixtures/sessions), as the items of their streams.
import { readFileSync, readdirSync } from "node:fs";

const folder = new URL("../../fixtures/sessions/", import.meta.url);
export const NAMES = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -6));
export const viewOf = (name) => JSON.parse(readFileSync(new URL(`${name}.view.json`, folder), "utf8"));

/** When each of them begins. */
export const BEGAN = 1_770_000_000_000;

export const itemsOf = (name) => readFileSync(new URL(`${name}.jsonl`, folder), "utf8").trim().split("\n").map((line) => {
  const { id, event, data } = JSON.parse(line);
  if (event === "ended") return { kind: "ended", at: id, terminationInfo: data.reason === undefined ? undefined : data };
  if (event === "gap") return { kind: "gap", at: id, resumeFrom: data.resumeFrom };
  return { kind: event, at: id, event: data };
});
