// Traces in the page: the list, a chain that holds and one that does not, bundles, and very long ones.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, follow, open, segment, shot, start, tamper, test, until } from "./support.mjs";
import { guardOf, isWithin, lines, row, team, trace, verdict } from "./traces.mjs";

test("the list is empty, loads, breaks, and comes back", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, { path: "/traces" });
  await page.getByText("No work was recorded yet").waitFor();
  await page.getByText("The ledger's own trace").waitFor();
  // What is added is there without a reload.
  const id = await trace(server, 1);
  await page.getByText("what was noted").waitFor();
  await page.getByText("2 events").waitFor();
  await page.getByRole("searchbox").fill("nothing has this");
  await page.getByText("No trace has these words").waitFor();
  await page.getByRole("searchbox").fill("noted open");
  await page.locator(".trace-line", { hasText: "what was noted" }).click();
  await page.waitForURL(`**/traces/${id}`);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let isRefused = true;
  const other = await open(t, server, {
    path: "/traces",
    before: (fresh) => fresh.route("**/v1/traces", async (route) => {
      await held;
      if (!isRefused) return route.continue();
      return route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:baton:error:X000", title: "it broke", status: 500, code: "X000", hint: "baton doctor" }) });
    }),
  });
  await other.getByText("Loading the traces…").waitFor();
  release();
  await other.getByText("The traces cannot be shown").waitFor();
  for (const part of ["it broke", "X000", "baton doctor"]) await other.getByRole("alert").getByText(part).waitFor();
  isRefused = false;
  await other.getByRole("button", { name: "Try again" }).click();
  await other.getByText("what was noted").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a trace that is not there is said not to be", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, { path: "/traces/trc_0192f0c1-2345-7abc-bdef-0123456789ab" });
  await page.getByRole("alert").getByText("L014").waitFor();
  await page.getByText("This trace cannot be shown").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a good trace passes, is proven in the page, and grows", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 6);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  const page = await open(t, server, { path: `/traces/${id}`, before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, async (route) => { await held; await route.continue(); }) });
  await page.getByText("Loading the trace…").waitFor();
  release();
  await verdict(page).getByText("Passed with warnings").waitFor();
  await page.getByText("All hashes were computed anew here, and are the same.").waitFor();
  assert.deepEqual(await page.locator(".record").evaluateAll((all) => all.map((one) => one.dataset.joint)), ["first", ...Array(6).fill("whole")]);
  assert.equal(await page.getByText("unproven").count(), 0);
  // With keys alone: to the third record, and into it.
  for (const key of ["j", "j", "j", "k", "j", "Enter"]) await page.keyboard.press(key);
  await page.waitForURL(/event=evt_/);
  const pane = page.getByRole("region", { name: "Record 3" });
  await pane.getByText("the same").waitFor();
  await pane.getByText("is the hash of the record before").waitFor();
  await pane.getByText("Canonical bytes").click();
  const stored = readFileSync(segment(server), "utf8").split("\n").find((line) => line.includes(id) && line.includes('"seq":3'));
  assert.equal(await pane.locator(".record-bytes .text").textContent(), stored, "to the byte");
  // The same record by its address.
  const again = await open(t, server, { path: new URL(page.url()).pathname + new URL(page.url()).search });
  await again.getByRole("region", { name: "Record 3" }).waitFor();
  // It grows: the row comes, the verdict is of an older head, until it is verified again.
  await server.baton(["trace", "append", id, "--agent", "me"], { input: lines(1) });
  await row(page, 8).waitFor();
  await verdict(page).getByText("older head").waitFor();
  await page.keyboard.press("v");
  await verdict(page).getByText("8 events: unaltered").waitFor();
  assert.equal(await verdict(page).getByText("older head").count(), 0);
  // What it takes elsewhere.
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download the bundle" }).click()]);
  assert.match(readFileSync(await download.path(), "utf8"), /^\{"bundle":1,/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await page.evaluate(() => navigator.clipboard.writeText("something else"));
  await page.keyboard.press("y");
  await page.getByRole("log").getByText(`baton verify ${id} is in the clipboard`).waitFor();
  assert.equal(await copied(), `baton verify ${id}`);
  assert.match(await server.baton((await copied()).split(" ").slice(1)), /verdict +pass/, "it is a command that does it");
  await pane.getByRole("button", { name: "Copy", exact: true }).click();
  await until("the bytes are in the clipboard", async () => (await copied()) === stored);
  await page.getByRole("tab", { name: "Checks" }).click();
  await page.getByText("EVENT_HASH").waitFor();
  assert.deepEqual(page.problems, []);
});

test("a server that is killed under an open trace: every record is there once, also those of the time without it", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 5);
  const page = await open(t, server, { path: `/traces/${id}` });
  const seqs = () => page.locator(".record").evaluateAll((rows) => rows.map((row) => Number(row.dataset.seq)).sort((a, b) => a - b));
  const upTo = (count) => until(`records 1 to ${count}, each once`, async () => JSON.stringify(await seqs()) === JSON.stringify(Array.from({ length: count }, (_, at) => at + 1)));
  await upTo(6);
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await server.kill();
  await page.locator(".link.is-bad").waitFor();
  await server.baton(["trace", "append", id, "--agent", "me"], { input: lines(3) });
  await server.serve();
  await page.locator(".link.is-good").waitFor();
  await upTo(9);
  await server.baton(["trace", "append", id, "--agent", "me"], { input: lines(2) });
  await upTo(11);
  await verdict(page).getByText("pass").first().waitFor();
  // And killed while it grows: what was not acknowledged is appended again where it is not there.
  const grow = () => server.baton(["trace", "append", id, "--agent", "me"], { input: lines(1) }).catch(() => undefined);
  const growing = [grow(), grow(), grow(), grow()];
  await Promise.race(growing);
  await server.kill();
  await Promise.all(growing);
  await server.serve();
  const { size } = await server.api("GET", `/v1/traces/${id}`);
  assert.ok(size >= 12, "one was acknowledged before");
  await upTo(size);
  await grow();
  await upTo(size + 1);
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "without a reload");
  assert.deepEqual(page.problems, []);
});

test("a record that was changed on the disk is shown as broken at its place", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 700, (n) => ({ n, said: n === 600 ? "the truth" : "a note" }));
  const page = await open(t, server, { path: `/traces/${id}` });
  await page.getByText("All hashes were computed anew here").waitFor();
  await verdict(page).getByText("Passed with warnings").waitFor();
  tamper(server, "the truth", "an untrue");
  // Whoever looks already learns it by verifying; whoever comes now finds the page of records refused, and gets all of the others.
  await page.keyboard.press("v");
  const fresh = await open(t, server, { path: `/traces/${id}` });
  for (const one of [page, fresh]) {
    await verdict(one).getByText("Failed").waitFor();
    await verdict(one).getByText("HASH_MISMATCH at event 602").waitFor();
    await one.getByRole("tab", { name: "Checks" }).click();
    await one.getByRole("list", { name: "Findings" }).getByRole("button", { name: "event 602" }).click();
    await row(one, 602).getByText("broken here").waitFor();
    await row(one, 603).getByText("unproven").waitFor();
    assert.equal(await row(one, 602).getAttribute("data-joint"), "broken");
    assert.equal(await row(one, 601).getAttribute("data-joint"), "whole");
    assert.equal(await row(one, 601).getByText("unproven").count(), 0);
    const pane = one.getByRole("region", { name: "Record 602" });
    await pane.getByText("HASH_MISMATCH").waitFor();
    assert.deepEqual(await axe(one), []);
  }
  await shot(fresh, "trace-broken");
  await fresh.keyboard.press("j");
  await fresh.getByRole("region", { name: "Record 603" }).getByText("the record before does not read").waitFor();
  // It was put right: whoever verifies finds that, and nothing of what was found before is left.
  tamper(server, "an untrue", "the truth");
  for (const one of [page, fresh]) {
    await one.keyboard.press("v");
    await verdict(one).getByText("Passed with warnings").waitFor();
    await one.getByText("All hashes were computed anew here, and are the same.").waitFor();
    assert.equal(await one.getByText("This page finds").count(), 0);
    assert.equal(await one.getByText("broken here").count(), 0);
    assert.equal(await row(one, 602).getAttribute("data-joint"), "whole");
    assert.equal(await one.locator(".record.is-unproven").count(), 0);
  }
  assert.deepEqual([...page.problems, ...fresh.problems], []);
});

test("what was changed while nobody served is found by whoever serves next", async (t) => {
  const server = await start(t, { dispatch: false });
  const { trace: id } = await server.json(["trace", "new", "--title", "with evidence"]);
  writeFileSync(join(server.dir, "evidence.txt"), "what was seen");
  await server.baton(["trace", "append", id, "--agent", "me"], { input: `${lines(2)}\n${JSON.stringify({ type: "note", artifacts: [{ path: "evidence.txt" }] })}\n${lines(2)}` });
  await server.stop();
  const digest = createHash("sha256").update("what was seen").digest("hex");
  const stored = join(server.dir, ".baton/artifacts/sha256", digest.slice(0, 2), digest);
  chmodSync(stored, 0o644);
  writeFileSync(stored, "what was said");
  await server.serve();
  const page = await open(t, server, { path: `/traces/${id}` });
  await verdict(page).getByText("ARTIFACT_HASH_MISMATCH at event 4").waitFor();
  await row(page, 4).getByText("broken here").waitFor();
  await row(page, 5).getByText("unproven").waitFor();
  assert.equal(await row(page, 3).getByText("unproven").count(), 0);
  await row(page, 4).click();
  await page.getByRole("button", { name: "Look at it" }).click();
  await page.getByText("its hash is another one").waitFor();
  await page.getByText("what was said").waitFor();
  // A record itself that does not fit: the server says so and ends where it reads it when it opens the ledger; where it goes on from what it saved, the
  // page shows it.
  await server.stop();
  tamper(server, '"n":1', '"n":7');
  const refused = await server.serve().then(() => undefined, (error) => String(error));
  if (refused !== undefined) return assert.match(refused, /L004|L032/);
  const again = await open(t, server, { path: `/traces/${id}` });
  await verdict(again).getByText(/HASH_MISMATCH at event/).waitFor();
  await again.getByText("broken here").first().waitFor();
});

test("what is dropped is verified, good or not", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 4, (n) => ({ n, said: "kept" }));
  await server.baton(["trace", "export", id, "-o", "good.bundle"]);
  const good = readFileSync(join(server.dir, "good.bundle"), "utf8");
  const page = await open(t, server, { path: "/traces" });
  const drop = async (name, text) => {
    const data = await page.evaluateHandle(([file, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], file));
      return transfer;
    }, [name, text]);
    await page.dispatchEvent("body", "dragover", { dataTransfer: data });
    await page.getByText("Drop a bundle to verify it").waitFor();
    await page.dispatchEvent("body", "drop", { dataTransfer: data });
    await page.getByRole("region", { name: "The bundle" }).getByText(name).waitFor();
  };
  await drop("good.bundle", good);
  await verdict(page).getByText("Passed with warnings").waitFor();
  await page.getByRole("link", { name: "It is in this ledger" }).waitFor();
  await drop("bad.bundle", good.replace('"n":2,"said":"kept"', '"n":2,"said":"lost"'));
  await verdict(page).getByText("HASH_MISMATCH at event 4").waitFor();
  await page.getByRole("list", { name: "Findings" }).getByText("critical").waitFor();
  await drop("<img src=x onerror=alert(1)>", "hello\n");
  await verdict(page).getByText(/Failed|Cannot tell/).waitFor();
  assert.deepEqual(await axe(page), []);
  // On the screen of one trace, and on one that cannot be shown, too: what came of it stands above the list, and the way back leads to the trace.
  for (const path of [`/traces/${id}`, "/traces/trc_0192f0c1-2345-7abc-bdef-0123456789ab"]) {
    await follow(page, path);
    await page.getByRole("region", { name: "The bundle" }).waitFor({ state: "detached" });
    await drop("good.bundle", good);
    await page.waitForURL((url) => url.pathname === "/traces");
    await verdict(page).getByText("Passed with warnings").waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => url.pathname === path);
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => url.pathname === "/traces");
  }
  // Chosen instead of dropped, and put away.
  await page.getByLabel("A bundle to verify").setInputFiles(join(server.dir, "good.bundle"));
  await verdict(page).getByText("Passed with warnings").waitFor();
  await page.getByRole("button", { name: "Put the bundle away" }).click();
  assert.equal(await verdict(page).count(), 0);
  assert.deepEqual(page.problems, []);
});

test("whatever a payload holds, it is text", async (t) => {
  const server = await start(t, { dispatch: false });
  const { trace: id } = await server.json(["trace", "new", "--title", "<script>globalThis.hit = 1</script>\u202eevil"]);
  const hostile = {
    "<img src=x onerror=\"globalThis.hit=2\">": "<svg onload=globalThis.hit=3>", link: "javascript:globalThis.hit=4", colour: "\u001b[31mred\u001b[0m \u0000 \u202e", __proto__: { polluted: true },
    deep: JSON.parse(`${"[".repeat(40)}1${"]".repeat(40)}`), long: "x".repeat(200_000), many: Array.from({ length: 2000 }, (_, n) => n), empty: "", none: null,
  };
  const text = JSON.stringify({ type: "note", payload: hostile }).replace('"deep"', '"__proto__":{"polluted":true},"deep"');
  await server.baton(["trace", "append", id, "--agent", "me"], { input: text });
  const page = await open(t, server, { path: `/traces/${id}?event=2` });
  const pane = page.getByRole("region", { name: "Record 2" });
  await pane.getByText("<svg onload=globalThis.hit=3>").waitFor();
  await pane.getByText("the same").waitFor();
  await page.getByText("All hashes were computed anew here").waitFor();
  assert.equal(await page.evaluate(() => globalThis.hit ?? {}.polluted), undefined);
  assert.equal(await page.locator("main script, main img, main svg").count(), 0);
  assert.ok(!(await page.locator("main").innerText()).includes("\u202e"));
  assert.equal(await isWithin(page), true);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test("ten thousand events scroll without a halt", { timeout: 240_000 }, async (t) => {
  const server = await start(t, { dispatch: false, env: { BATON_LEDGER_DURABILITY: "none" } });
  const { trace: id } = await server.json(["trace", "new", "--title", "a long one"]);
  const note = (n) => ({ type: "note", payload: { n, said: `the ${n}th of very many notes, with some words in it` } });
  for (let from = 0; from < 10_000; from += 1000) {
    await server.baton(["trace", "append", id, "--agent", from % 2000 === 0 ? "one" : "two", "-q"], { input: JSON.stringify(Array.from({ length: 1000 }, (_, n) => note(from + n))) });
  }
  const page = await open(t, server, { path: `/traces/${id}` });
  await page.getByText("All hashes were computed anew here").waitFor({ timeout: 60_000 });
  await page.getByText("10001 events").first().waitFor();
  // By the processor's time, of which other programs take nothing: what a step takes is at least what its longest task does.
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => (await devtools.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "TaskDuration").value * 1000;
  const steps = [];
  const measured = async (work) => {
    const before = await spent();
    await work();
    steps.push((await spent()) - before);
  };
  await page.evaluate(() => {
    globalThis.halts = [0];
    new PerformanceObserver((list) => globalThis.halts.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  const box = page.getByRole("group", { name: "Records of the trace" });
  for (let step = 0; step <= 40; step += 1) {
    await measured(() => box.evaluate(async (element, part) => {
      element.scrollTop = (element.scrollHeight - element.clientHeight) * part;
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }, step / 40));
  }
  await measured(() => row(page, 10_001).click());
  await page.getByRole("region", { name: "Record 10001" }).waitFor();
  for (let step = 0; step < 30; step += 1) await measured(() => page.keyboard.press("k"));
  await page.getByRole("region", { name: "Record 9971" }).waitFor();
  const halt = await page.evaluate(() => Math.max(...globalThis.halts));
  t.diagnostic(`the longest step took ${Math.round(Math.max(...steps))} ms of the processor; the longest task ${Math.round(halt)} ms by the clock, beside whatever else ran`);
  assert.ok(Math.max(...steps) < 200, `steps took ${steps.map(Math.round)} ms`);
  await page.keyboard.press("f");
  await page.getByText("1000 records").first().waitFor();
  assert.ok((await page.locator(".record").count()) < 100, "only what is seen is drawn");
});

test("axe finds nothing, in light and dark, wide and narrow", async (t) => {
  const server = await start(t, { config: team(true) });
  const { id: task } = await server.json(["task", "new", "edit forbidden.txt edit good.txt term true tool complete done doubtful", "--guarded", "--ready"]);
  const { traceId } = await server.api("GET", `/v1/tasks/${task}`);
  const run = await guardOf(server, traceId);
  await until("it is verified", async () => (await server.json(["trace", "show", traceId])).events.some((event) => event.type === "task.verified"));
  for (const look of [{}, { dark: true }, { width: 360 }, { dark: true, width: 360 }]) {
    const name = `${look.dark ? "dark" : "light"}-${look.width ?? "wide"}`;
    const page = await open(t, server, { path: `/traces/${run}`, ...look });
    await verdict(page).getByText("Passed").waitFor();
    for (const tab of ["story", "chain", "checks"]) {
      await page.getByRole("tab", { name: tab, exact: false }).click();
      if (tab === "chain") await row(page, 4).click();
      assert.deepEqual(await axe(page), [], `${tab} ${name}`);
      assert.equal(await isWithin(page), true, `${tab} ${name} is as wide as the window`);
      await shot(page, `trace-${tab}-${name}`);
    }
    await page.goto(new URL("/traces", server.url).href);
    await page.locator(".trace-line", { hasText: "guarded run" }).waitFor();
    assert.deepEqual(await axe(page), [], `list ${name}`);
    assert.equal(await isWithin(page), true, `list ${name}`);
    await shot(page, `traces-${name}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("a chain whose hashes were computed anew is broken where it was cut", async (t) => {
  // Whoever computes the hash of one record anew breaks the link of the next.
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 5);
  const page = await open(t, server, {
    path: `/traces/${id}`,
    before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, async (route) => {
      const answer = await route.fetch().catch(() => undefined);
      // Nobody is there any more: the test is over.
      if (!answer) return;
      const body = await answer.json();
      const forged = body.events.find((event) => event.seq === 3);
      if (forged) {
        forged.payload.n = 99;
        forged.hash = hashOf(forged);
      }
      await route.fulfill({ response: answer, json: body });
    }),
  });
  await row(page, 4).getByText("broken here").waitFor();
  assert.equal(await row(page, 4).getAttribute("data-joint"), "broken");
  await row(page, 5).getByText("unproven").waitFor();
  // The verifier saw nothing of it: the page says so itself.
  await verdict(page).getByText("This page finds that record 4 is not what it should be").waitFor();
  await shot(page, "trace-cut");
  // That it passes once more undoes nothing: it is read again, and found again. The mark is there all the while.
  const mark = page.getByRole("alert").getByRole("link", { name: "ledger damaged" });
  await mark.waitFor();
  await page.evaluate(() => {
    globalThis.isGone = false;
    new MutationObserver(() => { globalThis.isGone ||= !document.body.innerText.includes("ledger damaged"); }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  const read = page.waitForResponse((answer) => answer.url().includes(`/v1/traces/${id}?`));
  await page.keyboard.press("v");
  await read;
  await verdict(page).getByText("Passed with warnings").waitFor();
  await page.getByText("All hashes were computed anew here").or(page.getByText("what is stored now does not verify")).waitFor();
  await verdict(page).getByText("This page finds that record 4 is not what it should be").waitFor();
  await row(page, 4).getByText("broken here").waitFor();
  await mark.waitFor();
  assert.equal(await page.evaluate(() => globalThis.isGone), false);
  assert.deepEqual(page.problems, []);
});

const problem = (title) => ({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:baton:error:X000", title, status: 500, code: "X000" }) });

test("a trace that breaks off is said to, and read on; one that does not begin is tried again; one may be empty", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, 700);
  let isCut = true;
  const page = await open(t, server, {
    path: `/traces/${id}`,
    before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, (route) => {
      const isSecond = new URL(route.request().url()).searchParams.get("from") === "501";
      return isSecond && isCut ? route.fulfill(problem("the disk hiccuped")) : route.continue();
    }),
  });
  await page.getByText("500 of 701 read.").waitFor();
  await page.getByRole("alert").getByText("The rest could not be read: the disk hiccuped (X000)").waitFor();
  assert.deepEqual(await axe(page), []);
  isCut = false;
  await page.getByRole("button", { name: "Read on" }).click();
  await page.getByText("All hashes were computed anew here, and are the same.").waitFor();
  assert.equal(await page.getByText("could not be read").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Read on" }).count(), 0);

  let isRefused = true;
  const broken = await open(t, server, {
    path: `/traces/${id}`,
    before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, (route) => (isRefused ? route.fulfill(problem("it broke")) : route.continue())),
  });
  await broken.getByText("This trace cannot be shown").waitFor();
  await broken.getByRole("alert").getByText("it broke").waitFor();
  isRefused = false;
  await broken.getByRole("button", { name: "Try again" }).click();
  await row(broken, 1).waitFor();

  const empty = await open(t, server, {
    path: `/traces/${id}`,
    before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, async (route) => {
      const answer = await route.fetch().catch(() => undefined);
      if (answer) await route.fulfill({ response: answer, json: { ...(await answer.json()), events: [], size: 0 } });
    }),
  });
  await empty.getByText("There is nothing in this trace").waitFor();
  assert.deepEqual([...page.problems, ...broken.problems, ...empty.problems], []);
});

const canonical = (value) => (Array.isArray(value) ? `[${value.map(canonical).join(",")}]`
  : typeof value === "object" && value !== null ? `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}` : JSON.stringify(value));
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

function hashOf({ batch = null, commit = null, hash: _hash, pos: _pos, prev, seq, sig = null, ...body }) {
  return sha256(`baton/link/v1\n${canonical({ batch, bd: sha256(canonical(body)), commit, prev, seq, sig })}`);
}
