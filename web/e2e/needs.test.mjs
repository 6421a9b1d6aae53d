// What needs a person: one list on every screen, its count in the title, a notice on the desktop where that is allowed.
import assert from "node:assert/strict";
import { axe, open, start, test, until } from "./support.mjs";

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

  // A permission and a task that was given up come to the same list, the permission first.
  const { id: session } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await server.api("POST", `/v1/sessions/${session}/input`, { text: "permission" });
  await page.getByRole("button", { name: "2 need you" }).waitFor();
  for (const [keys, path] of [["g s", "/sessions"], ["g t", "/traces"], ["g h", "/health"], ["g b", "/"]]) {
    for (const key of keys.split(" ")) await page.keyboard.press(key);
    await page.waitForURL((url) => url.pathname === path);
    await page.keyboard.press("!");
    const list = page.getByRole("region", { name: "What needs you" });
    await list.waitFor();
    assert.deepEqual(await list.locator("li .mark").allTextContents(), ["Permission", "Blocked"], path);
    assert.deepEqual(await axe(page), [], path);
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
  }
  // From the list to what it is about; what is answered leaves it.
  await page.keyboard.press("!");
  await page.getByRole("region", { name: "What needs you" }).locator("li a").first().click();
  await page.waitForURL((url) => url.pathname === `/sessions/${session}`);
  await page.getByRole("button", { name: /Allow/ }).waitFor();
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "1 needs you" }).waitFor();
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
