// Opens the page that a binary has within it, in Chromium: `node within.mjs`, BATON_BIN names the binary. Fails unless the page comes from within, draws
// each of its screens without a word on the console, and shows what happens while it is looked at.
//
// A debug build reads the page from a folder; the one that is named here is empty, so that whatever is shown was in the binary.

import assert from "node:assert/strict";
import { binary, fromWithin, open, start, test } from "./e2e/support.mjs";

fromWithin();

const SCREENS = { "/": "Board", "/sessions": "Sessions", "/traces": "Traces", "/health": "Health" };

test(`the page is in ${binary}, and works`, async (t) => {
  const server = await start(t, { dispatch: false });
  const plain = await (await fetch(server.url)).text();
  assert.match(plain, /<script[^>]* src="\/assets\/[^"]+\.js"/, "it was built without the page, or reads it from a folder");
  const page = await open(t, server);
  await server.json(["task", "new", "Seen from within", "--ready"]);
  await page.locator(".card").getByText("Seen from within").waitFor();
  for (const [path, name] of Object.entries(SCREENS)) {
    await page.goto(new URL(path, server.url).href);
    await page.locator(".link.is-good").waitFor();
    await page.getByRole("link", { name, exact: true }).and(page.locator("[aria-current]")).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0, path);
  }
  const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
  await page.goto(new URL(`/sessions/${id}`, server.url).href);
  await page.locator("#composer").waitFor();
  assert.deepEqual(page.problems, []);
});
