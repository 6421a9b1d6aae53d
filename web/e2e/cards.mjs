// What the tests of the board know of it: its columns and cards, tasks that are made, worked on and dragged.
import assert from "node:assert/strict";

export const column = (page, status) => page.locator(`.column[data-status="${status}"]`);
export const card = (page, title) => page.locator(".card", { hasText: title });
export const cardIn = (page, status, title) => column(page, status).locator(".card", { hasText: title });
export const countOf = (page, status) => column(page, status).locator(".column-head .count");
export const dialog = (page) => page.locator("dialog[open]");

/** A task made on the command line; gives its id. */
export const make = async (server, title, ...more) => (await server.json(["task", "new", title, ...more])).id;

/** What an agent does: takes a task, and reports that it is finished. */
export async function work(server, id, agent = "ada", tests = { total: 3, passed: 3, failed: 0 }) {
  const { fence } = await server.json(["task", "claim", id, "--agent", agent]);
  return () => report(server, id, agent, fence, tests);
}

export async function report(server, id, agent, fence, tests) {
  const message = {
    protocol: "aof", version: 1, type: "completion.report", taskId: id, fromAgent: agent, toAgent: "baton", sentAt: new Date().toISOString(), fence,
    payload: { outcome: "done", summaryRef: "outputs/summary.md", tests, notes: "" },
  };
  const answer = await server.json(["send"], { input: JSON.stringify(message) });
  assert.equal(answer.accepted, true, JSON.stringify(answer));
}

/** Drags with the mouse, as a person does; leaves the button pressed. */
export async function dragOver(page, from, to) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(a.x + a.width / 2, a.y + a.height - 14);
  await page.mouse.down();
  await page.mouse.move(a.x + a.width / 2 + 8, a.y + a.height - 8, { steps: 3 });
  await page.mouse.move(b.x + b.width / 2, b.y + 160, { steps: 8 });
  await page.mouse.move(b.x + b.width / 2, b.y + 164);
}
