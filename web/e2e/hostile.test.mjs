// An agent that would rather do something to whoever looks: whatever it writes, names and asks for is text.
import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, open, start, test } from "./support.mjs";
import { opened, say } from "./talker.mjs";

const BAD = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script> \u202egnp.exe \u001b[31mred\u001b[0m \u0007 [a](javascript:window.hacked=3) \u{e0041}";

/** Tells of a tool, asks for leave, and dies: with the worst of words everywhere. */
const AGENT = `
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
const BAD = ${JSON.stringify(BAD)};
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const update = (update) => say({ method: "session/update", params: { sessionId: "s1", update } });
const text = (text) => [{ type: "content", content: { type: "text", text } }];
let prompt;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, result } = JSON.parse(line);
  if (method === "initialize") say({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
  if (method === "session/new") say({ id, result: { sessionId: "s1" } });
  if (method === "session/prompt") {
    prompt = id;
    update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "words " + BAD } });
    update({ sessionUpdate: "tool_call", toolCallId: "c1", title: "title " + BAD, kind: "execute", status: "pending", rawInput: { command: "input " + BAD, [BAD]: BAD } });
    say({ id: 77, method: "session/request_permission", params: { sessionId: "s1", toolCall: { toolCallId: "c1", title: "asks " + BAD, kind: "execute" }, options: [{ optionId: "o", name: BAD, kind: "allow_once" }] } });
  }
  if (id === 77 && result) {
    update({ sessionUpdate: "tool_call_update", toolCallId: "c1", status: "in_progress" });
    update({ sessionUpdate: "tool_call_update", toolCallId: "c1", status: "completed", content: text("output " + BAD), rawOutput: { [BAD]: "output " + BAD } });
    for (let line = 0; line < 200; line += 1) writeSync(2, "stderr " + line + " " + BAD + "\\n");
    process.exit(3);
  }
}
`;

/** What of it would act, or look like what it is not. */
const isSound = (text) => !/[\u0007\u001b\u202e]|\u{e0041}/u.test(text);

test("hostile words, tools, permissions and standard error are text, in the session, in the list and at its task", async (t) => {
  const prepare = ({ dir }) => {
    writeFileSync(join(dir, "hostile.mjs"), AGENT);
    appendFileSync(join(dir, ".baton/baton.toml"), `\n[agents.hostile]\nharness = "acp"\ncommand = ["${process.execPath}", "hostile.mjs"]\n`);
  };
  const server = await start(t, { prepare });
  const { id, page } = await opened(t, server, { agent: "hostile", width: 1000 });
  const check = async (where) => {
    assert.equal(await page.evaluate(() => window.hacked), undefined, where);
    assert.equal(await page.locator(":is(main, .needs, .toasts) :is(img, script, iframe, a[href^='javascript'])").count(), 0, where);
    assert.ok(isSound(await page.locator("body").innerText()), where);
    assert.ok(isSound(await page.title()), where);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${where}: nothing is wider than the screen`);
  };
  await say(page, "go");
  const asked = page.locator(".pinned .ask-title");
  await asked.waitFor();
  assert.match(await asked.textContent(), /<img src=x onerror="window\.hacked=1"><script>.*\\u202egnp\.exe red \\x07/);
  await check("asked");
  await page.locator("h1").click();
  await page.keyboard.press("!");
  await page.getByRole("region", { name: "What needs you" }).getByText(/<img src=x/).waitFor();
  await check("in the list of what needs a person");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.locator(".ended").getByText("exit code 3").waitFor();
  const call = page.locator(".transcript .fold.is-call").first();
  await call.locator("summary").first().click();
  await call.getByText(/input <img src=x/).first().waitFor();
  await call.getByText(/output <img src=x/).first().waitFor();
  const stderr = page.locator(".ended .stderr");
  await stderr.getByText(/stderr 0 <img src=x/).waitFor();
  await stderr.getByText(/stderr 199 <img src=x/).waitFor();
  assert.match(await stderr.textContent(), /\\u202egnp\.exe red \\x07 \[a\]\(javascript/);
  await check("ended");
  for (const tab of ["Tools", "Wire", "Stderr", "Raw", "Facts"]) {
    await page.getByRole("tab", { name: tab }).click();
    if (tab === "Wire") for (const frame of await page.getByRole("list", { name: "Frames" }).locator("summary").all()) await frame.click();
    await check(tab);
  }
  assert.deepEqual(await axe(page), []);
  await page.goto(new URL("/sessions", server.url).href);
  await page.locator(".sessions a").filter({ hasText: "failed, crash, exit code 3" }).waitFor();
  await check("in the list");

  // The same at a task, whose attempt and work log tell of it.
  const { id: task } = await server.json(["task", "new", "go", "--agent", "hostile", "--ready"]);
  await page.goto(new URL(`/tasks/${task}?tab=log`, server.url).href);
  await page.locator(".entry", { hasText: "Asks: " }).getByText(/<img src=x/).first().waitFor();
  await check("asked at a task");
  const { sessions } = await server.api("GET", "/v1/sessions");
  const { id: session, pendingPermissions: [{ id: request }] } = sessions.find((one) => one.taskId === task);
  assert.notEqual(session, id);
  await server.api("POST", `/v1/sessions/${session}/permissions/${request}`, { answer: "allow" });
  await page.locator("body").press("3");
  await page.locator(".run").getByText(/stderr 199 <img src=x/).first().waitFor();
  await check("an attempt");
  assert.deepEqual(page.problems, []);
});
