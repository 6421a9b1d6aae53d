// The screen of one task, in a real browser against a real server.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, binary, open, shot, start, test, until } from "./support.mjs";

const TABS = ["brief", "log", "runs", "changes", "handoffs", "raw"];

const newTask = async (server, title, ...more) => (await server.json(["task", "new", title, ...more])).id;
const shown = (server, id) => server.json(["task", "show", id]);

/** Lets the mock work on a task until it has ended. */
async function work(server, words, agent = "mock") {
  const id = await newTask(server, words, "--agent", agent, "--ready");
  await until(`${id} was worked on`, async () => (await server.api("GET", `/v1/tasks/${id}/runs`)).runs.some((run) => run.endedAt));
  return id;
}

const panel = (page, name) => page.getByRole("tab", { name, exact: true });

/** A message of an agent, as `baton send` takes it. */
function send(server, type, task, from, payload) {
  const message = { protocol: "aof", version: 1, type, taskId: task, fromAgent: from, toAgent: "baton", sentAt: new Date().toISOString(), payload };
  return server.baton(["send", "-"], { input: JSON.stringify(message) });
}

test("a task is loading, broken, missing, and there", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await newTask(server, "Limit the upload", "--priority", "high");
  let letGo;
  const held = new Promise((resolve) => { letGo = resolve; });
  const before = async (page) => {
    await page.route(/\/v1\/tasks(\?|\/TASK-[^/]*$)/, async (route) => { await held; await route.continue(); });
  };
  const page = await open(t, server, { path: `/tasks/${id}`, before });
  await page.getByText("Loading the task…").waitFor();
  letGo();
  await page.getByRole("heading", { name: "Limit the upload" }).waitFor();
  await page.getByText("high priority").waitFor();
  await page.getByRole("button", { name: id, exact: true }).waitFor();
  await page.getByText(`tasks/backlog/${id}.md`).waitFor();
  await page.getByText("No text").waitFor();
  assert.deepEqual(page.problems, []);

  const broken = await open(t, server, {
    path: `/tasks/${id}`,
    before: (other) => other.route(new RegExp(`/v1/tasks/${id}$`), (route) => route.fulfill({
      status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "x", title: "the disk is gone", status: 500, code: "S004", hint: "baton doctor" }),
    }), { times: 2 }),
  });
  await broken.getByText("The task cannot be shown").waitFor();
  await broken.getByText("the disk is gone").waitFor();
  await broken.getByText("S004").waitFor();
  await broken.getByText("baton doctor").waitFor();
  await until("it is mended by trying again", async () => {
    const again = broken.getByRole("button", { name: "Try again" });
    if (await again.count()) await again.click();
    return (await broken.getByRole("heading", { name: "Limit the upload" }).count()) > 0;
  });

  const missing = await open(t, server, { path: "/tasks/TASK-2001-01-01-001" });
  await missing.getByText("There is no task TASK-2001-01-01-001", { exact: true }).waitFor();
  await missing.getByRole("link", { name: "To the board" }).waitFor();
});

test("a person approves, rejects, retries and moves through the page", async (t) => {
  const server = await start(t);
  const id = await work(server, "complete done");
  const page = await open(t, server, { path: `/tasks/${id}` });
  await page.getByRole("button", { name: "Reject…" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByRole("button", { name: "Reject", exact: true }).isDisabled(), true);
  await dialog.getByRole("textbox").fill("The limit is too low");
  await server.baton(["task", "log", id, "somebody else says something meanwhile"]);
  await dialog.getByRole("button", { name: "Reject", exact: true }).click();
  // It is ready again, and the mock does it once more; whichever is seen.
  await until("it was rejected", async () => /rejected/.test(await server.baton(["events", "--task", id])));
  const { rev } = await until("it is in review again", async () => {
    const task = await shown(server, id);
    return task.status === "review" && task;
  });
  await panel(page, "Work log").click();
  await page.getByText("Rejected: The limit is too low").waitFor();
  await until("the page shows that, and what can be done about it", async () =>
    Number(await page.locator(".task-head").getAttribute("data-rev")) >= rev && (await page.locator(".task-buttons").getAttribute("aria-busy")) === "false");

  await page.locator("body").press("a");
  await page.getByRole("dialog").getByRole("button", { name: "Approve", exact: true }).press("Enter");
  await until("it was approved", async () => (await shown(server, id)).status === "done");
  await page.locator(".task-line .badge.is-done").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0, "what is not possible has no button");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("region", { name: "Not possible now" }).getByText("Approve").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("region", { name: "Not possible now" }).waitFor({ state: "detached" });
  assert.match(page.url(), new RegExp(id), "Escape closed the menu and went nowhere");

  const other = await newTask(server, "Another");
  const next = await open(t, server, { path: `/tasks/${other}` });
  await next.getByRole("button", { name: "Move…" }).waitFor();
  await next.locator("body").press("m");
  await next.getByRole("dialog").locator('[data-to="blocked"][aria-disabled="false"]').waitFor();
  await next.keyboard.press("Escape");
  await next.getByRole("dialog").waitFor({ state: "detached" });
  assert.match(next.url(), new RegExp(other), "Escape closed the dialog and went nowhere");
  await next.locator("body").press("m");
  // As on the board: where it cannot go says why, and a letter moves nothing before somebody has said why it goes there.
  await next.getByRole("dialog").locator('[data-to="done"][aria-disabled="true"] .why').getByText(/./).waitFor();
  await next.keyboard.press("d");
  await next.getByRole("dialog").getByRole("alert").getByText("Not to done: ").waitFor();
  await next.keyboard.press("o");
  await next.getByRole("dialog").getByLabel("Why it goes to blocked").waitFor();
  assert.equal((await shown(server, other)).status, "backlog");
  await next.keyboard.type("no network");
  await next.keyboard.press("Enter");
  await until("it was moved", async () => (await shown(server, other)).status === "blocked");
  assert.equal((await shown(server, other)).metadata.blockReason, "no network");
  await next.getByRole("dialog").waitFor({ state: "detached" });
  await next.locator(".task-line .badge.is-blocked").waitFor();
  const failed = await work(server, "crash 1");
  const third = await open(t, server, { path: `/tasks/${failed}` });
  assert.equal(typeof (await shown(server, failed)).notBefore, "string");
  await third.getByRole("button", { name: "Retry" }).click();
  await until("it is tried again", async () => (await server.api("GET", `/v1/tasks/${failed}/runs`)).runs.length > 1);
  assert.deepEqual([...page.problems, ...next.problems, ...third.problems], []);
});

test("a guarded task has its seal, and what the guard refused is in the log", async (t) => {
  const agent = (name) => `[agents.${name}]\nharness = "acp"\ncommand = [${JSON.stringify(binary)}, "mock-agent"]\n${name === "bob" ? "fs = true\n" : ""}`;
  const team = '[team]\nplanner = "ada"\nexecutor = "bob"\ncritic = "cleo"\nauditor = "dora"';
  const server = await start(t, { config: [...["ada", "bob", "cleo", "dora"].map(agent), team].join("\n") });
  const id = await newTask(server, "edit forbidden.txt edit good.txt complete done", "--guarded", "--ready");
  const page = await open(t, server, { path: `/tasks/${id}?tab=log` });
  await page.locator(".entry.is-bad", { hasText: "The guard refused bob" }).waitFor();
  await page.locator(".entry", { hasText: "The guarded run was verified" }).getByRole("link", { name: "trace" }).waitFor();
  await page.locator(".seal", { hasText: "verified: pass" }).waitFor();
  assert.match(await page.locator(".seal").getAttribute("href"), /^\/traces\/trc_/);
  assert.deepEqual(page.problems, []);
});

test("a task that is shown stays when it cannot be fetched once", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await newTask(server, "It stays");
  const page = await open(t, server, { path: `/tasks/${id}` });
  await page.getByText("No text").waitFor();
  let isRefused = true;
  let count = 0;
  await page.route(new RegExp(`/v1/tasks/${id}$`), (route) => {
    if (!isRefused) return route.continue();
    count += 1;
    return route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "x", title: "the disk is gone", status: 500, code: "S004" }) });
  });
  await server.baton(["task", "log", id, "a line"]);
  await until("it was refused", () => count > 0);
  await page.getByText("No text").waitFor();
  assert.equal(await page.getByText("cannot be shown").count(), 0);
  await page.getByRole("heading", { name: "It stays" }).waitFor();
  isRefused = false;
  await server.api("PATCH", `/v1/tasks/${id}`, { body: "some words\n" });
  await page.locator(".markdown", { hasText: "some words" }).waitFor();
  assert.deepEqual(page.problems, []);
});

test("every phase is approved at once, and the path says where it has been", async (t) => {
  const server = await start(t, { dispatch: false, env: { AGENT_EXIT_PROTOCOL_ENABLED: "true" } });
  const id = await newTask(server, "Through all phases", "--ready");
  await server.baton(["task", "claim", id, "--agent", "ada"]);
  await send(server, "completion.report", id, "ada", {
    outcome: "done", summaryRef: "outputs/summary.md", deliverables: ["src/upload.rs"], tests: { total: 3, passed: 2, failed: 1 }, notes: "One is left",
  });
  const page = await open(t, server, { path: `/tasks/${id}?tab=runs` });
  await page.getByText("reported done").waitFor();
  await page.locator(".run").getByText("2 of 3 tests passed").waitFor();
  await page.getByText("src/upload.rs").waitFor();
  await page.locator('.phase[aria-current="step"]', { hasText: "Ready for review" }).waitFor();
  await page.getByRole("button", { name: "Approve all phases" }).click();
  await page.locator('.phase[aria-current="step"]', { hasText: "Completed" }).waitFor();
  assert.equal((await shown(server, id)).phase, "COMPLETED");
  await page.locator(".task-path summary").click();
  await page.locator(".stays li").nth(2).waitFor();
  assert.match(await page.locator(".stays").innerText(), /claimed/);
  await page.locator("body").press("2");
  await page.getByText("Approved: ").first().waitFor();
  assert.match(page.url(), /tab=log/);
  assert.deepEqual(page.problems, []);
});

test("two quick clicks approve one phase", async (t) => {
  // An exit signal leads through the phases one by one; a report alone would let it through at once.
  const server = await start(t, { env: { AGENT_EXIT_PROTOCOL_ENABLED: "true" } });
  const id = await work(server, "exit-signal IMPLEMENTATION");
  await until("it waits for CI", async () => (await shown(server, id)).phase === "CI_PENDING");
  await server.baton(["ci", "report", id, "--passed"]);
  const page = await open(t, server, { path: `/tasks/${id}` });
  await page.locator('.phase[aria-current="step"]', { hasText: "Ready for review" }).waitFor();
  const approve = page.getByRole("button", { name: "Approve", exact: true });
  await approve.waitFor();
  const asked = [];
  page.on("request", (request) => { if (request.method() === "POST" && request.url().endsWith("/approve")) asked.push(request.url()); });
  // The second click comes once the first was answered, and the button stands for the next phase.
  const box = await approve.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down({ clickCount: 1 });
  await page.mouse.up({ clickCount: 1 });
  await page.locator('.phase[aria-current="step"]', { hasText: "Ready for merge" }).waitFor();
  const { rev, phase } = await shown(server, id);
  assert.equal(phase, "READY_FOR_MERGE");
  await until("the buttons are of the next phase", async () =>
    Number(await page.locator(".task-head").getAttribute("data-rev")) >= rev && (await page.locator(".task-buttons").getAttribute("aria-busy")) === "false" && approve.isEnabled());
  assert.deepEqual(await approve.boundingBox(), box, "it is where the first one was");
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  // Whatever a click does, it does before the next one.
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("region", { name: "Not possible now" }).waitFor();
  assert.equal(asked.length, 1);
  assert.equal((await shown(server, id)).phase, phase, "one phase further, and no more");
  // One click that stands by itself goes on.
  await approve.click();
  await page.locator('.phase[aria-current="step"]', { hasText: "Completed" }).waitFor();
  assert.equal(asked.length, 2);
  assert.deepEqual(page.problems, []);
});

test("the work log takes a line, and follows what happens without a reload", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await newTask(server, "Followed", "--ready");
  const page = await open(t, server, { path: `/tasks/${id}?tab=log` });
  await page.evaluate(() => { globalThis.isSame = true; });
  await page.getByText("Created in ready").waitFor();
  const asked = [];
  page.on("request", (request) => { if (/\/trace\?/.test(request.url())) asked.push(new URL(request.url()).searchParams.get("from")); });
  await page.getByLabel("A line for the work log").fill("I looked at it myself");
  await page.keyboard.press("Enter");
  await page.locator(".entry", { hasText: "I looked at it myself" }).getByText("operator").waitFor();
  await until("the line is cleared", async () => (await page.getByLabel("A line for the work log").inputValue()) === "");
  assert.match((await shown(server, id)).body ?? "", /I looked at it myself/);

  await server.baton(["task", "claim", id, "--agent", "ada"]);
  await send(server, "status.update", id, "ada", { taskId: id, agentId: "ada", progress: "Half of it" });
  await send(server, "status.update", id, "bob", { taskId: id, agentId: "bob", progress: "Not mine" }).catch(() => undefined);
  await page.locator(".entry", { hasText: "ada took it, with fence 1" }).waitFor();
  await page.locator(".entry", { hasText: "Half of it" }).waitFor();
  await page.locator(".entry.is-bad", { hasText: "Refused a message of bob (status.update): unauthorized agent" }).waitFor();
  const titles = await page.locator(".entry-title").allInnerTexts();
  assert.ok(titles.findIndex((text) => /Refused/.test(text)) > titles.findIndex((text) => /Half/.test(text)), "the newest is last");
  assert.ok(asked.length > 0 && asked.every((from) => Number(from) > 1), `only what is new is fetched: ${asked}`);

  // What happens while nobody answers is there when somebody does again.
  await server.stop();
  await page.locator(".link.is-bad").waitFor();
  await server.baton(["task", "log", id, "written while it was away"]);
  await server.serve();
  await page.locator(".entry", { hasText: "written while it was away" }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.isSame), true);
});

test("attempts that crashed say how, with exit code or signal and standard error", async (t) => {
  const server = await start(t);
  const crashed = await work(server, "tool crash 3 120");
  const killed = await work(server, "tool signal");
  const page = await open(t, server, { path: `/tasks/${crashed}?tab=runs` });
  const run = page.locator(".run").last();
  await run.getByText("the agent exited with code 3 in a turn").first().waitFor();
  await page.locator(".run").first().getByText("Standard error, 120 lines").waitFor();
  const text = await page.locator(".run").first().innerText();
  assert.match(text, /Exit code\s+3/);
  assert.match(text, /crash line 1 of 120/);
  assert.match(text, /crash line 120 of 120/);
  assert.match(text, /Last tool\s+read_file/);
  await page.getByRole("link", { name: "session" }).first().waitFor();
  await shot(page, "task-crash");
  assert.deepEqual(await axe(page), []);
  const other = await open(t, server, { path: `/tasks/${killed}?tab=runs` });
  await other.locator(".run").first().getByText("died of SIGKILL (signal 9)").waitFor();
});

test("the changes of a worktree are a diff", async (t) => {
  const config = '[agents.apart]\nharness = "mock"\nworkspace = "worktree"';
  const server = await start(t, { config, prepare: ({ dir, env }) => {
    const git = (...args) => execFileSync("git", args, { cwd: dir, env });
    git("init", "-q", "-b", "main", ".");
    git("config", "user.name", "You");
    git("config", "user.email", "you@example.org");
    writeFileSync(join(dir, "shop.txt"), "one\ntwo\nthree\n");
    writeFileSync(join(dir, "gone.txt"), "away\n");
    git("add", "shop.txt", "gone.txt");
    git("commit", "-qm", "A shop");
  } });
  const trees = `${server.dir}.worktrees`;
  t.after(() => rmSync(trees, { recursive: true, force: true }));
  const id = await work(server, "write complete done", "apart");
  const tree = join(trees, id);
  writeFileSync(join(tree, "shop.txt"), "one\n2 <b>\u202e\nthree\nfour\n");
  rmSync(join(tree, "gone.txt"));
  mkdirSync(join(tree, "new"));
  writeFileSync(join(tree, "new/long.txt"), `${"x".repeat(1_000_000)}\n`);
  writeFileSync(join(tree, "picture.bin"), Buffer.from([0, 1, 2, 255, 0, 7]));
  const page = await open(t, server, { path: `/tasks/${id}?tab=changes` });
  const file = (name) => page.locator("details.file", { hasText: name });
  await file("shop.txt").locator("summary").click();
  await file("shop.txt").locator(".diff").waitFor();
  assert.match(await file("shop.txt").locator("summary").innerText(), /\+2\s+−1/);
  const removed = file("shop.txt").locator("tr.is-removed");
  assert.match(await removed.innerText(), /2\s+−\s+removed\s+two/);
  const added = await file("shop.txt").locator("tr.is-added").allInnerTexts();
  assert.equal(added.length, 2);
  assert.match(added[0], /2 <b>\\u202e/);
  await file("shop.txt").getByLabel("A comment on shop.txt").fill("two was better");
  await file("shop.txt").getByRole("button", { name: "Comment" }).click();
  await until("the comment is in the work log", async () => /shop.txt: two was better/.test((await shown(server, id)).body));
  assert.match(added[1], /4\s+\+\s+added\s+four/);
  await file("gone.txt").getByText("deleted").waitFor();
  await file("mock.txt").getByText("untracked").waitFor();
  await file("picture.bin").locator("summary").click();
  await file("picture.bin").getByText("A binary file").waitFor();
  await file("new/long.txt").locator("summary").click();
  assert.ok((await file("new/long.txt").innerText()).length < 20_000, "a long line is cut");
  await page.getByText(`baton/${id}`, { exact: true }).waitFor();
  await shot(page, "task-changes");
  assert.deepEqual(await axe(page), []);
  writeFileSync(join(tree, "later.txt"), "later\n");
  await page.getByRole("button", { name: "Look again" }).click();
  await file("later.txt").waitFor();

  const none = await newTask(server, "Nobody was here");
  const empty = await open(t, server, { path: `/tasks/${none}?tab=changes` });
  await until("it says why there is nothing", async () => (await empty.locator("#panel").innerText()).trim().length > 20);
  assert.equal(await empty.locator("details.file").count(), 0);
  assert.deepEqual([...page.problems, ...empty.problems], []);
});

const HOSTILE = `# Hello <script>globalThis.isHacked = true</script>

<img src="https://evil.example/a.png" onerror="globalThis.isHacked = true">
<iframe src="https://evil.example/"></iframe><svg onload="globalThis.isHacked = true">

[click](javascript:globalThis.isHacked=true) [data](data:text/html,<script>1</script>) [good](https://example.org/x)
![picture](https://evil.example/b.png) <https://example.org/auto>

- [x] done <style>body { display: none }</style>
- [ ] open \u202egnp.exe\u202c and \u0007 bell

| a | b |
| --- | --- |
| <b>1</b> | 2 |

\`\`\`html
</code></pre><script>globalThis.isHacked = true</script>
\`\`\`
`;

test("hostile Markdown is text: nothing of it runs, and nothing is fetched from elsewhere", async (t) => {
  const server = await start(t, { dispatch: false });
  const hostile = (await server.api("POST", "/v1/tasks", { title: "<img src=x onerror=alert(1)> \u202eevil", body: HOSTILE, metadata: { "<b>": "\u202e<script>" } })).id;
  const long = (await server.api("POST", "/v1/tasks", { title: "x".repeat(256), body: "y".repeat(131_000) })).id;
  const deep = (await server.api("POST", "/v1/tasks", { title: "deep", body: `${">".repeat(20_000)} a\n\n${"[".repeat(20_000)}\n\n${"*a ".repeat(10_000)}` })).id;
  await server.baton(["task", "log", hostile, "<script>globalThis.isHacked = true</script> \u202e\u001b[31mred"]);
  const elsewhere = [];
  const before = (page) => page.context().route("**", (route) => {
    if (!route.request().url().startsWith(server.url)) elsewhere.push(route.request().url());
    return route.continue();
  });
  const page = await open(t, server, { path: `/tasks/${hostile}`, before });
  await page.locator(".markdown").waitFor();
  const text = await page.locator(".markdown").innerText();
  assert.match(text, /<script>globalThis\.isHacked = true<\/script>/);
  assert.match(text, /<iframe src=/);
  assert.match(text, /\\u202egnp\.exe\\u202c/);
  assert.match(text, /\[image: picture\]/);
  // An address that stands in the text may be a link to it; none leads anywhere else than it says, and none does anything.
  const links = await page.locator(".markdown a").evaluateAll((all) => all.map(({ href, innerText, target, rel, title }) => ({ href, innerText, target, rel, title })));
  assert.ok(links.some((one) => one.href === "https://example.org/x" && one.innerText === "good"));
  assert.ok(links.some((one) => one.href === "https://example.org/auto"));
  for (const { href, innerText, target, rel, title } of links) {
    assert.match(href, /^https:\/\//);
    assert.equal(title, href, "where it leads is told before it is followed");
    assert.ok(innerText === "good" || innerText === href, `${innerText} leads to ${href}`);
    assert.equal(target, "_blank");
    assert.match(rel, /noopener/);
    assert.match(rel, /noreferrer/);
  }
  for (const name of ["click", "data"]) assert.equal(await page.locator(".markdown a", { hasText: name }).count(), 0, `${name} is no link`);
  assert.equal(await page.locator("#panel :is(img, iframe, svg, script, style)").count(), 0);
  for (const tab of TABS) {
    await page.goto(`${new URL(server.url).origin}/tasks/${hostile}?tab=${tab}`);
    await page.locator("#panel").waitFor();
    await page.locator(".link.is-good").waitFor();
  }
  await page.goto(`${new URL(server.url).origin}/tasks/${hostile}?tab=log`);
  await page.locator(".entry", { hasText: "<script>globalThis.isHacked" }).waitFor();
  assert.doesNotMatch(await page.locator("body").innerText(), /[\u202e\u001b\u0007]/);
  assert.equal(await page.evaluate(() => globalThis.isHacked), undefined);
  assert.equal(await page.locator("main script, main img").count(), 0);
  assert.deepEqual(elsewhere, []);

  for (const id of [long, deep]) {
    const other = await open(t, server, { path: `/tasks/${id}`, width: 360, before });
    await other.locator("#panel").getByText(id).waitFor();
    assert.equal(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await other.getByRole("tab", { name: "Raw" }).click();
    await other.getByText("task.created").waitFor();
    assert.deepEqual(other.problems, []);
  }
});

test("long code and wide tables of a brief are reached by the keyboard", async (t) => {
  const server = await start(t, { dispatch: false });
  const code = Array.from({ length: 200 }, (_, at) => `line ${at}`).join("\n");
  const row = `| ${Array.from({ length: 30 }, (_, at) => `column${at}`).join(" | ")} |`;
  const body = `\`\`\`\n${code}\n\`\`\`\n\n${row}\n${row.replace(/column\d+/g, "---")}\n${row}\n`;
  const id = (await server.api("POST", "/v1/tasks", { title: "Long and wide", body })).id;
  const page = await open(t, server, { path: `/tasks/${id}`, width: 360 });
  await page.locator(".markdown table").waitFor();
  assert.deepEqual(await axe(page), []);
});

test("an edit is saved; where somebody was faster, the text stays and what changed is said", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = (await server.api("POST", "/v1/tasks", { title: "Draft", body: "first\nsecond\n", status: "ready" })).id;
  const page = await open(t, server, { path: `/tasks/${id}` });
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Text, in Markdown").fill("first\nmine\n");
  // What is not in the way is no conflict: a line of the log, a claim.
  await server.baton(["task", "log", id, "a line"]);
  await server.baton(["task", "claim", id, "--agent", "ada"]);
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".markdown", { hasText: "mine" }).waitFor();
  assert.match((await shown(server, id)).body, /^first\nmine\n\n## Work Log\n\n- .*a line/);
  assert.doesNotMatch(await page.locator(".markdown").innerText(), /Work Log/);

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Title").fill("My title");
  await page.getByLabel("Text, in Markdown").fill("first\nmine again\n");
  await server.api("PATCH", `/v1/tasks/${id}`, { title: "Their title", body: "first\ntheirs\n" });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Not saved: title and text changed meanwhile").waitFor();
  await page.getByText("Their title”").waitFor();
  await page.locator(".conflict tr.is-added", { hasText: "theirs" }).waitFor();
  await page.locator(".conflict tr.is-removed", { hasText: "mine" }).waitFor();
  assert.equal(await page.getByLabel("Text, in Markdown").inputValue(), "first\nmine again\n");
  // It stays while one looks elsewhere.
  await panel(page, "Runs").click();
  await panel(page, "Brief").click();
  assert.equal(await page.getByLabel("Title").inputValue(), "My title");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Save mine over it" }).click();
  await page.getByRole("heading", { name: "My title" }).waitFor();
  assert.match((await shown(server, id)).body, /^first\nmine again\n/);
  assert.deepEqual(page.problems, []);
});

test("hand-offs show what was asked for, from both sides", async (t) => {
  const server = await start(t, { dispatch: false });
  const parent = await newTask(server, "Parent", "--ready");
  const child = await newTask(server, "Child", "--ready");
  await server.baton(["task", "claim", parent, "--agent", "ada"]);
  const page = await open(t, server, { path: `/tasks/${parent}?tab=handoffs` });
  await page.getByText("It stands alone").waitFor();
  await send(server, "handoff.request", child, "ada", {
    taskId: child, parentTaskId: parent, fromAgent: "ada", toAgent: "bob", acceptanceCriteria: ["10 MB is taken"], expectedOutputs: ["outputs/report.md"],
    contextRefs: [], constraints: ["No new dependencies"], dueBy: "2030-01-01T00:00:00Z",
  });
  await page.locator(".checklist li", { hasText: "10 MB is taken" }).waitFor();
  await page.getByRole("link", { name: child }).click();
  await panel(page, "Hand-offs").click();
  await page.getByRole("link", { name: parent }).waitFor();
  await page.getByText("not answered yet").waitFor();
  await send(server, "handoff.accepted", child, "bob", { taskId: child, accepted: true });
  await page.locator(".asked .mark.is-good", { hasText: "accepted" }).waitFor();
  assert.deepEqual(await axe(page), []);
});

test("everything as it is stored: files and records, folded", async (t) => {
  const server = await start(t);
  const id = await work(server, "complete done");
  const page = await open(t, server, { path: `/tasks/${id}?tab=raw` });
  const file = page.locator("details.file", { hasText: `${id}.md` });
  await file.locator("summary").click();
  await file.locator("pre", { hasText: "schemaVersion: 1" }).waitFor();
  const record = page.locator("details.file", { hasText: "task.completed" });
  await record.locator("summary").click();
  await record.locator("pre", { hasText: '"prev"' }).waitFor();
  await server.baton(["task", "log", id, "once more"]);
  await page.locator("details.file", { hasText: "task.logged" }).waitFor();
  assert.deepEqual(page.problems, []);
});

for (const dark of [false, true]) {
  test(`nothing stands in anybody's way, ${dark ? "dark" : "light"}, wide and narrow`, async (t) => {
    const server = await start(t);
    const id = await work(server, "tool crash 3 4");
    await server.baton(["task", "log", id, "A line of the log"]);
    for (const width of [1280, 360]) {
      const page = await open(t, server, { path: `/tasks/${id}`, dark, width });
      await page.locator("body").press("2");
      await page.locator(".entry").first().waitFor();
      for (const [at, tab] of TABS.entries()) {
        await page.locator("body").press(String(at + 1));
        await page.locator(`#tab-${tab}[aria-selected="true"]`).waitFor();
        await until("it is loaded", async () => (await page.getByText(/^Loading/).count()) === 0);
        assert.deepEqual(await axe(page), [], `${tab} at ${width}`);
        assert.equal(await page.evaluate(() => document.querySelector("main").scrollWidth <= innerWidth), true, `${tab} fits into ${width}`);
        await shot(page, `task-${tab}-${dark ? "dark" : "light"}-${width}`);
      }
      await page.getByRole("button", { name: "More" }).click();
      assert.deepEqual(await axe(page), [], "the menu");
      assert.deepEqual(page.problems, []);
    }
  });
}
