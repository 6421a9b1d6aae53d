// What a session says while it is followed: much of it, fast, bad, and through kills and cuts. Each line is there once.
import assert from "node:assert/strict";
import { startProxy } from "../../sdk/typescript/test/proxy.mjs";
import { open, start, test, until } from "./support.mjs";
import { HOSTILE, isReady, opened, say, talking, watchTasks, words } from "./talker.mjs";

/** The numbers of the lines that the talker says. */
const linesOf = (text) => [...text.matchAll(/line (\d+) of what is said/g)].map(([, number]) => Number(number));

test("a server that is killed in the middle of what is said: each line is there once, and none that was kept is missing", async (t) => {
  const server = await start(t, { prepare: talking });
  const { id, page } = await opened(t, server, { agent: "talker" });
  // So many as the page keeps, however long it takes until the server is killed.
  await say(page, "rate 2000 12000 stay");
  await page.getByText("line 3000 of what").waitFor();
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await server.kill();
  await page.locator(".session-head").getByText("not connected").waitFor();
  const before = await words(page);
  await server.serve();
  await page.locator(".ended").getByText("Ended by Baton").waitFor();
  const told = (await server.baton(["session", "show", id, "--transcript", "--json"])).trim().split("\n").map((line) => JSON.parse(line));
  const kept = told.filter((piece) => piece.kind === "text").map((piece) => piece.text).join("");
  await until("what was kept is there", async () => linesOf(await words(page)).at(-1) >= linesOf(kept).at(-1));
  const after = await words(page);
  assert.ok(after.startsWith(before), "nothing of what was there is gone");
  const lines = linesOf(after);
  assert.deepEqual(lines, Array.from(lines, (_, at) => lines[0] + at), "each once, in its order");
  assert.equal(await page.locator(".turn").count(), 1);
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "without a reload");
  assert.deepEqual(page.problems, []);
});

test("what was said while the page was cut off, before the server was killed, is there once it is back", async (t) => {
  const server = await start(t, { prepare: talking });
  const proxy = await startProxy(t, server);
  const { id } = await server.api("POST", "/v1/sessions", { agent: "talker" });
  const page = await open(t, { linkTo: (path) => server.linkTo(path).replace(server.url, proxy.url) }, { path: `/sessions/${id}` });
  await say(page, "rate 2000 100000");
  await page.getByText("line 500 of what").waitFor();
  await page.evaluate(() => { globalThis.sameDocument = true; });
  proxy.goDown();
  await page.locator(".session-head").getByText("not connected").waitFor();
  const seen = linesOf(await words(page)).at(-1);
  const kept = async () => linesOf(await server.baton(["session", "show", id, "--transcript"]));
  await until("more was said", async () => (await kept()).at(-1) > seen + 5000);
  await server.kill();
  await server.serve();
  proxy.isDown = false;
  await page.locator(".ended").getByText("Ended by Baton").waitFor();
  const last = (await kept()).at(-1);
  await until("what was kept is there", async () => linesOf(await words(page)).at(-1) === last);
  const lines = linesOf(await words(page));
  assert.deepEqual(lines, Array.from(lines, (_, at) => lines[0] + at), "each once, in its order");
  assert.equal(await page.locator(".turn").count(), 1);
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "without a reload");
});

test("whoever comes after much was said sees the end of it, and that there was more", async (t) => {
  const server = await start(t, { prepare: talking });
  const { page } = await opened(t, server, { agent: "talker" });
  await say(page, "rate 8000 25000");
  await page.getByText("line 25000 of what").waitFor();
  await isReady(page);
  await page.reload();
  await page.getByText("line 25000 of what").waitFor();
  await page.locator(".left-out").getByText("Not all of the output is here").waitFor();
  await isReady(page);
  const lines = linesOf(await words(page));
  assert.deepEqual([lines, lines.at(-1)], [Array.from(lines, (_, at) => lines[0] + at), 25_000]);
  await say(page, "rate 1000 3");
  await page.locator(".turn").last().getByText("line 3 of what").waitFor();
  assert.deepEqual(page.problems, []);
});

test("what is hostile is shown as text and does nothing", async (t) => {
  const server = await start(t, { prepare: talking });
  const { page } = await opened(t, server, { agent: "talker", width: 900 });
  await say(page, "hostile");
  await page.locator(".transcript").getByText("afterwards").waitFor();
  await isReady(page);
  const check = async () => {
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator(".transcript script, .transcript img, .transcript a[href^='javascript']").count(), 0);
    const text = await words(page);
    assert.ok(!/[\u0000-\u0008\u001b\u200b\u202e]/.test(text), "no character that acts");
    return text;
  };
  assert.ok((await check()).includes(`${"x".repeat(1000)} end of the line\nafterwards`));
  await page.locator(".left-out").getByText("Not all of the output is here").waitFor();
  const wide = await page.evaluate(() => [document.querySelector(".transcript"), document.documentElement].some((box) => box.scrollWidth > box.clientWidth + 1));
  assert.ok(!wide, "the long line is broken");

  // Without the long line everything is still there.
  const { page: other } = await opened(t, server, { agent: "mock" });
  await say(other, `echo ${HOSTILE.slice(0, 3).join(" ")} ${HOSTILE[4]}`);
  await isReady(other);
  const text = await words(other);
  for (const part of ["<script>window.hacked", "onerror=", "javascript:window.hacked=1", "safe\\u202egnp.exe"]) assert.ok(text.includes(part), `${part} in ${text}`);
  await other.getByRole("button", { name: "as it came" }).click();
  await other.locator(".said.is-formatted").waitFor();
  assert.equal(await other.locator(".transcript script, .transcript img, .transcript a").count(), 0);
  assert.equal(await other.evaluate(() => window.hacked), undefined);
  assert.deepEqual([...page.problems, ...other.problems], []);
});

/** The numbers of the lines that are shown. */
const numbers = async (page) => [...(await words(page)).matchAll(/line (\d+) of/g)].map(([, n]) => Number(n));

test("a thousand events a second for ten seconds do not hold the page up", async (t) => {
  const server = await start(t, { prepare: talking });
  const { page } = await opened(t, server, { agent: "talker" });
  const ended = await watchTasks(page);
  await say(page, "rate 1000 10000");
  await page.locator(".transcript").getByText("line 3000 of").waitFor();
  // Scrolled up it stays there, with a way back.
  await page.locator(".transcript").hover();
  await page.mouse.wheel(0, -3000);
  const back = page.getByRole("button", { name: "Jump to live" });
  await back.waitFor();
  // Once it has come to rest.
  let top;
  await until("it is still", async () => {
    const before = top;
    top = await page.locator(".transcript").evaluate((box) => box.scrollTop);
    return top === before;
  });
  await page.locator(".transcript").getByText("line 5000 of").waitFor({ state: "attached" });
  assert.equal(await page.locator(".transcript").evaluate((box) => box.scrollTop), top);
  await page.locator("h1").click();
  await page.keyboard.press("End");
  await back.waitFor({ state: "detached" });
  await page.locator(".transcript").getByText("line 10000 of").waitFor();
  await isReady(page);
  const { clock, processor } = await ended();
  // `make bench` has the figure and its goal.
  t.diagnostic(`longest task: ${Math.round(processor)} ms of a processor, ${Math.round(clock)} ms by the clock`);
  assert.deepEqual(await numbers(page), Array.from({ length: 10_000 }, (_, n) => n + 1), "every line is there, once and in its place");
});

test("a hundred thousand events leave the memory as it was", { timeout: 180_000 }, async (t) => {
  const server = await start(t, { prepare: talking });
  const { page } = await opened(t, server, { agent: "talker" });
  const devtools = await page.context().newCDPSession(page);
  const heap = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return (await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  // First as much as it ever keeps; then four times that again.
  await say(page, "rate 4000 25000");
  await page.locator(".transcript").getByText("line 25000 of").waitFor({ timeout: 60_000 });
  await isReady(page);
  const first = await heap();
  await say(page, "rate 4000 75000");
  await page.locator(".transcript").getByText("line 75000 of").waitFor({ timeout: 90_000 });
  await isReady(page);
  const second = await heap();
  t.diagnostic(`heap: ${first.toFixed(1)} MB after 25,000 events, ${second.toFixed(1)} MB after 100,000`);
  assert.ok(second < first + 5, `${first} MB became ${second} MB`);
  assert.ok((await words(page)).length < 1_100_000);
  const told = await numbers(page);
  const missing = told.slice(1).filter((n, at) => n !== told[at] + 1).length;
  t.diagnostic(`${told.length} lines are shown, with ${missing} gaps between them`);
  await page.locator(".left-out").getByText("Not all of the output is here").waitFor();
  assert.deepEqual(page.problems, []);
});
