// The strip of a session's states: where somebody waited long, it is folded.
import assert from "node:assert/strict";
import { axe, shot, start, test, until } from "./support.mjs";
import { isReady, opened, say } from "./talker.mjs";

test("a long wait is folded to a little of the strip, and shown whole where somebody wants that", async (t) => {
  const server = await start(t);
  const { page } = await opened(t, server);
  await say(page, "tool echo hello");
  await isReady(page);
  const width = (which) => page.locator(`.state-strip .band.${which} rect`).evaluateAll((all) => Math.max(...all.map((one) => one.getBoundingClientRect().width)));
  const whole = () => page.locator(".state-strip").evaluate((box) => box.getBoundingClientRect().width);
  // An hour goes by in which nothing happens.
  await page.clock.setFixedTime(Date.now() + 3_600_000);
  await page.locator(".strip-head").getByText(/for (1 h|59 min)/).waitFor();
  const folds = page.getByRole("button", { name: "waits are folded" });
  await folds.waitFor();
  await until("the wait is narrow", async () => (await width("is-current")) < (await whole()) * 0.2);
  const [wait, work] = [await width("is-current"), await width("is-calling_llm")];
  assert.ok(work > wait, `the work has ${work}, the wait ${wait}`);
  assert.deepEqual(await axe(page), []);
  await shot(page, "session-folded");
  await folds.click();
  await page.getByRole("button", { name: "waits are shown whole" }).waitFor();
  await until("the wait is nearly all of it", async () => (await width("is-current")) > (await whole()) * 0.9);
  assert.ok((await width("is-calling_llm")) < work);
  await page.getByRole("button", { name: "waits are shown whole" }).click();
  await until("it is folded again", async () => (await width("is-current")) < (await whole()) * 0.2);
  assert.deepEqual(page.problems, []);
});
