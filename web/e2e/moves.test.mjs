// Cards that are moved: by mouse, by keys, in time and too late.
import assert from "node:assert/strict";
import { column, card, cardIn, dialog, make, work, dragOver } from "./cards.mjs";
import { axe, open, shot, start, test, until } from "./support.mjs";

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
  assert.equal(await reason.evaluate((field) => field.value.slice(field.selectionStart, field.selectionEnd)), "moved on the page", "what stands there is replaced by typing");
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
