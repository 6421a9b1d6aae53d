// The code on the pages is run as it stands: the blocks of `js` of a page are one program, the blocks of `text` what it prints, where `…` stands for anything.
// It is run in a project that has installed the package as people do.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "./deadline.mjs";
import { Client } from "../dist/index.js";
import { startServer } from "./server.mjs";

const own = fileURLToPath(new URL("..", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "baton-sdk-project-"));

before(() => {
  const npm = (...words) => execFileSync("npm", [...words, "--silent", "--offline", "--no-audit", "--no-fund"], { cwd: project, stdio: ["ignore", "ignore", "inherit"] });
  writeFileSync(join(project, "package.json"), '{"type": "module"}');
  npm("pack", own, "--ignore-scripts");
  npm("install", "--ignore-scripts", `./${readdirSync(project).find((name) => name.endsWith(".tgz"))}`);
});
after(() => rmSync(project, { recursive: true, force: true }));

const blocks = (page, kind) => [...page.matchAll(new RegExp("^```" + kind + "\\n([^]*?)^```", "gm"))].map(([, text]) => text).join("");
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", "[^]*?");

for (const [name, path] of [["README.md", "../README.md"], ["docs/reference/sdk.md", "../../../docs/reference/sdk.md"]]) {
  test(`the code of ${name} does what it says`, async (t) => {
    const page = readFileSync(new URL(path, import.meta.url), "utf8");
    const server = await startServer(t);
    const file = join(project, `${name.replaceAll("/", "-")}.mjs`);
    writeFileSync(file, blocks(page, "js"));
    const env = { PATH: process.env["PATH"], BATON_URL: server.url, BATON_TOKEN: server.token };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: 30_000 });
    assert.match(stdout, new RegExp(`^${escaped(blocks(page, "text"))}$`));
  });
}

test("the agent of docs/guide/own-agent.md does its task", async (t) => {
  const page = readFileSync(new URL("../../../docs/guide/own-agent.md", import.meta.url), "utf8");
  const server = await startServer(t);
  const client = new Client({ url: server.url, token: server.token });
  const { id } = await client.createTask({ title: "Write hello.txt", status: "ready" });
  const file = join(project, "own-agent.mjs");
  writeFileSync(file, blocks(page, "js"));
  const env = { PATH: process.env["PATH"], BATON_URL: server.url, BATON_TOKEN: server.token };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: project, env, timeout: 30_000 });
  assert.equal(stdout, "true\n");
  assert.equal((await client.getTask(id)).status, "review");
});

test("the package holds what it needs and nothing else", () => {
  const files = readdirSync(join(project, "node_modules/@baton/sdk"), { recursive: true }).map(String);
  assert.ok(files.includes("dist/index.js") && files.includes("dist/index.d.ts"));
  assert.deepEqual(files.filter((name) => /^(src|test|scripts|node_modules)\b/.test(name)), []);
  const { dependencies } = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
});
