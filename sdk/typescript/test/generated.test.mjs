// What is generated is what the description gives, and the client has it all.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client, OPERATIONS } from "../dist/index.js";
import { generate } from "../scripts/generate.mjs";
import { test } from "./deadline.mjs";
import { startServer } from "./server.mjs";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

test("the generated files are those that a fresh generation gives", () => {
  for (const [name, text] of Object.entries(generate())) {
    assert.equal(read(`../src/generated/${name}`), text, `src/generated/${name} is stale; run: npm run generate`);
  }
});

test("every operation of the description is a method of that name", () => {
  const { paths } = JSON.parse(read("../../../docs/reference/openapi.json"));
  // The page is for people; commands, tools and agents have clients of their own.
  const others = ["/", "/v1/commands", "/v1/mcp", "/v1/acp"];
  const isOurs = (path) => !others.some((other) => path === other || (other !== "/" && path.startsWith(`${other}/`)));
  const ours = Object.entries(paths).filter(([path]) => isOurs(path));
  const names = ours.flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
  assert.deepEqual(Object.keys(OPERATIONS), names);
  const client = new Client({ url: "http://127.0.0.1:1" });
  for (const name of names) assert.equal(typeof client[name], "function", name);
});

test("the server that is tested gives out the same description", async (t) => {
  const server = await startServer(t);
  const client = new Client({ url: server.url, token: server.token });
  assert.deepEqual(await client.getDescription(), JSON.parse(read("../../../docs/reference/openapi.json")));
});
