// Sessions as the tests of the page lead them: an agent that talks as fast and as badly as it is told, and what a person does in its screen.
import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open, until } from "./support.mjs";

/** Starts a session and opens its screen. */
export async function opened(t, server, { agent = "mock", ...options } = {}) {
  const { id } = await server.api("POST", "/v1/sessions", { agent });
  const page = await open(t, server, { path: `/sessions/${id}`, ...options });
  await page.locator("#composer").waitFor();
  return { id, page };
}

export async function say(page, text) {
  await until("it takes input", async () => (await page.locator("#composer-why").textContent()).includes("Ctrl+Enter"));
  const prompts = page.locator(".transcript .turn > .is-user");
  const before = await prompts.count();
  await page.fill("#composer", text);
  await page.press("#composer", "Control+Enter");
  await until("its turn begins", async () => (await prompts.count()) > before);
}

export const isReady = (page) => until("it is ready", async () => (await page.locator(".session-head .mark").first().textContent())?.includes("ready"));
export const words = (page) => page.locator(".transcript .said:not(.is-user)").allTextContents().then((all) => all.join(""));


export const HOSTILE = [
  "<script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 1\">", "[a link](javascript:window.hacked=1)", "\u001b[31mred\u001b[0m \u001b]0;title\u0007",
  "safe\u202egnp.exe", "zero\u200bwidth", "\u0000\u0007bell",
];

/** An agent that says what it is told to: so many lines at a time, then nothing more if it is to stay; or something bad. */
const TALK = `
import { readFileSync } from "node:fs";
const [word, rate, count, then] = readFileSync(0, "utf8").trim().split(/\\s+/);
const out = (text) => new Promise((done) => process.stdout.write(text, done));
if (word === "hostile") await out(${JSON.stringify(HOSTILE.join("\n"))} + "\\n" + "x".repeat(5_000_000) + " end of the line\\nafterwards\\n");
if (word === "rate") {
  let said = 0;
  const began = Date.now();
  while (said < Number(count)) {
    const due = Math.min(Number(count), Math.floor(((Date.now() - began) * Number(rate)) / 1000));
    let text = "";
    while (said < due) text += "line " + (said += 1) + " of what is said, with a few words more to read\\n";
    if (text) await out(text);
    await new Promise((later) => setTimeout(later, 10));
  }
}
// It stays as long as whoever started it.
const parent = process.ppid;
while (then === "stay" && process.ppid === parent) await new Promise((later) => setTimeout(later, 50));
`;
export const talking = ({ dir }) => {
  writeFileSync(join(dir, "talk.mjs"), TALK);
  appendFileSync(join(dir, ".baton/baton.toml"), `\n[agents.talker]\nharness = "exec"\nprofile = "plain"\ncommand = ["${process.execPath}", "talk.mjs"]\n`);
};

/** Records how long the tasks of the page take: by the clock, and by what they take of a processor, which others that are busy do not change. */
export async function watchTasks(page) {
  const devtools = await page.context().newCDPSession(page);
  const events = [];
  devtools.on("Tracing.dataCollected", ({ value }) => events.push(...value.filter(({ ph, name }) => ph === "X" && name === "RunTask")));
  await devtools.send("Tracing.start", { categories: "disabled-by-default-devtools.timeline", transferMode: "ReportEvents" });
  return async () => {
    const complete = new Promise((done) => devtools.once("Tracing.tracingComplete", done));
    await devtools.send("Tracing.end");
    await complete;
    assert.ok(events.some(({ tdur }) => tdur > 0), "tasks were seen");
    return { clock: Math.max(...events.map(({ dur }) => dur)) / 1000, processor: Math.max(...events.map(({ tdur }) => tdur ?? 0)) / 1000 };
  };
}
