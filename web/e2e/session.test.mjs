// The list of sessions and the screen of one, with real agents: the mock, a command that talks, and a model that calls a tool.
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { axe, open, shot, start, test, until, WAIT_MS } from "./support.mjs";
import { isReady, opened, say, talking, words } from "./talker.mjs";

test("the list is empty, then has what is started in it", async (t) => {
  const server = await start(t);
  const page = await open(t, server, { path: "/sessions" });
  await page.getByText("No session yet").waitFor();
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByLabel("Directory").fill("/nowhere/at/all");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByRole("dialog").getByLabel("Directory").fill("");
  await page.getByRole("dialog").getByLabel("Agent").selectOption("mock");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.locator("#composer").waitFor();
  await page.getByText("Nothing has been said yet").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.locator(".sessions a").filter({ hasText: "ready" }).waitFor();
  // One that waits for a person comes first, and the page says that somebody is needed.
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", `/v1/sessions/${id}/input`, { text: "permission" });
  await until("it is first", async () => (await page.locator(".sessions a").first().textContent()).includes("waits for you"));
  await page.getByRole("button", { name: "1 needs you" }).waitFor();
  await shot(page, "sessions");
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".pinned").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a list or a session that cannot be had says why, and is there once it can", async (t) => {
  const server = await start(t);
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  const problem = { status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:baton:error:U006", title: "the disk is gone", status: 500, code: "U006", hint: "baton doctor" }) };
  let isBroken = true;
  let count = 0;
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  const page = await open(t, server, {
    path: "/sessions",
    isWaiting: false,
    before: (page) => page.route(/\/v1\/sessions(\?|$)/, async (route) => {
      count += 1;
      await held;
      await (isBroken ? route.fulfill(problem) : route.continue());
    }),
  });
  await page.getByText("Loading the sessions").waitFor();
  release();
  const broken = page.locator("main [role=alert]");
  await broken.getByText("the disk is gone").waitFor();
  assert.match(await broken.textContent(), /U006.*baton doctor/s);
  const before = count;
  await broken.getByRole("button", { name: "Try again" }).click();
  await until("it was asked for again", () => count > before);
  // By itself, too, where something happens.
  isBroken = false;
  await server.api("POST", `/v1/sessions/${id}/input`, { text: "echo here" });
  await page.locator(".sessions a").waitFor();

  // The same of one session; and one that there is not.
  let isGone = true;
  await page.route(/\/v1\/sessions\/.*\/events$/, (route) => (isGone ? route.fulfill(problem) : route.continue()));
  await page.locator(".sessions a").click();
  await broken.getByText("the disk is gone").waitFor();
  isGone = false;
  await broken.getByRole("button", { name: "Try again" }).click();
  await page.locator("#composer").waitFor();
  const missing = id.replace(/.{12}$/, "000000000000");
  const other = await open(t, server, { path: `/sessions/${missing}` });
  await other.locator("main [role=alert]").getByText("A001").waitFor();
  assert.match(await other.locator("main [role=alert]").textContent(), /baton session ls/);
});

test("what happens in a session fetches that one; older ones come when they are asked for", async (t) => {
  const OLD = 150;
  const server = await start(t);
  const { id: crashed } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", `/v1/sessions/${crashed}/input`, { text: "crash 3" });
  await until("it has crashed", async () => (await server.api("GET", `/v1/sessions/${crashed}`)).terminationInfo);
  await server.stop();
  // What it left, many times over.
  const dir = join(server.dir, ".baton/sessions");
  const kept = JSON.parse(readFileSync(join(dir, crashed, "session.json"), "utf8"));
  for (let at = 0; at < OLD; at += 1) {
    const one = `sess_019c4180-${at.toString(16).padStart(4, "0")}-7000-8000-000000000001`;
    mkdirSync(join(dir, one));
    writeFileSync(join(dir, one, "session.json"), JSON.stringify({ ...kept, id: one }));
  }
  await server.serve();
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  const page = await open(t, server, { path: "/sessions" });
  const rows = page.locator(".sessions li");
  await page.getByText("1 running, 100 shown").waitFor();
  await rows.first().getByText("ready").waitFor();
  // From here on nothing is asked for but the one session that something happens in.
  const asked = [];
  page.on("request", (request) => { if (/\/v1\/sessions(\?|$)/.test(request.url())) asked.push(new URL(request.url()).search); });
  await server.api("POST", `/v1/sessions/${id}/input`, { text: "permission" });
  await rows.first().getByText("waits for you").waitFor();
  await server.api("POST", `/v1/sessions/${id}/stop`, {});
  await page.getByText("0 running, 100 shown").waitFor();
  assert.ok(asked.length > 0);
  for (const query of asked) assert.deepEqual(new URLSearchParams(query).getAll("id"), [id]);
  assert.equal(await rows.count(), 100);
  await page.getByRole("button", { name: "Show older" }).click();
  await page.getByText(`0 running, ${OLD + 2} in all`).waitFor();
  assert.equal(await rows.count(), OLD + 2);
  assert.equal(await page.getByRole("button", { name: "Show older" }).count(), 0);
  await page.locator(`.sessions a[href="/sessions/${crashed}"]`).getByText("agent exited with code 3").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a session streams, asks, and is answered in the page", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  await say(page, "plan tool slow permission");
  await page.getByRole("list", { name: "Plan" }).getByText("do it").waitFor();
  await page.locator(".pinned").getByText("run_command: make").waitFor();
  // It is shown while it is said: the turn goes on only when what it asks is answered.
  await page.getByText("slow 20").waitFor();
  assert.doesNotMatch(await words(page), /permission: /);
  assert.match(await page.locator(".pinned").textContent(), /is a no in/);
  assert.match(await page.locator("#composer-why").textContent(), /at work/);
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  await page.locator(".pinned").getByRole("button", { name: "Allow" }).click();
  await page.locator(".pinned").waitFor({ state: "detached" });
  await page.getByText("permission: once").waitFor();
  await isReady(page);
  assert.match(await page.locator(".turn .fold.is-call").nth(1).textContent(), /run_command.*make.*allowed by/s);
  assert.match(await page.locator(".turn .is-user").textContent(), /plan tool slow permission/);
  const row = page.locator(".turn .fold.is-call").first();
  await row.locator("summary").click();
  await row.getByText("Output").waitFor();
  assert.match(await row.textContent(), /README\.md/);

  // The strip and the transcript point at each other, by the mouse and by the keys.
  const bar = page.locator(".state-strip .bar").first();
  await bar.hover();
  await until("the row is marked", async () => /is-marked/.test(await row.getAttribute("class")));
  await row.locator("summary").hover();
  await until("the bar is marked", async () => /is-marked/.test(await bar.getAttribute("class")));
  await page.locator(".state-strip .bar[tabindex='0']").focus();
  await page.keyboard.press("ArrowLeft");
  await until("the bar before is marked", async () => /is-marked/.test(await bar.getAttribute("class")));
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SUMMARY");
  await page.getByText("The same as a table").click();
  await page.getByRole("cell", { name: "a prompt" }).waitFor();

  // The first answer counts: a late one says so.
  await say(page, "permission");
  await page.locator(".pinned").waitFor();
  await page.route(/\/permissions\//, async (route) => {
    const [, request] = /permissions\/(.+)$/.exec(route.request().url());
    await server.api("POST", `/v1/sessions/${id}/permissions/${request}`, { answer: "deny" });
    await route.continue();
  });
  await page.locator("h1").click();
  await page.keyboard.press("a");
  await page.locator(".toast").getByText("Too late").waitFor();
  await page.getByText("permission: no").waitFor();
  await page.getByRole("tab", { name: "Facts" }).click();
  await page.locator(".facts").getByText("totalTokens").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a question of an agent is answered with a text, which the agent has", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  await say(page, "permission");
  await page.locator(".pinned").getByText("run_command: make").waitFor();
  // What Baton's tool server does for an agent that calls `ask_human`.
  const ask = (text) => server.json(["session", "ask", id, "--text", text]);
  const asking = ask("which <b>colour</b>?\u202e");
  const asked = page.locator(".pinned .ask").filter({ hasText: "colour" });
  await asked.getByText("question").waitFor();
  assert.match(await asked.textContent(), /which <b>colour<\/b>\?\\u202e/, "it is text");
  assert.deepEqual(await axe(page), []);
  // It is on the list of what needs a person, before the permission.
  await page.getByRole("button", { name: "2 need you" }).click();
  const needs = page.getByRole("region", { name: "What needs you" });
  await until("both are listed", async () => (await needs.locator("li .mark").allTextContents()).join() === "Question,Permission");
  await page.keyboard.press("Escape");
  assert.ok(await asked.getByRole("button", { name: "Answer" }).isDisabled(), "nothing is no answer");
  await asked.getByLabel("Your answer").fill("the <i>blue</i> one");
  // A letter that somebody writes allows nothing.
  await asked.getByLabel("Your answer").press("a");
  await page.keyboard.press("Enter");
  assert.deepEqual(await asking.then(({ answered, text }) => ({ answered, text })), { answered: true, text: "the <i>blue</i> onea" });
  await asked.waitFor({ state: "detached" });
  assert.equal((await server.api("GET", `/v1/sessions/${id}`)).pendingPermissions.length, 1, "the permission still waits");
  // Whoever says nothing to it lets the agent know.
  const second = ask("and which size?");
  await page.locator(".pinned .ask").filter({ hasText: "size" }).getByRole("button", { name: "Deny" }).click();
  assert.equal((await second).answered, false);
  await page.locator(".pinned").getByRole("button", { name: "Allow" }).click();
  await isReady(page);
  await page.locator(".turn").getByText("which <b>colour</b>?").waitFor();
  assert.match(await page.locator(".turn").last().textContent(), /which <b>colour<\/b>\?.*: the <i>blue<\/i> onea by /s);
  assert.deepEqual(page.problems, []);
});

test("the wire has what came, as it came, and each of it opens", async (t) => {
  const server = await start(t, { prepare: talking });
  const { page } = await opened(t, server);
  await page.getByRole("tab", { name: "Stderr" }).click();
  await page.getByText("is told here if the session fails").waitFor();
  await say(page, "echo <b>hello</b>");
  await isReady(page);
  await page.getByRole("tab", { name: "Wire" }).click();
  const frames = page.getByRole("list", { name: "Frames" });
  const said = frames.locator("details").filter({ hasText: "text_delta" }).filter({ hasText: "hello" }).first();
  await said.locator("summary").click();
  const shown = JSON.parse(await said.locator("pre").textContent());
  assert.equal(shown.type, "text_delta");
  assert.match(shown.payload.text, /hello/);
  assert.match(await frames.locator("details").first().textContent(), /^1state_changed.*"to":"starting"/);
  assert.match(await frames.locator("details").last().textContent(), /state_changed.*"to":"ready"/, "the newest is the last");
  assert.deepEqual(await axe(page), []);
  await shot(page, "session-wire");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".ended").waitFor();
  await frames.locator("details").last().getByText("ended").waitFor();
  await page.getByRole("tab", { name: "Stderr" }).click();
  await page.getByText("It did not fail: standard error is told here only of a session that did.").waitFor();

  // Of much that comes so many are kept; what is held stays as it is meanwhile.
  const { page: other } = await opened(t, server, { agent: "talker" });
  await other.getByRole("tab", { name: "Wire" }).click();
  const many = other.getByRole("list", { name: "Frames" }).locator("details");
  await many.first().waitFor();
  await other.getByRole("button", { name: "hold" }).click();
  const count = await many.count();
  await say(other, "rate 1000 500");
  await other.getByText("line 500 of").waitFor();
  await isReady(other);
  assert.equal(await many.count(), count);
  await other.getByRole("button", { name: "held" }).click();
  await until("so many are kept", async () => (await many.count()) === 200);
  await other.getByText(/items before these are not here any more/).waitFor();
  await until("the end is followed", () => other.getByRole("list", { name: "Frames" }).evaluate((list) => list.scrollTop + list.clientHeight >= list.scrollHeight - 24));
  await many.last().getByText("state_changed").waitFor();
  assert.deepEqual([...page.problems, ...other.problems], []);
});

test("two quick clicks, or a key that is held, answer what was seen and nothing else", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  const allowed = async () => (await server.baton(["events", "--type", "permission_resolved"])).trim().split("\n").filter((line) => line !== "").length;
  await say(page, "permission edit b.txt edit c.txt");
  await page.locator(".pinned").getByText("make").waitFor();
  await page.locator(".pinned").getByRole("button", { name: "Allow" }).dblclick({ delay: 20 });
  await page.locator(".pinned").getByText("b.txt").waitFor();
  assert.equal(await allowed(), 1);
  await page.locator("h1").click();
  await page.keyboard.down("a");
  for (let repeat = 0; repeat < 20; repeat += 1) await page.keyboard.down("a");
  await page.locator(".pinned").getByText("c.txt").waitFor();
  for (let repeat = 0; repeat < 20; repeat += 1) await page.keyboard.down("a");
  await page.keyboard.up("a");
  assert.equal((await server.api("GET", `/v1/sessions/${id}`)).pendingPermissions.length, 1);
  assert.equal(await allowed(), 2);
  assert.deepEqual(page.problems, []);
});

test("a crash is shown with its code or signal and its last words", async (t) => {
  const server = await start(t);
  for (const [text, expected] of [["crash 3 120", ["exit code 3", "mock: crash line 1 of 120", "mock: crash line 120 of 120", "120 lines", "lines are left out"]], ["tool signal", ["SIGKILL", "last tool read_file"]]]) {
    const { id, page } = await opened(t, server);
    await say(page, text);
    await page.locator(".ended").waitFor();
    const ended = await page.locator(".ended").textContent();
    assert.match(ended, /^✕ FailedThe agent's process went down by itself/);
    for (const part of expected) assert.ok(ended.includes(part), `${part} in ${ended}`);
    assert.equal(await page.locator("#composer").count(), 0);
    // Whoever comes later sees the same end.
    await page.reload();
    await until("it is told again", async () => (await page.locator(".ended").textContent()).includes(expected[0]));
    // What was said is told from the transcript.
    await page.locator(".transcript .said.is-error").first().waitFor();
    assert.equal(await page.locator(".transcript .said.is-user").count(), 1);
    // And the conversation goes on in another one.
    await page.getByRole("button", { name: "Go on with this conversation" }).click();
    await page.locator("#composer").waitFor();
    assert.ok(!page.url().endsWith(id));
    assert.deepEqual(page.problems, []);
  }
});

test("a session is stopped, by the button and by the key that asks", async (t) => {
  const server = await start(t);
  const { page } = await opened(t, server);
  await say(page, "hang");
  await until("it works", async () => (await page.locator(".session-head .mark").first().textContent()).includes("working"));
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".ended").getByText("Ended by Baton").waitFor();
  const { page: other } = await opened(t, server);
  await other.keyboard.press("s");
  await other.getByRole("button", { name: "Let it run" }).click();
  await other.keyboard.press("i");
  assert.equal(await other.evaluate(() => document.activeElement?.id), "composer");
  await other.keyboard.press("Escape");
  await other.keyboard.press("s");
  await other.getByRole("button", { name: "Stop it" }).click();
  await other.locator(".ended").waitFor();
});

test("one that does not want to end is seen while it is stopped", async (t) => {
  const server = await start(t, {
    prepare: ({ dir }) => {
      writeFileSync(join(dir, "stubborn.sh"), "trap '' TERM\necho here\nwhile :; do sleep 0.1; done\n");
      appendFileSync(join(dir, ".baton/baton.toml"), '\n[agents.stubborn]\nharness = "exec"\nprofile = "plain"\ncommand = ["sh", "stubborn.sh"]\n');
    },
  });
  const { page } = await opened(t, server, { agent: "stubborn" });
  await say(page, "go");
  await page.locator(".transcript").getByText("here").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".stopping").getByText("SIGKILL").waitFor();
  await shot(page, "session-stopping");
  await page.locator(".ended").getByText("Ended by Baton").waitFor();
});

test("a hook that failed is tried again", async (t) => {
  const hooks = { hooks: [{ name: "check", command: ["sh", "-c", "echo looked; test -e ok.flag"] }] };
  const server = await start(t, { prepare: ({ dir }) => writeFileSync(join(dir, ".baton/hooks.json"), JSON.stringify(hooks)) });
  const { page } = await opened(t, server);
  await say(page, "write");
  await page.locator(".again").getByText("hook failed").waitFor();
  await page.getByRole("tab", { name: "Hooks" }).click();
  assert.match(await page.locator(".run-list").textContent(), /check.*failed.*exit 1.*looked/s);
  writeFileSync(join(server.dir, "ok.flag"), "");
  await page.locator(".run-list").getByRole("button", { name: "Retry" }).click();
  await page.locator(".run-list").getByText("attempt 2").waitFor();
  await page.locator(".again").waitFor({ state: "detached" });
  assert.ok((await page.locator(".state-strip .retry").count()) > 0, "the retry is marked");
  assert.deepEqual(page.problems, []);
});

/** A model that calls `bash` once, and says that it is done. */
async function model(t) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (text) => (body += text));
    request.on("end", () => {
      const hasRun = JSON.parse(body).messages.some((message) => message.role === "tool");
      const call = { index: 0, id: "call_1", type: "function", function: { name: "bash", arguments: JSON.stringify({ command: "test -e ok.flag || sleep 60" }) } };
      const delta = hasRun ? { content: "all is done" } : { tool_calls: [call] };
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const choice of [{ delta }, { delta: {}, finish_reason: hasRun ? "stop" : "tool_calls" }]) {
        response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [{ index: 0, ...choice }] })}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/v1`;
}

test("a tool that could not be run to its end is tried again", async (t) => {
  const base = await model(t);
  const config = `[agents.model]\nharness = "llm"\napi = "openai"\nmodel = "fake"\nbase_url = "${base}"\n`;
  const server = await start(t, { config, env: { BATON_SESSION_TOOL_TIMEOUT: "10s" } });
  const { page } = await opened(t, server, { agent: "model" });
  await say(page, "do it");
  // Twice it takes too long; the third time it has all of ten seconds for nothing.
  await page.locator(".again").getByText("tool failed").waitFor({ timeout: 3 * WAIT_MS });
  await page.locator(".run-list").getByText("attempt 2").waitFor();
  await isReady(page);
  writeFileSync(join(server.dir, "ok.flag"), "");
  await page.locator(".again").getByRole("button", { name: "Try it again" }).click();
  await page.locator(".transcript").getByText("all is done").waitFor();
  assert.match(await page.locator(".turn .fold.is-call").first().textContent(), /bash.*attempt 3.*done/s);
  assert.deepEqual(page.problems, []);
});

test("two windows on one session are in step, and what was written elsewhere is in both", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  const other = await open(t, server, { path: `/sessions/${id}` });
  const both = [page, other];
  const prompts = (window) => window.locator(".turn > .is-user").allTextContents();
  await say(page, "permission slow");
  for (const window of both) await window.locator(".pinned").getByText("run_command: make").waitFor();
  await other.locator(".pinned").getByRole("button", { name: "Allow" }).click();
  for (const window of both) await window.locator(".pinned").waitFor({ state: "detached" });
  for (const window of both) await window.getByText("slow 20").waitFor();
  for (const window of both) await isReady(window);
  await server.baton(["session", "send", id, "echo from the command line"]);
  for (const window of both) await until("each has both prompts", async () => (await prompts(window)).join("|") === "permission slow|echo from the command line");
  for (const window of both) await isReady(window);
  assert.equal(await words(page), await words(other));
  // Who comes later, or again, sees the same.
  await page.reload();
  await until("it is as it was", async () => (await words(page)) === (await words(other)) && (await prompts(page)).join("|") === "permission slow|echo from the command line");
  assert.deepEqual([...page.problems, ...other.problems], []);
});

test("who writes at the same time as another sees what the other wrote, and has back what was not taken", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  await until("it takes input", async () => (await page.locator("#composer-why").textContent()).includes("Ctrl+Enter"));
  await page.route(/\/input$/, async (route) => {
    // It is at work until somebody answers.
    await server.api("POST", `/v1/sessions/${id}/input`, { text: "permission from another" });
    await page.locator(".pinned").waitFor();
    await route.continue();
  });
  await page.fill("#composer", "echo from here");
  await page.press("#composer", "Control+Enter");
  await until("the other's is there", async () => (await page.locator(".turn > .is-user").allTextContents()).join("|") === "permission from another");
  await until("what was not taken is there to be sent", async () => (await page.locator("#composer").inputValue()) === "echo from here");
  // What was written stays for whoever comes back to it.
  await page.keyboard.press("Control+k");
  await page.waitForURL((url) => url.pathname === "/");
  await page.goBack();
  await until("it is still there", async () => (await page.locator("#composer").inputValue()) === "echo from here");
});

test("a server that is killed and comes back: nothing is lost, nothing is there twice", async (t) => {
  const server = await start(t);
  const { id, page } = await opened(t, server);
  await say(page, "tool slow");
  await page.getByText("slow 20").waitFor();
  await isReady(page);
  await say(page, "echo the second turn");
  await page.locator(".turn").nth(1).getByText("second turn").last().waitFor();
  await isReady(page);
  const before = await words(page);
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await server.kill();
  await page.locator(".session-head").getByText("not connected").waitFor();
  assert.match(await page.locator("#composer-why").textContent(), /connection is gone/);
  await server.serve();
  await page.locator(".ended").getByText("Ended by Baton").waitFor();
  const told = (await server.baton(["session", "show", id, "--transcript", "--json"])).trim().split("\n").map((line) => JSON.parse(line));
  const said = told.filter((piece) => piece.kind === "text").map((piece) => piece.text).join("");
  assert.equal(await words(page), before);
  assert.equal(before.replaceAll(/\s+/g, " ").trim(), said.replaceAll(/\s+/g, " ").trim());
  assert.equal(await page.locator(".turn").count(), 2);
  assert.equal(await page.locator(".turn .fold.is-call").count(), 1);
  // The page goes on with the new server, without having been loaded again.
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.locator(".sessions a").filter({ hasText: "ended with Baton" }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "without a reload");
  assert.deepEqual(page.problems, []);
});

test("it can be used in light, in dark, and on a telephone", async (t) => {
  const hooks = { hooks: [{ name: "check", command: ["false"], failure_policy: { type: "warn_continue" } }] };
  const server = await start(t, { prepare: ({ dir }) => writeFileSync(join(dir, ".baton/hooks.json"), JSON.stringify(hooks)) });
  for (const [name, look] of [["light", {}], ["dark", { dark: true }], ["360", { width: 360, height: 740 }]]) {
    const { page } = await opened(t, server, look);
    await say(page, "tool write plan echo hello there");
    await isReady(page);
    await say(page, "permission");
    await page.locator(".pinned").waitFor();
    for (const tab of ["Hooks", "Facts", "Wire", "Stderr", "Raw", "Tools"]) {
      await page.getByRole("tab", { name: tab }).click();
      assert.deepEqual(await axe(page), [], `${name} ${tab}`);
    }
    const isTooWide = await page.evaluate(() => [document.documentElement, document.querySelector("main")].some((box) => box.scrollWidth > box.clientWidth));
    assert.ok(!isTooWide, `${name}: nothing is wider than the screen`);
    await page.locator(".pinned").scrollIntoViewIfNeeded();
    await shot(page, `session-${name}`);
    await page.locator(".pinned").getByRole("button", { name: "Deny" }).click();
    await isReady(page);
    await say(page, "crash 3 120");
    await page.locator(".ended").waitFor();
    assert.deepEqual(await axe(page), [], `${name} ended`);
    await shot(page, `session-ended-${name}`);
    assert.deepEqual(page.problems, []);
  }
});
