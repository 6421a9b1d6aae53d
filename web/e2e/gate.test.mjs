// The way in: without a token, with a wrong one, with the right one; what is in the address, and what the browser keeps.
import assert from "node:assert/strict";
import { axe, open, shot, start, test } from "./support.mjs";

/** A page that nobody let in; `token` is what its link has, if any. */
function outside(t, server, { token, ...more } = {}) {
  const linkTo = (path) => {
    const url = new URL(path, server.url);
    if (token !== undefined) url.searchParams.set("token", token);
    return url.href;
  };
  return open(t, { linkTo }, { isWaiting: false, ...more });
}

const isWithin = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
const pathOf = (page) => page.evaluate(() => location.href.slice(location.origin.length));

async function enter(page, token) {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Enter" }).click();
}

test("without a token the gate says so and where the link is, in light and dark, wide and narrow", async (t) => {
  const server = await start(t);
  for (const look of [{}, { dark: true }, { width: 360 }, { dark: true, width: 360 }]) {
    const name = `${look.dark ? "dark" : "light"}-${look.width ?? "wide"}`;
    const page = await outside(t, server, look);
    await page.getByRole("alert").getByText("A token is needed.", { exact: true }).waitFor();
    await page.getByText("Open the link that baton serve printed").waitFor();
    assert.deepEqual(await axe(page), [], name);
    assert.equal(await isWithin(page), true, name);
    await shot(page, `gate-${name}`);
    await page.reload();
    await page.getByRole("alert").getByText("A token is needed.", { exact: true }).waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("a wrong token says that it was not accepted, and the right one leads to the address that was asked for", async (t) => {
  const server = await start(t);
  const page = await outside(t, server, { path: "/sessions?of=me" });
  await page.getByRole("alert").getByText("A token is needed.", { exact: true }).waitFor();
  const before = await page.evaluate(() => history.length);
  await enter(page, "baton_wrong");
  await page.getByRole("alert").getByText("The token was not accepted").waitFor();
  assert.equal(await pathOf(page), "/sessions?of=me");
  assert.deepEqual(await axe(page), []);
  await shot(page, "gate-refused");
  await enter(page, `  ${server.token} `);
  await page.locator(".link.is-good").waitFor();
  await page.getByRole("heading", { name: "Sessions", exact: true }).waitFor();
  assert.equal(await pathOf(page), "/sessions?of=me");
  assert.equal(await page.evaluate(() => history.length), before, "nothing of it is in the history");
  await page.reload();
  await page.locator(".link.is-good").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a link with an old token ends at the gate, with a clean address; whoever is in stays in", async (t) => {
  const server = await start(t);
  const page = await outside(t, server, { path: "/health", token: "baton_old" });
  await page.getByRole("alert").getByText("The token was not accepted").waitFor();
  assert.equal(await pathOf(page), "/health");
  await page.goto(server.linkTo("/health"));
  await page.locator(".link.is-good").waitFor();
  assert.equal(await pathOf(page), "/health");
  const wrong = new URL("/traces", server.url);
  wrong.searchParams.set("token", "baton_old");
  await page.goto(wrong.href);
  await page.locator(".link.is-good").waitFor();
  assert.equal(await pathOf(page), "/traces");
  assert.deepEqual(page.problems, []);
});

test("an address that is none is the gate's, too, and then the page's to say so", async (t) => {
  const server = await start(t);
  const page = await outside(t, server, { path: "/nowhere" });
  await page.getByRole("alert").getByText("A token is needed.", { exact: true }).waitFor();
  await enter(page, server.token);
  await page.getByText("There is nothing here").waitFor();
  assert.equal(await pathOf(page), "/nowhere");
  assert.equal((await page.reload()).status(), 404);
  await page.getByText("There is nothing here").waitFor();
});

test("the browser keeps no token, an open page goes on after a crash, and ends with its token", async (t) => {
  const server = await start(t);
  const { token } = await server.json(["token", "new", "me", "--scope", "operator"]);
  const page = await outside(t, server, { token });
  await page.locator(".link.is-good").waitFor();
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map(({ name, path, httpOnly, sameSite }) => ({ name, path, httpOnly, sameSite })), [{ name: `baton_${new URL(server.url).port}`, path: "/", httpOnly: true, sameSite: "Strict" }]);
  assert.ok(!cookies[0].value.includes(token), "what it keeps is not the token");
  const as = await fetch(new URL("/v1/tasks", server.url), { headers: { authorization: `Bearer ${cookies[0].value}` } });
  assert.equal(as.status, 401, "and not good as one");
  await server.kill();
  await page.locator(".link.is-bad").waitFor();
  await server.serve();
  await page.locator(".link.is-good").waitFor({ timeout: 40_000 });
  await server.json(["task", "new", "made after the crash"]);
  await page.getByText("made after the crash").waitFor();
  await server.baton(["token", "revoke", "me"]);
  // Without a reload: what it follows ends, too.
  await page.getByRole("alert").getByText("The token was not accepted").waitFor();
});

test("two servers on one machine let in the same browser, each by its own cookie", async (t) => {
  const [one, other] = await Promise.all([start(t), start(t)]);
  const page = await open(t, one, { others: [other] });
  await page.goto(other.link);
  await page.locator(".link.is-good").waitFor();
  await page.goto(one.url);
  await page.locator(".link.is-good").waitFor();
  assert.equal(new URL(page.url()).port, new URL(one.url).port);
  const [a, b] = await page.context().cookies();
  assert.notEqual(a.value, b.value);
});

test("a viewer is told that nothing can be changed, and why when it is tried", async (t) => {
  const server = await start(t);
  const { token } = await server.json(["token", "new", "guest", "--scope", "viewer"]);
  for (const width of [1280, 360]) {
    const page = await outside(t, server, { token, width, path: "/health" });
    await page.getByText("view only", { exact: true }).waitFor();
    await page.getByText("Your token (viewer) shows everything and changes nothing").waitFor();
    assert.deepEqual(await axe(page), []);
    assert.equal(await isWithin(page), true);
    await shot(page, `gate-viewer-${width}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
  const page = await outside(t, server, { token });
  await page.getByText("view only", { exact: true }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByLabel("What is to be done, in a line").fill("not mine to make");
  await page.keyboard.press("Control+Enter");
  await page.getByText("a token of scope viewer does not open this").first().waitFor();
  // Whoever may change things is told nothing of the kind.
  const admin = await open(t, server, { path: "/health" });
  await admin.getByRole("heading", { name: "Agents", exact: true }).waitFor();
  assert.equal(await admin.getByText("view only").count(), 0);
});
