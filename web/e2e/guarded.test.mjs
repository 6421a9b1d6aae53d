// Guarded runs in the page: told as a story, reviewed and ended by a person, each record with its signature.
import assert from "node:assert/strict";
import { axe, open, shot, start, test, until } from "./support.mjs";
import { guardOf, team, trace, verdict } from "./traces.mjs";

test("a guarded run is told as a story, and a person reviews it in the page", async (t) => {
  const server = await start(t, { config: team(false, '[policy]\nprofile = "strict"\n') });
  const { id: task } = await server.json(["task", "new", "edit good.txt complete done", "--guarded", "--ready"]);
  const { traceId } = await server.api("GET", `/v1/tasks/${task}`);
  const run = await guardOf(server, traceId);
  const page = await open(t, server, { path: `/traces/${run}` });
  // The story is what is shown first, with what waits.
  const proposal = page.getByRole("region", { name: "Review of p1" });
  await proposal.getByText("ada proposes p1").waitFor();
  assert.equal(await proposal.getByRole("button", { name: "Reject p1" }).isDisabled(), true, "no without a reason");
  assert.deepEqual(await axe(page), []);
  await shot(page, "trace-review");
  await proposal.getByLabel("Why").fill("it is fine");
  await proposal.getByRole("button", { name: "Approve p1" }).click();
  const intent = page.getByRole("region", { name: "Review of i1" });
  // What the tool would be given is there to be read.
  await intent.getByText("good.txt").first().waitFor();
  await intent.getByText("its hash is the cited one").waitFor();
  await intent.getByRole("button", { name: "Approve i1" }).click();
  const claim = page.getByRole("region", { name: "Review of c1" });
  await claim.getByText("bob claims c1").waitFor();
  assert.equal(await claim.getByRole("button", { name: "Challenge c1" }).isDisabled(), true, "no without a reason");
  await claim.getByRole("button", { name: "Approve c1" }).click();
  const story = page.getByRole("list", { name: "The story of this run" });
  for (const part of ["operator approves p1", "it is fine", "operator approves i1", "bob starts i1", "bob ran i1: exit 0", "bob claims c1", "operator lets c1 stand", "bob states", "dora verified up to", "the trace is closed"]) {
    await story.getByText(part).first().waitFor();
  }
  await page.getByText("completed", { exact: true }).first().waitFor();
  assert.equal(await page.getByRole("region", { name: /^Review of/ }).count(), 0);
  assert.equal(await page.getByRole("button", { name: "Abort…" }).count(), 0);
  await page.keyboard.press("v");
  await verdict(page).getByText("Passed with warnings").waitFor();
  const kinds = await story.locator("[data-step]").evaluateAll((all) => all.map((one) => one.dataset.step));
  const order = ["session_initialized", "proposal_created", "proposal_reviewed", "tool_intent_signed", "tool_intent_reviewed", "tool_execution_started", "tool_execution_completed", "claim_issued", "final_statement_signed", "verification_run_completed"];
  assert.deepEqual(kinds.filter((kind, at) => order.includes(kind) && kinds.indexOf(kind) === at), order);
  // From the story to the record.
  await story.getByRole("listitem").filter({ hasText: "bob claims c1" }).getByTitle("Show this record").click();
  await page.getByRole("heading", { name: /claim_issued/ }).waitFor();
  await page.getByRole("button", { name: "Look at it" }).first().click();
  await page.getByText("its hash is the cited one").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a record shows its signature, by which key, and where that key was bound", async (t) => {
  const server = await start(t, { config: team(true) });
  const { id: task } = await server.json(["task", "new", "edit good.txt complete done", "--guarded", "--ready"]);
  const { traceId } = await server.api("GET", `/v1/tasks/${task}`);
  const run = await guardOf(server, traceId);
  const { events } = await until("it is over", async () => {
    const whole = await server.json(["trace", "show", run]);
    return whole.closed && whole;
  });
  const claim = events.find(({ type }) => type === "claim_issued");
  const bound = events.find(({ type, payload }) => type === "key_bound" && payload.key === claim.sig.key);
  const page = await open(t, server, { path: `/traces/${run}?event=${claim.id}` });
  const pane = (event) => page.getByRole("region", { name: `Record ${event.seq}`, exact: true });
  /** What the pane says of a signature, word by word. */
  const signed = (event) => pane(event).locator("h3", { hasText: "Signature" }).locator("+ dl").locator("dd").allTextContents();
  await pane(claim).waitFor();
  assert.deepEqual(await signed(claim), [claim.sig.key, `record ${bound.seq}`, claim.sig.value]);
  await pane(claim).getByRole("button", { name: `record ${bound.seq}` }).click();
  await pane(bound).waitFor();
  await pane(bound).locator(".payload-fields").getByText(claim.sig.key).waitFor();
  // That record itself is signed by the ledger, which was not bound in any trace but its own.
  assert.deepEqual(await signed(bound), [bound.sig.key, "by the ledger itself: its own trace", bound.sig.value]);
  await pane(bound).getByRole("link", { name: "its own trace" }).click();
  await page.waitForURL((url) => url.pathname === "/traces/ledger");
  // What nobody signed is said to be just that.
  const loose = await trace(server, 1);
  const other = await open(t, server, { path: `/traces/${loose}?event=2` });
  await other.getByRole("region", { name: "Record 2" }).getByText("It is not signed.").waitFor();
  assert.deepEqual([...page.problems, ...other.problems], []);
});

test("a person aborts a run, with a reason", async (t) => {
  const server = await start(t, { config: team(false, '[policy]\nprofile = "strict"\n') });
  const { id: task } = await server.json(["task", "new", "edit good.txt complete done", "--guarded", "--ready"]);
  const { traceId } = await server.api("GET", `/v1/tasks/${task}`);
  const page = await open(t, server, { path: `/traces/${await guardOf(server, traceId)}` });
  await page.getByRole("region", { name: "Review of p1" }).waitFor();
  await page.getByRole("button", { name: "Abort…" }).click();
  await page.getByRole("dialog").getByLabel("Why").fill("not wanted any more");
  await page.getByRole("dialog").getByRole("button", { name: "Abort the run" }).click();
  await page.getByRole("list", { name: "The story of this run" }).getByText("not wanted any more").waitFor();
  await page.getByText("aborted", { exact: true }).first().waitFor();
  await until("the task is cancelled", async () => (await server.api("GET", `/v1/tasks/${task}`)).status === "cancelled");
});
