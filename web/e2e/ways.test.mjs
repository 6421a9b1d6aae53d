// Ways through the page: back by Escape and by the browser, to the search, and what the frame has on every screen.
import assert from "node:assert/strict";
import { make } from "./cards.mjs";
import { axe, open, start, test, until } from "./support.mjs";

const isAt = (page, path) => page.waitForURL((url) => url.pathname === path);
const press = async (page, ...keys) => { for (const key of keys) await page.keyboard.press(key); };

test("Escape leads back as far as this page goes, and never out of it", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, { path: "/traces" });
  await page.evaluate(() => { globalThis.sameDocument = true; });
  // There and back by the browser: nothing of this page lies behind any more.
  await press(page, "g", "s");
  await isAt(page, "/sessions");
  await page.goBack();
  await isAt(page, "/traces");
  await page.keyboard.press("Escape");
  await isAt(page, "/");
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true);
  // Forward again by the browser, and back by the key.
  await press(page, "g", "h");
  await isAt(page, "/health");
  await press(page, "g", "s");
  await isAt(page, "/sessions");
  await page.goBack();
  await page.goForward();
  await isAt(page, "/sessions");
  await page.keyboard.press("Escape");
  await isAt(page, "/health");
  // A change of what the address asks for is no step, and a page that is loaded again still knows its way.
  await press(page, "g", "t");
  await page.getByRole("searchbox").fill("noted");
  await until("it is in the address", () => page.url().includes("q=noted"));
  await page.reload();
  await page.locator(".link.is-good").waitFor();
  await page.keyboard.press("Escape");
  await isAt(page, "/health");
  // However fast it is pressed.
  await press(page, "Escape", "Escape", "Escape", "Escape", "Escape", "Escape");
  await isAt(page, "/");
  await page.locator(".link.is-good").waitFor();
  assert.deepEqual(page.problems, []);
});

test("the search is a button as well, also on a telephone", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "To be found");
  for (const look of [{}, { width: 360, height: 700 }]) {
    const page = await open(t, server, { path: "/health", ...look });
    await page.getByRole("button", { name: "Search the tasks" }).click();
    await isAt(page, "/");
    await until("the search has the focus", () => page.evaluate(() => document.activeElement?.id === "board-search"));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing to scroll sideways");
    assert.deepEqual(page.problems, []);
  }
});

test("the theme is light, dark, or as the system has it, and is kept", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server);
  const paper = () => page.evaluate(() => getComputedStyle(document.querySelector(".strip")).backgroundColor);
  const theme = page.getByTitle("Light, dark, or as the system has it");
  const light = await paper();
  assert.equal(await theme.textContent(), "auto");
  await theme.click();
  assert.equal(await theme.textContent(), "light");
  assert.equal(await paper(), light);
  await theme.click();
  assert.equal(await theme.textContent(), "dark");
  await until("it is dark", async () => (await paper()) !== light);
  const dark = await paper();
  assert.deepEqual(await axe(page), []);
  await page.reload();
  await page.locator(".link.is-good").waitFor();
  assert.equal(await paper(), dark, "it is dark for whoever comes back");
  await theme.click();
  assert.equal(await theme.textContent(), "auto");
  assert.equal(await paper(), light);
  await page.emulateMedia({ colorScheme: "dark" });
  await until("as the system has it", async () => (await paper()) === dark);
  assert.deepEqual(page.problems, []);
});

test("`?` lists the keys of whatever screen it is asked on", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "With keys of its own");
  const { id: session } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  const page = await open(t, server);
  const places = [["/", "Board", "move the card"], [`/tasks/${id}`, "This task", "show work log"], ["/sessions", "Sessions", "start a session"],
    [`/sessions/${session}`, "Session", "write to the agent"], ["/traces", "Traces", "open it"], ["/traces/ledger", "This trace", "fold by turn"], ["/health", "Everywhere", "go to board"]];
  for (const [path, group, does] of places) {
    await page.goto(new URL(path, server.url).href);
    await page.locator(".link.is-good").waitFor();
    await page.locator(`main .head, main h1`).first().waitFor();
    const help = page.getByRole("dialog", { name: "Keys" });
    await until(`the keys of ${path}`, async () => {
      if ((await help.count()) === 0) await page.keyboard.press("?");
      return (await help.getByRole("heading", { name: group, exact: true }).count()) === 1;
    });
    await help.getByText(does).first().waitFor();
    await help.getByText("what needs a person").waitFor();
    assert.deepEqual(await axe(page), [], path);
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    assert.equal(new URL(page.url()).pathname, path, "Escape closed it and went nowhere");
  }
  assert.deepEqual(page.problems, []);
});

test("what is dropped beside a place for it changes nothing, and text goes where somebody writes", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server);
  await page.locator("#board-search").waitFor();
  /** Whether the page keeps the browser from doing what it does with a drop there. */
  const isKept = (selector, kind) => page.evaluate(([to, what]) => {
    const transfer = new DataTransfer();
    if (what === "file") transfer.items.add(new File(["text"], "a.txt"));
    else transfer.setData(what === "link" ? "text/uri-list" : "text/plain", "https://example.org/");
    return ["dragover", "drop"].map((type) => !document.querySelector(to).dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true })));
  }, [selector, kind]);
  for (const kind of ["file", "link", "text"]) assert.deepEqual(await isKept("main", kind), [true, true], `${kind} beside a field`);
  assert.deepEqual(await isKept("#board-search", "file"), [true, true], "a file in a field");
  for (const kind of ["link", "text"]) assert.deepEqual(await isKept("#board-search", kind), [false, false], `${kind} in a field`);
});
