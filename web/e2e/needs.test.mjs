// What needs a person: one list on every screen, its count in the title, a notice on the desktop where that is allowed.
import assert from "node:assert/strict";
import { make, work } from "./cards.mjs";
import { axe, follow, open, shot, start, test, until } from "./support.mjs";

test("what needs a person is one list on every screen, counted in the title, and told on the desktop", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, {
    // A browser without a desktop tells nobody: what it would tell is kept. The tab is one that is not looked at.
    before: (page) => page.addInitScript(() => {
      globalThis.told = [];
      globalThis.Notification = class {
        static permission = "granted";
        constructor(title, { body }) { globalThis.told.push(`${title} | ${body}`); }
      };
      Object.defineProperty(document, "hidden", { get: () => true });
    }),
  });
  await page.getByRole("button", { name: "Nothing needs you" }).waitFor();
  assert.equal(await page.title(), "Board · Baton");

  const { id } = await server.json(["task", "new", "Ask <b>somebody</b>", "--ready"]);
  await server.baton(["task", "move", id, "blocked", "--reason", "which colour?"]);
  await page.getByRole("button", { name: "1 needs you" }).waitFor();
  await until("the count is in the title", async () => (await page.title()) === "(1) Board · Baton");
  await until("it is told", async () => (await page.evaluate(() => globalThis.told.length)) === 1);
  assert.deepEqual(await page.evaluate(() => globalThis.told), ["Blocked: Ask <b>somebody</b> | which colour?"]);

  // A permission, a review and a task that was given up come to the same list, in the order in which they are urgent.
  const { id: session } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", `/v1/sessions/${session}/input`, { text: "permission" });
  await page.getByRole("button", { name: "2 need you" }).waitFor();
  const review = await make(server, "To be judged", "--ready");
  await (await work(server, review))();
  const gone = await make(server, "Hopeless", "--ready");
  await server.baton(["task", "move", gone, "deadletter", "--reason", "it was tried enough"]);
  await page.getByRole("button", { name: "4 need you" }).waitFor();
  const list = page.getByRole("region", { name: "What needs you" });
  const places = [["g s", "/sessions"], ["g t", "/traces"], ["g h", "/health"], ["g b", "/"], ["", `/tasks/${id}`], ["", `/sessions/${session}`]];
  for (const [keys, path] of places) {
    if (keys === "") await follow(page, path);
    else for (const key of keys.split(" ")) await page.keyboard.press(key);
    await page.waitForURL((url) => url.pathname === path);
    await page.locator("main .head, main h1").first().waitFor();
    await page.keyboard.press("!");
    await list.waitFor();
    assert.deepEqual(await list.locator("li .mark").allTextContents(), ["Permission", "Review", "Blocked", "Given up"], path);
    assert.deepEqual(await axe(page), [], path);
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
    assert.equal(new URL(page.url()).pathname, path, "Escape closed the list and went nowhere");
  }
  // From the list to what it is about; what is answered leaves it.
  await page.keyboard.press("!");
  await list.locator("li a").first().click();
  await page.waitForURL((url) => url.pathname === `/sessions/${session}`);
  await page.getByRole("button", { name: /Allow/ }).waitFor();
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "3 need you" }).waitFor();
  assert.deepEqual(page.problems, []);
});

test("what waited before the page was opened is told to nobody; what comes is", async (t) => {
  const server = await start(t, { dispatch: false });
  const block = async (title) => {
    const { id } = await server.json(["task", "new", title, "--ready"]);
    await server.baton(["task", "move", id, "blocked", "--reason", "which colour?"]);
  };
  await block("An old one");
  const { id: session } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", `/v1/sessions/${session}/input`, { text: "permission" });
  await until("it asks", async () => (await server.api("GET", "/v1/sessions")).sessions[0].pendingPermissions?.length === 1);
  let loaded;
  const page = await open(t, server, {
    before: (page) => {
      // The last that is fetched when it begins.
      loaded = page.waitForResponse(/status=cancelled/).then((answer) => answer.finished());
      return page.addInitScript(() => {
        globalThis.told = [];
        globalThis.Notification = class {
          static permission = "granted";
          constructor(title) { globalThis.told.push(title); }
        };
        Object.defineProperty(document, "hidden", { get: () => true });
      });
    },
  });
  await page.getByRole("button", { name: "2 need you" }).waitFor();
  await loaded;
  await block("A new one");
  await until("it is told", async () => (await page.evaluate(() => globalThis.told.length)) > 0);
  await block("A newer one");
  await until("it is told", async () => (await page.evaluate(() => globalThis.told.length)) > 1);
  assert.deepEqual(await page.evaluate(() => globalThis.told), ["Blocked: A new one", "Blocked: A newer one"]);
});

test("the list is gone through by keys alone, and gives the focus back", async (t) => {
  const server = await start(t, { dispatch: false });
  const block = async (title, reason) => {
    const id = await make(server, title, "--ready");
    await server.baton(["task", "move", id, "blocked", "--reason", reason]);
    return id;
  };
  const ids = [];
  for (const title of ["The first", "The second", "The third"]) ids.push(await block(title, `why ${title}`));
  const page = await open(t, server);
  await page.getByRole("button", { name: "3 need you" }).waitFor();
  const list = page.getByRole("region", { name: "What needs you" });
  const focused = () => page.evaluate(() => document.activeElement?.closest(".needs li")?.querySelector(".needs-title")?.textContent);
  const isAt = (title) => until(`${title} has the focus`, async () => (await focused()) === title);
  // From a card that was chosen by keys, which has it again afterwards.
  await page.keyboard.press("j");
  await until("a card has the focus", () => page.evaluate(() => document.activeElement?.classList.contains("card-title")));
  const chosen = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("!");
  await isAt("The first");
  await shot(page, "needs");
  for (const [key, title] of [["j", "The second"], ["ArrowDown", "The third"], ["j", "The third"], ["k", "The second"], ["ArrowUp", "The first"], ["ArrowUp", "The first"]]) {
    await page.keyboard.press(key);
    await isAt(title);
  }
  assert.equal(await page.locator(".card.is-selected .card-title").textContent(), chosen, "the board behind it did not move");
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), chosen);
  // From the button, which has it again; and what is answered elsewhere meanwhile takes it from nobody.
  await page.getByRole("button", { name: "3 need you" }).focus();
  await page.keyboard.press("Enter");
  await isAt("The first");
  await page.keyboard.press("j");
  await isAt("The second");
  await server.baton(["task", "move", ids[1], "ready", "--reason", "it is known now"]);
  await page.getByRole("button", { name: "2 need you" }).waitFor();
  await isAt("The third");
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "2 need you");
  // Enter leads to what it is about.
  await page.keyboard.press("!");
  await isAt("The first");
  await page.keyboard.press("j");
  await isAt("The third");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === `/tasks/${ids[2]}`);
  await list.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "The third" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "whoever reads by keyboard begins at the content");
  // Where nothing waits it says so, and closes like any other.
  for (const id of [ids[0], ids[2]]) await server.baton(["task", "move", id, "ready", "--reason", "it is known now"]);
  await page.getByRole("button", { name: "Nothing needs you" }).waitFor();
  await page.keyboard.press("!");
  await list.getByText("Nothing waits for a person.").waitFor();
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
});
