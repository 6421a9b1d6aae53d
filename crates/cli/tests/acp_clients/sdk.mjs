// What the package `sandbox-agent` does against a Baton: node sdk.mjs URL TOKEN. Ends with 0 where all of it holds.
import assert from "node:assert/strict";
import { SandboxAgent } from "sandbox-agent";

const [baseUrl, token] = process.argv.slice(2);
const sdk = await SandboxAgent.connect({ baseUrl, token, waitForHealth: { timeoutMs: 20000 } });
const { agents } = await sdk.listAgents();
assert.ok(agents.some((agent) => agent.id === "mock"));

const session = await sdk.createSession({ agent: "mock", cwd: "/tmp" });
const methods = [];
let asked = 0;
let heard;
const ended = new Promise((resolve) => (heard = resolve));
session.onEvent((event) => {
  methods.push(event.payload.method ?? "answer");
  if (event.payload.method === "_sandboxagent/session/ended") heard(event.payload.params);
});
session.onPermissionRequest((request) => {
  asked += 1;
  session.respondPermission(request.id, "once");
});
const prompt = (text) => session.prompt([{ type: "text", text }]);
assert.equal((await prompt("hello")).stopReason, "end_turn");
assert.equal((await prompt("permission")).stopReason, "end_turn");
assert.equal(asked, 1);
assert.ok(methods.includes("session/update") && methods.includes("session/request_permission"), methods.join());
const { servers } = await sdk.listAcpServers();
assert.equal(servers.length, 1);
assert.equal(servers[0].agent, "mock");
assert.equal(typeof servers[0].createdAtMs, "number");

const failure = await prompt("crash 3").catch((error) => error);
assert.equal(failure.code, -32000);
const told = await ended;
assert.equal(told.sessionId, session.agentSessionId);
assert.equal(told.data.exit_code, 3);
assert.deepEqual((await sdk.listAcpServers()).servers, [], "nothing dead is listed");

await sdk.dispose();
console.log("ok");
