// The tabs of a task before what they show has come, and where it does not come.
import assert from "node:assert/strict";
import { make } from "./cards.mjs";
import { axe, open, start, test, until } from "./support.mjs";

const PROBLEM = { status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "x", title: "the disk is gone", status: 500, code: "S004", hint: "baton doctor" }) };

for (const [tab, path, loading, what, there] of [
  ["log", "trace", "Loading the work log…", "The work log", "Created in backlog"],
  ["runs", "runs", "Loading the attempts…", "The attempts", "Nobody has worked on it yet"],
  ["changes", "changes", "Loading the changes…", "The changes", undefined],
  ["raw", "files", "Loading the files…", "The files", ".md"],
  ["raw", "trace", "Loading the records…", "The records", "task.created"],
]) {
  test(`the tab ${tab} says that it loads, why ${path} cannot be had, and shows it once it can`, async (t) => {
    const server = await start(t, { dispatch: false });
    const id = await make(server, "With tabs");
    let letGo;
    let isBroken = true;
    const held = new Promise((resolve) => { letGo = resolve; });
    const page = await open(t, server, {
      path: `/tasks/${id}?tab=${tab}`,
      before: (page) => page.route(new RegExp(`/v1/tasks/${id}/${path}(\\?|$)`), async (route) => {
        await held;
        await (isBroken ? route.fulfill(PROBLEM) : route.continue());
      }),
    });
    await page.getByRole("heading", { name: "With tabs" }).waitFor();
    await page.getByRole("status").getByText(loading).waitFor();
    assert.deepEqual(await axe(page), []);
    letGo();
    const broken = page.getByRole("alert").filter({ hasText: `${what} cannot be shown` });
    for (const part of ["the disk is gone", "S004", "baton doctor"]) await broken.getByText(part).waitFor();
    assert.deepEqual(await axe(page), []);
    // The head of the task and its other tabs are in nobody's way.
    await page.getByRole("button", { name: "Move…" }).waitFor();
    await page.locator("body").press("1");
    await page.getByText("No text").waitFor();
    await page.goto(new URL(`/tasks/${id}?tab=${tab}`, server.url).href);
    await broken.waitFor();
    isBroken = false;
    // By the button, or by itself where something else had it asked for again.
    await until("it is there", async () => {
      const again = broken.getByRole("button", { name: "Try again" });
      if (await again.count()) await again.click({ timeout: 1000 }).catch(() => undefined);
      return (await broken.count()) === 0;
    });
    if (there !== undefined) await page.locator("#panel").getByText(there).first().waitFor();
    assert.deepEqual(page.problems, []);
  });
}
