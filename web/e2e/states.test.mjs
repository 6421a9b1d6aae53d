// Screens in the states that are seldom looked at: the list of sessions in the dark and on a telephone, a session that is not there yet, and without motion.
import assert from "node:assert/strict";
import { axe, open, shot, start, test, until } from "./support.mjs";
import { opened, say } from "./talker.mjs";

for (const look of [{}, { dark: true }, { width: 360, height: 700 }, { dark: true, width: 360, height: 700 }]) {
  const name = `${look.dark ? "dark" : "light"}-${look.width ?? "wide"}`;
  test(`the list of sessions, ${name}: every state is told, nothing sticks out, and axe finds nothing`, async (t) => {
    const server = await start(t);
    const begin = async (text) => {
      const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
      if (text !== undefined) await server.api("POST", `/v1/sessions/${id}/input`, { text });
      return id;
    };
    await begin();
    await begin("permission");
    await begin("crash 3 120");
    await server.api("POST", `/v1/sessions/${await begin()}/stop`);
    await server.json(["task", "new", `hang ${"a-very-long-word-".repeat(12)}`, "--ready", "--agent", "mock"]);
    const page = await open(t, server, { path: "/sessions", ...look });
    const row = (text) => page.locator(".sessions a").filter({ hasText: text });
    for (const text of ["waits for you", "ready", "a-very-long-word"]) await row(text).first().waitFor();
    await until("two have ended", async () => (await page.getByText("3 running, 5 in all").count()) === 1);
    assert.match(await page.locator(".sessions a").first().textContent(), /waits for you/, "what needs a person is the first");
    assert.equal(await page.locator(".sessions a").count(), 5);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth), "nothing to scroll sideways");
    const scheme = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
    assert.equal(scheme, look.dark === true);
    assert.deepEqual(await axe(page), []);
    await shot(page, `sessions-${name}`);
    // The dialog that starts one, too.
    await page.keyboard.press("n");
    await page.getByRole("dialog").getByLabel("Agent").waitFor();
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.problems, []);
  });
}

test("a session that is not there yet says that it loads", async (t) => {
  const server = await start(t);
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  const page = await open(t, server, {
    path: `/sessions/${id}`,
    before: (fresh) => fresh.route((url) => url.pathname.startsWith(`/v1/sessions/${id}`), async (route) => { await held; await route.continue(); }),
  });
  await page.getByRole("status").getByText("Loading the session…").waitFor();
  assert.equal(await page.locator("#composer").count(), 0, "nothing can be written to what is not there");
  assert.deepEqual(await axe(page), []);
  release();
  await page.locator("#composer").waitFor();
  assert.equal(await page.getByText("Loading the session…").count(), 0);
  assert.deepEqual(page.problems, []);
});

/** What moves, or would at the next change. */
const motion = (page) => page.evaluate(() => {
  const running = document.getAnimations().filter((one) => one.playState === "running").length;
  const long = (text) => text.split(",").some((part) => parseFloat(part) > 0);
  const styles = [...document.querySelectorAll("*")].flatMap((one) => ["", "::before", "::after"].map((part) => getComputedStyle(one, part)));
  return { running, changing: styles.filter((style) => long(style.transitionDuration)).length, named: styles.filter((style) => style.animationName !== "none").length };
});
const STILL = { running: 0, changing: 0, named: 0 };

test("whoever wants no motion has none: on the board, and in a session that is at work", async (t) => {
  const server = await start(t);
  await server.json(["task", "new", "hang", "--ready", "--agent", "mock"]);
  const board = await open(t, server);
  await board.locator('.column[data-status="in-progress"] .lease-left').waitFor();
  const { page: session } = await opened(t, server);
  await say(session, "hang");
  await session.locator(".strip-now").first().waitFor({ state: "attached" });
  for (const [page, name] of [[board, "board"], [session, "session"]]) {
    // Else something moves, so that there is something to be still.
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await until(`something moves: ${name}`, async () => (await motion(page)).running > 0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await until(`it is still: ${name}`, async () => (await motion(page)).running === 0);
    assert.deepEqual(await motion(page), STILL, name);
  }
  // What changes while it is still changes at once: the lease, and what is selected.
  await board.keyboard.press("j");
  await board.locator(".card.is-selected").waitFor();
  assert.deepEqual(await motion(board), STILL);
});
