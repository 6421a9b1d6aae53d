// What the tests of traces stand on: traces that are made, guarded runs that are begun, and where the page shows them.
import { binary, until } from "./support.mjs";

export const lines = (count, payload = (n) => ({ n })) => Array.from({ length: count }, (_, n) => JSON.stringify({ type: "note", payload: payload(n) })).join("\n");

/** A trace with so many notes. */
export async function trace(server, count, payload) {
  const { trace: id } = await server.json(["trace", "new", "--title", "what was noted"]);
  await server.baton(["trace", "append", id, "--agent", "me"], { input: lines(count, payload) });
  return id;
}

export const row = (page, seq) => page.locator(`.record[data-seq="${seq}"]`);
export const verdict = (page) => page.getByRole("status", { name: "Verdict" });
export const isWithin = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth);

/** The agents of a guarded run; without a critic people review. */
export const team = (critic, more = "") => `${["ada", "bob", "cleo", "dora"].map((name) => `[agents.${name}]\nharness = "acp"\ncommand = [${JSON.stringify(binary)}, "mock-agent"]\n${name === "bob" ? "fs = true\nterminal = true\n" : ""}`).join("")}
[team]\nplanner = "ada"\nexecutor = "bob"\n${critic ? 'critic = "cleo"\n' : ""}auditor = "dora"\n${more}`;

/** The trace of the guarded run of a task, by the trace of the task. */
export const guardOf = (server, task) => until("the run begins", async () => (await server.json(["trace", "show", task])).events?.find((event) => event.type === "task.guard_opened")?.payload.trace);
