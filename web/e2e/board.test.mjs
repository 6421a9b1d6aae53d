// The board in a real browser, against a real server.
import assert from "node:assert/strict";
import { column, card, cardIn, countOf, dialog, make, work } from "./cards.mjs";
import { axe, binary, open, shot, start, test, until, WAIT_MS } from "./support.mjs";

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
  // What it is called elsewhere is copied from the card; the tab key passes it by.
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await held.getByTitle(`${urgent}: copy`).click();
  await until("the whole id is in the clipboard", () => page.evaluate((id) => navigator.clipboard.readText().then((text) => text === id), urgent));
  assert.equal(new URL(page.url()).pathname, "/");
  assert.deepEqual(page.problems, []);
  await shot(page, "board-light");
});

test("a lease drains, a beat fills it again, and what ran out is ready again with a failed attempt", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "Of long breath", "--ready", "--lease-ttl", "1h", "--heartbeat-ttl", "1m");
  const { fence } = await server.json(["task", "claim", id, "--agent", "ada"]);
  const { card: known } = await server.api("GET", `/v1/tasks/${id}`);
  const end = Date.parse(known.heartbeatBy);
  // The clock of the page stands where it is set, so that only what is tested moves the bar.
  const page = await open(t, server, { before: (fresh) => fresh.clock.setFixedTime(end - 54_000) });
  const bar = card(page, "Of long breath").getByRole("meter");
  const left = () => bar.locator(".lease-left").evaluate((box) => parseFloat(box.style.width));
  for (const seconds of [36, 18, 6]) {
    await page.clock.setFixedTime(end - seconds * 1000);
    await until(`${seconds} seconds are left`, async () => (await bar.getAttribute("aria-valuetext")) === `${seconds} s left` && Math.abs((await left()) - seconds / 0.6) < 0.2);
  }
  assert.equal(await card(page, "Of long breath").locator(".lease.is-low").count(), 1);
  // A beat is told to everybody once a fair part of the lease was used up: they are sent until then.
  await until("a beat fills it again", async () => {
    await server.baton(["task", "beat", id, "--agent", "ada", "--fence", String(fence)]);
    return (await left()) > 20;
  }, 2 * WAIT_MS);
  await page.clock.setFixedTime(end + 30 * 60_000);
  await card(page, "Of long breath").getByText("lease ran out").waitFor();
  // Nobody beats: the server gives it back, with one failed attempt.
  const short = await make(server, "Short of breath", "--ready", "--lease-ttl", "1s", "--heartbeat-ttl", "1s");
  await server.baton(["task", "claim", short, "--agent", "ada"]);
  await cardIn(page, "ready", "Short of breath").getByText("1 failed attempt").waitFor();
  // Whoever takes it up again is at another attempt; it rests before it can be taken.
  const again = await make(server, "Once more", "--ready");
  await server.baton(["task", "claim", again, "--agent", "ada", "--ttl", "1s"]);
  await cardIn(page, "ready", "Once more").getByText("1 failed attempt").waitFor();
  await until("it is taken again", () => server.baton(["task", "claim", again, "--agent", "bob", "--ttl", "1h"]).then(() => true, () => false), 3 * WAIT_MS);
  await cardIn(page, "in-progress", "Once more").getByText("attempt 2", { exact: true }).waitFor();
  await cardIn(page, "in-progress", "Once more").getByText("bob").waitFor();
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
  // Scrolls through it in steps: what is seen is drawn, and what is not seen is not. `make bench` has how long a step takes.
  const steps = await column(page, "ready").locator(".windowed").evaluate(async (box) => {
    const found = [];
    for (let n = 0; n < 60; n += 1) {
      box.scrollTop += 4000;
      const { top, bottom } = box.getBoundingClientRect();
      const isSeen = (y) => [...box.querySelectorAll(".card")].some((one) => one.getBoundingClientRect().top <= y && one.getBoundingClientRect().bottom >= y - 16);
      for (let frame = 0; frame < 600 && !(isSeen(top + 40) && isSeen(bottom - 40)); frame += 1) await new Promise(requestAnimationFrame);
      found.push({ isDrawn: isSeen(top + 40) && isSeen(bottom - 40), cards: document.querySelectorAll(".card").length, nodes: box.querySelectorAll("*").length });
    }
    return found;
  });
  assert.ok(steps.every(({ isDrawn, cards, nodes }) => isDrawn && cards < 120 && nodes < 3000), JSON.stringify(steps));
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
