// The board in a real browser, against a real server.
import assert from "node:assert/strict";
import { axe, binary, open, shot, start, test, until, WAIT_MS } from "./support.mjs";

const column = (page, status) => page.locator(`.column[data-status="${status}"]`);
const card = (page, title) => page.locator(".card", { hasText: title });
const cardIn = (page, status, title) => column(page, status).locator(".card", { hasText: title });
const countOf = (page, status) => column(page, status).locator(".column-head .count");
const dialog = (page) => page.locator("dialog[open]");

/** A task made on the command line; gives its id. */
const make = async (server, title, ...more) => (await server.json(["task", "new", title, ...more])).id;

/** What an agent does: takes a task, and reports that it is finished. */
async function work(server, id, agent = "ada", tests = { total: 3, passed: 3, failed: 0 }) {
  const { fence } = await server.json(["task", "claim", id, "--agent", agent]);
  return () => report(server, id, agent, fence, tests);
}

async function report(server, id, agent, fence, tests) {
  const message = {
    protocol: "aof", version: 1, type: "completion.report", taskId: id, fromAgent: agent, toAgent: "baton", sentAt: new Date().toISOString(), fence,
    payload: { outcome: "done", summaryRef: "outputs/summary.md", tests, notes: "" },
  };
  const answer = await server.json(["send"], { input: JSON.stringify(message) });
  assert.equal(answer.accepted, true, JSON.stringify(answer));
}

/** Drags with the mouse, as a person does; leaves the button pressed. */
async function dragOver(page, from, to) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(a.x + a.width / 2, a.y + a.height - 14);
  await page.mouse.down();
  await page.mouse.move(a.x + a.width / 2 + 8, a.y + a.height - 8, { steps: 3 });
  await page.mouse.move(b.x + b.width / 2, b.y + 160, { steps: 8 });
  await page.mouse.move(b.x + b.width / 2, b.y + 164);
}

test("an empty board says how to begin, and what would put a card where", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server);
  await page.getByText("There are no tasks yet").waitFor();
  await page.getByText("baton task new").waitFor();
  assert.equal(await page.locator(".column-empty").count(), 6);
  await column(page, "in-progress").getByText("when an agent takes it").waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Make the first one" }).click();
  await dialog(page).getByRole("heading", { name: "New task" }).waitFor();
  assert.deepEqual(page.problems, []);
});

test("while it loads it says so", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "Here in the end");
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const page = await open(t, server, {
    isWaiting: false,
    before: (page) => page.route("**/v1/tasks?*", async (route) => { await held; await route.continue(); }),
  });
  await page.getByText("Loading the board").waitFor();
  release();
  await cardIn(page, "backlog", "Here in the end").waitFor();
  assert.equal(await page.getByText("Loading the board").count(), 0);
});

test("what cannot be loaded is told with its code, and tried again", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "Behind the failure");
  let isBroken = true;
  const problem = { type: "urn:baton:error:L001", title: "the ledger does not answer", status: 500, code: "L001", hint: "baton doctor" };
  const page = await open(t, server, {
    before: (page) => page.route("**/v1/tasks?*", (route) => (isBroken ? route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify(problem) }) : route.continue())),
  });
  const alert = page.getByRole("alert");
  await alert.getByText("The board cannot be shown").waitFor();
  await alert.getByText("the ledger does not answer").waitFor();
  await alert.getByText("L001").waitFor();
  await alert.getByText("baton doctor").waitFor();
  assert.deepEqual(await axe(page), []);
  isBroken = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await card(page, "Behind the failure").waitFor();
});

test("a card shows what is known of its task", async (t) => {
  const server = await start(t, { dispatch: false });
  const urgent = await make(server, "Urgent and held", "--ready", "--priority", "critical", "--tag", "login");
  const { fence } = await server.json(["task", "claim", urgent, "--agent", "ada"]);
  const tested = await make(server, "Tested", "--ready");
  await (await work(server, tested, "bob", { total: 5, passed: 3, failed: 2 }))();
  const stuck = await make(server, "Stuck", "--ready");
  await server.baton(["task", "move", stuck, "blocked", "--reason", "No network in the sandbox"]);
  const page = await open(t, server);

  const held = cardIn(page, "in-progress", "Urgent and held");
  await held.getByText("critical").waitFor();
  await held.getByText("ada").waitFor();
  await held.getByText("implementation").waitFor();
  await held.getByText(urgent.replace("TASK-2026-", "").slice(-9)).waitFor();
  const bar = held.getByRole("meter");
  assert.match(await bar.getAttribute("aria-label"), /^Lease: .*(min|s) left$/);
  const first = Number(await bar.getAttribute("aria-valuenow"));
  assert.ok(first > 50 && first <= 100, `${first}`);
  await until("it drains", async () => (await bar.locator(".lease-left").evaluate((left) => parseFloat(left.style.width))) < 100);
  await server.baton(["task", "beat", urgent, "--agent", "ada", "--fence", String(fence)]);

  await cardIn(page, "review", "Tested").getByRole("img", { name: "3 tests passed, 2 failed" }).waitFor();
  await cardIn(page, "review", "Tested").getByText("by bob").waitFor();
  await cardIn(page, "blocked", "Stuck").getByText("No network in the sandbox").waitFor();
  await page.getByRole("button", { name: "2 need you" }).waitFor();
  assert.deepEqual(page.problems, []);
  await shot(page, "board-light");
});

test("a lease drains, a beat fills it again, and what ran out is ready again with a failed attempt", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Short of breath", "--ready", "--lease-ttl", "8s", "--heartbeat-ttl", "8s");
  const { fence } = await server.json(["task", "claim", id, "--agent", "ada"]);
  const page = await open(t, server);
  const bar = card(page, "Short of breath").getByRole("meter");
  const left = async () => Number(await bar.getAttribute("aria-valuenow"));
  const low = await until("it drains", async () => { const now = await left(); return now < 60 ? now : undefined; });
  await server.baton(["task", "beat", id, "--agent", "ada", "--fence", String(fence)]);
  await until("it is filled again", async () => (await left()) > low + 20);
  // Nobody beats any more: the server gives it back, with one failed attempt.
  await cardIn(page, "ready", "Short of breath").getByText("1 failed attempt").waitFor();
});

test("a task from nothing to done by mouse", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server);
  await page.getByRole("button", { name: "New task" }).click();
  await dialog(page).getByRole("button", { name: "Make it" }).click();
  await dialog(page).getByText("Say in a line what is to be done").waitFor();
  assert.equal(await dialog(page).getByLabel("What is to be done").getAttribute("aria-invalid"), "true");
  await dialog(page).getByLabel("What is to be done").fill("Fix the login by mouse");
  await dialog(page).getByLabel("More about it").fill("# Why\n\nIt is broken.");
  await dialog(page).getByLabel("Priority").selectOption("high");
  await dialog(page).getByLabel("For").selectOption("mock");
  await dialog(page).getByLabel(/ready: an agent/).uncheck();
  await dialog(page).getByRole("button", { name: "Make it" }).click();
  const own = cardIn(page, "backlog", "Fix the login by mouse");
  await own.waitFor();
  assert.equal(await dialog(page).count(), 0);

  await dragOver(page, own, column(page, "ready"));
  await column(page, "ready").getByText("Move to ready").waitFor();
  await page.mouse.up();
  const reason = dialog(page).getByLabel("Why it goes to ready");
  await reason.waitFor();
  assert.ok(await reason.evaluate((field) => field === document.activeElement), "the reason has the focus");
  await reason.fill("it is wanted now");
  await dialog(page).getByRole("button", { name: "Move to ready" }).click();
  await cardIn(page, "ready", "Fix the login by mouse").waitFor();

  const [{ id }] = (await server.api("GET", "/v1/tasks")).tasks;
  const task = await server.api("GET", `/v1/tasks/${id}`);
  assert.match(task.body, /It is broken/);
  assert.equal(task.priority, "high");
  assert.equal(task.routing.agent, "mock");
  const moved = (await server.baton(["events", "--json"])).trim().split("\n").map((line) => JSON.parse(line)).filter((event) => event.type === "task.transitioned");
  assert.equal(moved.at(-1).payload.reason, "it is wanted now");

  const finish = await work(server, id);
  await cardIn(page, "in-progress", "Fix the login by mouse").waitFor();
  await finish();
  await cardIn(page, "review", "Fix the login by mouse").getByRole("button", { name: /^Approve/ }).click();
  await dialog(page).getByLabel(/through every phase/).check();
  await dialog(page).getByRole("button", { name: "Approve" }).click();
  await cardIn(page, "done", "Fix the login by mouse").waitFor();
  assert.equal((await server.api("GET", `/v1/tasks/${id}`)).status, "done");
  assert.deepEqual(page.problems, []);
});

test("a task from nothing to done by keys alone", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "Another one");
  const page = await open(t, server);
  await card(page, "Another one").waitFor();
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());

  await press("n");
  await dialog(page).waitFor();
  await page.keyboard.type("Fix the login by keys");
  await press("Tab");
  await page.keyboard.type("It is broken.");
  await press("Tab", "Tab", "Tab", "Space", "Control+Enter");
  await cardIn(page, "backlog", "Fix the login by keys").waitFor();
  await until("the new card is selected", () => page.locator(".card.is-selected", { hasText: "Fix the login by keys" }).count());

  // To another card and back again: the newest is the last of its column.
  await press("k");
  await page.locator(".card.is-selected", { hasText: "Another one" }).waitFor();
  await press("ArrowDown");
  await page.locator(".card.is-selected", { hasText: "by keys" }).waitFor();
  await press("m");
  await dialog(page).locator('[data-to="ready"][aria-disabled="false"]').waitFor();
  await press("d");
  await dialog(page).getByRole("alert").getByText("Not to done").waitFor();
  await press("r");
  const reason = dialog(page).getByLabel("Why it goes to ready");
  await reason.waitFor();
  assert.equal(await reason.evaluate((field) => field.value.slice(field.selectionStart, field.selectionEnd)), "moved on the board", "what stands there is replaced by typing");
  await page.keyboard.type("now");
  await press("Enter");
  await cardIn(page, "ready", "by keys").waitFor();
  await until("the moved card has the focus", () => page.evaluate(() => document.activeElement?.classList.contains("card-title") && document.activeElement.textContent.includes("by keys")));

  const { id } = (await server.api("GET", "/v1/tasks")).tasks.find((task) => task.status === "ready");
  const finish = await work(server, id);
  await cardIn(page, "in-progress", "by keys").waitFor();
  await finish();
  await cardIn(page, "review", "by keys").waitFor();

  await press("x");
  await dialog(page).getByLabel(/What is wrong/).waitFor();
  await page.keyboard.type("no test");
  await press("Enter");
  await cardIn(page, "ready", "by keys").waitFor();
  await (await work(server, id, "bob"))();
  await cardIn(page, "review", "by keys").waitFor();
  await press("a");
  await dialog(page).waitFor();
  await press("Enter");
  await cardIn(page, "done", "by keys").waitFor();
  await press("Enter");
  await page.waitForURL(`**/tasks/${id}`);
  await press("Escape");
  await cardIn(page, "done", "by keys").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a move that cannot be made explains why before it is made", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Stays where it is", "--ready");
  const page = await open(t, server);
  const own = cardIn(page, "ready", "Stays where it is");
  await own.waitFor();
  await dragOver(page, own, column(page, "done"));
  await column(page, "done").locator(".drop-hint.is-no.is-over").getByText("cannot go to done").waitFor();
  await column(page, "in-progress").getByText("by a claim").waitFor();
  await column(page, "blocked").getByText("Move to blocked").waitFor();
  await shot(page, "board-drag");
  await page.mouse.up();
  await page.locator(".toast.is-bad").getByText("Not moved to done").waitFor();
  assert.equal(await dialog(page).count(), 0);
  assert.equal(await page.locator(".drop-hint").count(), 0);

  await own.getByRole("button", { name: /^Move/ }).click();
  const off = dialog(page).locator('[data-to="in-progress"][aria-disabled="true"]');
  await off.getByText("by a claim").waitFor();
  // It can be pressed, and says why again; nothing is done.
  await off.click({ force: true });
  await dialog(page).getByRole("alert").getByText("Not to in-progress").waitFor();
  assert.equal(await dialog(page).getByRole("button", { name: "Move", exact: true }).isDisabled(), true);
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("Escape");
  await until("the dialog is closed", async () => (await dialog(page).count()) === 0);
  const task = await server.api("GET", `/v1/tasks/${id}`);
  assert.equal(task.status, "ready");
});

test("a card that goes elsewhere while it is dragged leaves nothing behind", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Taken away", "--ready");
  await make(server, "Stays there", "--ready");
  const page = await open(t, server);
  await dragOver(page, cardIn(page, "ready", "Taken away"), column(page, "backlog"));
  await page.locator(".drop-hint").first().waitFor();
  await server.baton(["task", "move", id, "blocked", "--reason", "meanwhile"]);
  await cardIn(page, "blocked", "Taken away").waitFor();
  await until("the hints are gone", async () => (await page.locator(".drop-hint").count()) === 0);
  await page.mouse.up();
  assert.equal(await dialog(page).count(), 0, "what was let go is moved nowhere");
  // Also where it is only hidden: a filter takes the element away, and its end is not heard.
  await dragOver(page, cardIn(page, "ready", "Stays there"), column(page, "done"));
  await column(page, "done").locator(".drop-hint.is-over").waitFor();
  await page.getByRole("searchbox").evaluate((field) => { field.value = "taken"; field.dispatchEvent(new Event("input", { bubbles: true })); });
  await cardIn(page, "ready", "Stays there").waitFor({ state: "detached" });
  await page.mouse.move(4, 300);
  await page.mouse.up();
  await page.mouse.move(300, 20, { steps: 3 });
  await until("the hints are gone", async () => (await page.locator(".drop-hint").count()) === 0);
  assert.deepEqual(page.problems, []);
});

test("a letter right after m chooses, however fast it comes; Enter moves", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "In haste");
  const page = await open(t, server);
  const devtools = await page.context().newCDPSession(page);
  // Handed over together, without waiting for what comes of the first.
  const type = (...keys) => Promise.all(keys.map((key) => devtools.send("Input.dispatchKeyEvent", { type: "keyDown", key, text: key })));
  await card(page, "In haste").waitFor();
  for (const [letter, status] of [["r", "ready"], ["x", "deadletter"], ["o", "blocked"]]) {
    await page.keyboard.press("j");
    await page.locator(".card.is-selected").waitFor();
    await type("m", letter);
    // It means a place here, and no other thing that the key does on the board, as `x` does.
    await until("the reason has the focus", () => dialog(page).getByLabel(`Why it goes to ${status}`).evaluate((field) => field === document.activeElement));
    await page.keyboard.press(status === "deadletter" ? "Escape" : "Enter");
    if (status !== "deadletter") await cardIn(page, status, "In haste").waitFor();
    await until("the dialog is closed", async () => (await dialog(page).count()) === 0);
  }
  assert.deepEqual(page.problems, []);
});

test("Ctrl+K leads to the search from every screen, and is listed", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "To be found");
  const page = await open(t, server);
  for (const path of ["/", "/sessions", "/traces", "/health", `/tasks/${id}?tab=log`]) {
    await page.goto(new URL(path, server.url).href);
    await page.locator(".link.is-good").waitFor();
    await page.keyboard.press("Control+k");
    await page.waitForURL((url) => url.pathname === "/");
    await until(`the search has the focus, from ${path}`, () => page.evaluate(() => document.activeElement?.id === "board-search"));
  }
  await page.keyboard.type("found");
  await card(page, "To be found").waitFor();
  // What stands there is replaced by typing.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("nothing");
  await page.getByText("None of 1 tasks fits the filters").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await dialog(page).locator(".keys div", { hasText: "Ctrl+k" }).getByText("search the tasks").waitFor();
});

test("a card that changed meanwhile is not moved blindly", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Moves elsewhere", "--ready");
  let isHeld = false;
  const page = await open(t, server, {
    // It is changed after the person has decided, and before the server hears of that.
    before: (page) => page.route("**/v1/tasks/*/transition", async (route) => {
      if (!isHeld) { isHeld = true; await server.baton(["task", "edit", id, "--title", "Moves elsewhere again"]); }
      await route.continue();
    }),
  });
  await card(page, "Moves elsewhere").getByRole("button", { name: /^Move/ }).click();
  await dialog(page).locator('[data-to="blocked"][aria-disabled="false"]').click();
  await dialog(page).getByRole("button", { name: "Move to blocked" }).click();
  await dialog(page).getByRole("alert").getByText("has changed while you looked at it").waitFor();
  assert.equal((await server.api("GET", `/v1/tasks/${id}`)).status, "ready");
  await dialog(page).getByRole("heading", { name: "Moves elsewhere again" }).waitFor();
  // Who has seen that may go on.
  await until("it is moved", async () => {
    await dialog(page).getByRole("button", { name: "Move to blocked" }).click({ timeout: 1000 }).catch(() => undefined);
    return (await server.api("GET", `/v1/tasks/${id}`)).status === "blocked";
  });
  await cardIn(page, "blocked", "again").waitFor();
});

test("a refusal stands at its field, and what was typed stays", async (t) => {
  const server = await start(t, { dispatch: false });
  let problem = { type: "urn:baton:error:T002", title: "the title does not fit", detail: "title: no control characters", status: 422, code: "T002" };
  const page = await open(t, server, {
    before: (page) => page.route("**/v1/tasks", (route) => (problem ? route.fulfill({ status: problem.status, contentType: "application/problem+json", body: JSON.stringify(problem) }) : route.continue())),
  });
  const title = dialog(page).getByLabel("What is to be done");
  await page.keyboard.press("n");
  await title.fill("x".repeat(257));
  await page.keyboard.press("Enter");
  await dialog(page).locator("#new-title-error").getByText("At most 256").waitFor();
  await title.fill("Refused at first");
  await page.keyboard.press("Enter");
  await dialog(page).locator("#new-title-error").getByText("no control characters").waitFor();
  await dialog(page).locator("#new-title-error").getByText("T002").waitFor();
  assert.equal(await title.getAttribute("aria-describedby"), "new-title-error");
  problem = { type: "urn:baton:error:L001", title: "the disk is full", status: 500, code: "L001", hint: "baton doctor" };
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("alert").getByText("the disk is full (L001). Try: baton doctor").waitFor();
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("Escape");
  await until("the dialog is closed", async () => (await dialog(page).count()) === 0);
  await page.keyboard.press("n");
  await until("what was typed is there", async () => (await title.inputValue()) === "Refused at first");
  problem = undefined;
  await title.press("Enter");
  await cardIn(page, "ready", "Refused at first").waitFor();
  assert.equal((await server.api("GET", "/v1/tasks")).tasks.length, 1);
});

test("filters stand in the address and survive a reload", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "Login form", "--ready", "--tag", "ui", "--agent", "ada", "--priority", "high");
  await make(server, "Login limit", "--ready", "--tag", "backend", "--agent", "bob");
  await make(server, "Imports", "--ready");
  const gone = await make(server, "Called off", "--ready");
  await server.baton(["task", "move", gone, "cancelled", "--reason", "no"]);
  const page = await open(t, server);
  const titles = async () => (await page.locator(".card-title").allTextContents()).sort();
  const shows = (...expected) => until(`${expected}`, async () => JSON.stringify(await titles()) === JSON.stringify(expected.sort()));
  await shows("Login form", "Login limit", "Imports");

  await page.keyboard.press("/");
  await page.keyboard.type("login");
  await shows("Login form", "Login limit");
  assert.equal(await countOf(page, "ready").textContent(), "2");
  await page.getByLabel("agent", { exact: true }).selectOption("ada");
  await shows("Login form");
  await page.reload();
  await page.locator(".link.is-good").waitFor();
  await shows("Login form");
  assert.equal(new URL(page.url()).searchParams.get("q"), "login");
  assert.equal(new URL(page.url()).searchParams.get("agent"), "ada");
  assert.equal(await page.getByRole("searchbox").inputValue(), "login");

  await page.getByRole("searchbox").fill("nothing of that");
  await page.getByText("None of 4 tasks fits the filters").waitFor();
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await shows("Login form", "Login limit", "Imports");
  assert.equal(new URL(page.url()).search, "");

  await page.getByLabel("tag", { exact: true }).selectOption("backend");
  await shows("Login limit");
  await page.getByLabel("tag", { exact: true }).selectOption("");
  await page.getByLabel("priority", { exact: true }).selectOption("high");
  await shows("Login form");
  await page.getByLabel("priority", { exact: true }).selectOption("");
  await page.getByLabel("ended").check();
  await cardIn(page, "cancelled", "Called off").waitFor();
  await page.reload();
  await cardIn(page, "cancelled", "Called off").waitFor();
  await column(page, "deadletter").getByText("is given up").waitFor();
  // Enter leads from the search to the first card.
  await page.keyboard.press("/");
  await page.keyboard.type("imports");
  await page.keyboard.press("Enter");
  await page.locator(".card.is-selected", { hasText: "Imports" }).waitFor();
});

test("what changes takes the focus from nobody, and takes it along with a card", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Has the focus", "--ready");
  const page = await open(t, server);
  await card(page, "Has the focus").waitFor();
  await page.keyboard.press("j");
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  await until("the card has the focus", async () => (await focused()) === "Has the focus");
  await server.baton(["task", "move", id, "blocked", "--reason", "wait"]);
  await cardIn(page, "blocked", "Has the focus").waitFor();
  await until("it has it still", async () => (await focused()) === "Has the focus");
  await page.keyboard.press("/");
  await page.keyboard.type("focus");
  await server.baton(["task", "move", id, "ready", "--reason", "go on"]);
  await cardIn(page, "ready", "Has the focus").waitFor();
  await page.keyboard.type(" has");
  assert.equal(await page.getByRole("searchbox").inputValue(), "focus has");
});

test("two windows stay in step", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Seen by both");
  const [left, right] = await Promise.all([open(t, server), open(t, server, { dark: true })]);
  await card(right, "Seen by both").waitFor();
  await card(left, "Seen by both").getByRole("button", { name: /^Move/ }).click();
  await dialog(left).locator('[data-to="ready"][aria-disabled="false"]').click();
  await dialog(left).getByRole("button", { name: "Move to ready" }).click();
  await cardIn(left, "ready", "Seen by both").waitFor();
  await cardIn(right, "ready", "Seen by both").waitFor();
  // And with the command line, while one of them looks at the task in a dialog.
  await card(right, "Seen by both").getByRole("button", { name: /^Move/ }).click();
  await dialog(right).waitFor();
  await server.baton(["task", "move", id, "blocked", "--reason", "wait"]);
  await cardIn(left, "blocked", "Seen by both").waitFor();
  await dialog(right).getByRole("alert").getByText("it is blocked now").waitFor();
  await dialog(right).locator('[data-to="ready"][aria-disabled="false"]').waitFor();
});

test("the server is killed and started again under the open page, which catches up", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Outlives the server");
  const page = await open(t, server);
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await card(page, "Outlives the server").waitFor();
  await server.kill();
  await page.locator(".link.is-bad").getByText(/offline/).waitFor();
  // What is done while nobody serves is seen afterwards.
  await server.baton(["task", "move", id, "ready", "--reason", "meanwhile"]);
  await make(server, "Made in the dark", "--ready");
  await server.serve();
  await page.locator(".link.is-good").waitFor({ timeout: 3 * WAIT_MS });
  await cardIn(page, "ready", "Outlives the server").waitFor();
  await cardIn(page, "ready", "Made in the dark").waitFor();
  await make(server, "Made in the light", "--ready");
  await cardIn(page, "ready", "Made in the light").waitFor();
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "without a reload");
  assert.deepEqual(page.problems, []);
});

test("agents at work: a session to watch, and the seal of a guarded run", async (t) => {
  const agent = (name) => `[agents.${name}]\nharness = "acp"\ncommand = [${JSON.stringify(binary)}, "mock-agent"]\n${name === "bob" ? "fs = true\nterminal = true\n" : ""}`;
  const team = '[team]\nplanner = "ada"\nexecutor = "bob"\ncritic = "cleo"\nauditor = "dora"';
  const server = await start(t, { config: [...["ada", "bob", "cleo", "dora"].map(agent), team].join("\n") });
  const page = await open(t, server);
  await make(server, "edit sealed.txt complete done", "--guarded", "--ready");
  const sealed = card(page, "edit sealed.txt").locator(".mark");
  await sealed.filter({ hasText: /guarded|verified/ }).waitFor();
  await sealed.filter({ hasText: /✓ verified$/ }).waitFor({ timeout: 60_000 });
  // One that did nothing is not verified, and says why.
  await make(server, "Nothing done", "--guarded", "--ready");
  await cardIn(page, "blocked", "Nothing done").locator(".mark").filter({ hasText: "not verified" }).waitFor({ timeout: 60_000 });
  await cardIn(page, "blocked", "Nothing done").getByText("the executor ran nothing").waitFor();
  const id = await make(server, "Watched by a person: hang", "--ready", "--agent", "mock");
  const watch = cardIn(page, "in-progress", "Watched by a person").getByRole("link", { name: "mock" });
  await watch.waitFor();
  const { card: known } = await server.api("GET", `/v1/tasks/${id}`);
  assert.equal(await watch.getAttribute("href"), `/sessions/${known.session}`);
  assert.deepEqual(await axe(page), []);
  await shot(page, "board-agents");
  assert.deepEqual(page.problems, []);
});

test("three thousand tasks scroll, and what changes is drawn at once", { timeout: 300_000 }, async (t) => {
  const server = await start(t, { dispatch: false, env: { BATON_LEDGER_DURABILITY: "none" } });
  const COUNT = 3000;
  let next = 0;
  const maker = async () => {
    while (next < COUNT) {
      const n = next++;
      await server.api("POST", "/v1/tasks", { title: `Task number ${n}`, status: n % 3 === 0 ? "backlog" : "ready" });
    }
  };
  await Promise.all(Array.from({ length: 16 }, maker));
  const page = await open(t, server);
  await until("all are counted", async () => (await countOf(page, "backlog").textContent()) === "1000" && (await countOf(page, "ready").textContent()) === "2000", 60_000);
  assert.ok((await page.locator(".card").count()) < 120, "only what is seen is drawn");
  // Scrolls through it in steps: each is drawn within a frame or two.
  const slowest = await column(page, "ready").locator(".windowed").evaluate(async (box) => {
    let worst = 0;
    for (let n = 0; n < 60; n += 1) {
      const began = performance.now();
      box.scrollTop += 4000;
      await new Promise((later) => requestAnimationFrame(() => requestAnimationFrame(later)));
      worst = Math.max(worst, performance.now() - began);
    }
    return worst;
  });
  assert.ok(slowest < 1000, `a step took ${slowest} ms`);
  await until("the end is drawn", async () => {
    await column(page, "ready").locator(".windowed").evaluate((box) => { box.scrollTop = box.scrollHeight; });
    return (await column(page, "ready").locator('[aria-posinset="2000"] .card').count()) === 1;
  });
  await page.getByRole("searchbox").fill("number 2999");
  await cardIn(page, "ready", "Task number 2999").waitFor();
  const id = (await server.api("GET", "/v1/tasks?limit=1000")).tasks.at(0).id;
  await page.getByRole("searchbox").fill(id);
  await page.locator(".card").waitFor();
  await server.baton(["task", "move", id, "cancelled", "--reason", "no"]);
  await until("it is gone from its column", async () => (await page.locator(".card").count()) === 0);
});

test("hostile titles are shown as text", async (t) => {
  const server = await start(t, { dispatch: false });
  const script = '<img src=x onerror="globalThis.pwned = 1"><script>globalThis.pwned = 1</script>';
  await make(server, script, "--ready");
  await make(server, `${"wide".repeat(60)}`, "--ready");
  await make(server, "left \u202egnp.exe right", "--ready");
  await make(server, "[click](javascript:alert(1))", "--ready", "--tag", "<b>tag</b>");
  const stuck = await make(server, "Stuck", "--ready");
  await server.baton(["task", "move", stuck, "blocked", "--reason", '"><svg onload=globalThis.pwned=1>']);
  const page = await open(t, server);
  await card(page, script).waitFor();
  await card(page, "left \\u202egnp.exe right").waitFor();
  await card(page, "[click](javascript:alert(1))").waitFor();
  assert.equal(await page.locator(".card img, .card script, .card b, .card svg").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  for (const box of await page.locator(".card").all()) assert.ok((await box.evaluate((one) => one.scrollWidth - one.clientWidth)) <= 1, "nothing sticks out of its card");
  await card(page, script).getByRole("button", { name: /^Move/ }).click();
  await dialog(page).getByRole("heading", { name: /<img src=x/ }).waitFor();
  assert.deepEqual(page.problems, []);
});

for (const dark of [false, true]) {
  test(`no serious finding of axe, ${dark ? "dark" : "light"}; and on a narrow screen one column at a time`, async (t) => {
    const server = await start(t, { dispatch: false });
    for (const priority of ["critical", "high", "normal", "low"]) await make(server, `A ${priority} task`, "--ready", "--priority", priority, "--tag", "ui");
    await server.json(["task", "claim", await make(server, "Held", "--ready"), "--agent", "ada"]);
    await server.json(["task", "claim", await make(server, "Held and low", "--ready", "--lease-ttl", "10m"), "--agent", "bob"]);
    const stuck = await make(server, "Stuck", "--ready");
    await server.baton(["task", "move", stuck, "blocked", "--reason", "No network"]);
    await (await work(server, await make(server, "Tested", "--ready"), "ada", { total: 5, passed: 3, failed: 2 }))();
    await make(server, "Guarded", "--guarded");
    const page = await open(t, server, { dark });
    await cardIn(page, "review", "Tested").waitFor();
    await page.keyboard.press("j");
    assert.deepEqual(await axe(page), []);
    await shot(page, `board-${dark ? "dark" : "light"}-full`);
    await page.keyboard.press("m");
    await dialog(page).locator('[aria-disabled="false"]').first().waitFor();
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press("Escape");

    const narrow = await open(t, server, { dark, width: 360, height: 700 });
    await cardIn(narrow, "in-progress", "Held and low").waitFor();
    assert.equal(await narrow.locator(".column:visible").count(), 1);
    await narrow.locator(".column-strip").getByRole("button", { name: /^review 1/ }).click();
    await cardIn(narrow, "review", "Tested").waitFor();
    assert.equal(await narrow.locator(".column:visible").count(), 1);
    assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing to scroll sideways");
    await narrow.reload();
    await cardIn(narrow, "review", "Tested").waitFor();
    assert.deepEqual(await axe(narrow), []);
    await shot(narrow, `board-${dark ? "dark" : "light"}-narrow`);
  });
}
