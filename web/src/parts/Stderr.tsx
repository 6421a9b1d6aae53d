// What a process wrote on its standard error, as far as it was kept: its beginning and its end.

import type { TerminationInfo } from "@baton/sdk";
import { Text } from "./Text.js";

export function StderrText({ stderr }: { stderr: NonNullable<TerminationInfo["stderr"]> }) {
  return (
    <div class="stderr">
      <h4>Standard error, {stderr.total_lines} {stderr.total_lines === 1 ? "line" : "lines"}</h4>
      <Text text={stderr.head ?? ""} />
      {stderr.truncated ? <p class="dim">… lines are left out here …</p> : null}
      {stderr.tail ? <Text text={stderr.tail} /> : null}
    </div>
  );
}
