// Many tabs of one browser, which opens six connections to a host and no more.
import assert from "node:assert/strict";
import { open, start, test, until } from "./support.mjs";
import { say } from "./talker.mjs";

const TABS = 8;

/** More tabs beside one, in the same browser. */
async function beside(page, server, path, count) {
  const all = [];
  for (let at = 0; at < count; at += 1) {
    const other = await page.context().newPage();
    await other.goto(new URL(path, server.url).href);
    all.push(other);
  }
  return all;
}

/** What a browser does with a tab that is not the one in front; each tab of a browser without a screen counts as seen. */
const look = (page, isSeen) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, !isSeen);

test("eight tabs are live with one stream between them, and go on when the one that led is closed, and when the server was killed", async (t) => {
  const server = await start(t, { dispatch: false });
  const first = await open(t, server);
  let streams = 0;
  first.context().on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    // One that ends by itself is none.
    if (pathname === "/v1/events" && searchParams.get("follow") !== "false") streams += 1;
  });
  const others = await beside(first, server, "/", TABS - 1);
  const all = [first, ...others];
  for (const page of all) await page.locator(".link.is-good").waitFor();
  assert.equal(streams, 0, "the first one's is enough");
  await server.api("POST", "/v1/tasks", { title: "seen by all of them" });
  for (const page of all) await page.getByText("seen by all of them").waitFor();
  await first.close();
  await server.api("POST", "/v1/tasks", { title: "after the first was closed" });
  for (const page of others) await page.getByText("after the first was closed").waitFor();
  assert.equal(streams, 1, "one of the others leads");
  await server.kill();
  for (const page of others) await page.locator(".link.is-bad").waitFor();
  await server.serve();
  await server.api("POST", "/v1/tasks", { title: "after the server came back" });
  for (const page of others) {
    await page.locator(".link.is-good").waitFor();
    await page.getByText("after the server came back").waitFor();
  }
});

test("a tab that is looked at gets its session, whatever tabs behind it show", async (t) => {
  const server = await start(t);
  const ids = [];
  for (let at = 0; at < 6; at += 1) ids.push((await server.api("POST", "/v1/sessions", { agent: "mock" })).id);
  const first = await open(t, server, { path: `/sessions/${ids[0]}` });
  await say(first, "echo the first of them");
  await first.locator(".transcript").getByText("the first of them").last().waitFor();
  const others = [];
  for (const id of ids.slice(1, 4)) others.push(...await beside(first, server, `/sessions/${id}`, 1));
  for (const page of others) await say(page, "echo one more");
  // All places are taken, and somebody looks at all of them: it says so.
  const [fifth] = await beside(first, server, `/sessions/${ids[4]}`, 1);
  await fifth.locator(".session-head").getByText("other windows of this browser").waitFor();
  // The first one goes to the back, and leaves its place to the one that waits.
  await look(first, false);
  await until("it has a place", async () => (await fifth.locator("#composer-why").textContent()).includes("Ctrl+Enter"));
  // One that was opened in the back takes nobody's place, until it is looked at and another is not.
  await look(others[0], false);
  const sixth = await first.context().newPage();
  await sixth.addInitScript(() => Object.defineProperty(document, "hidden", { configurable: true, get: () => true }));
  await sixth.goto(new URL(`/sessions/${ids[5]}`, server.url).href);
  await sixth.locator("#composer-why").getByText(/no connection for this window|connection is gone|Ctrl\+Enter/).waitFor();
  await look(sixth, true);
  await until("it has a place", async () => (await sixth.locator("#composer-why").textContent()).includes("Ctrl+Enter"));
  // What is said behind its back is there when it is looked at again, once.
  await server.baton(["session", "send", ids[0], "echo behind its back"]);
  await others[1].close();
  await others[2].close();
  await look(first, true);
  await until("it has caught up", async () => (await first.locator(".transcript").textContent()).includes("behind its back"));
  await until("once", async () => (await first.locator(".turn").count()) === 2);
  const said = (await first.locator(".transcript .said:not(.is-user)").allTextContents()).join("\n");
  assert.equal(said.split("the first of them").length, 2, said);
  assert.deepEqual(first.problems, []);
});

test("where a browser has no locks every tab is by itself", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, { before: (fresh) => fresh.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined })) });
  await server.api("POST", "/v1/tasks", { title: "seen without locks" });
  await page.getByText("seen without locks").waitFor();
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await page.goto(new URL(`/sessions/${id}`, server.url).href);
  await say(page, "echo and so are sessions");
  await page.locator(".transcript").getByText("and so are sessions").last().waitFor();
  assert.deepEqual(page.problems, []);
});
