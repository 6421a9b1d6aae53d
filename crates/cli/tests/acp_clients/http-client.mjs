// What the package `acp-http-client` does against a Baton: node http-client.mjs URL TOKEN. Ends with 0 where all of it holds.
import assert from "node:assert/strict";
import { AcpHttpClient } from "acp-http-client";

const [baseUrl, token] = process.argv.slice(2);
let said = "";
let asked = 0;
let heard;
const ended = new Promise((resolve) => (heard = resolve));

const client = new AcpHttpClient({
  baseUrl,
  token,
  transport: { path: "/v1/acp/published-client", bootstrapQuery: { agent: "mock" } },
  client: {
    sessionUpdate: async ({ update }) => {
      if (update.sessionUpdate === "agent_message_chunk") said += update.content.text;
    },
    requestPermission: async ({ options }) => {
      asked += 1;
      return { outcome: { outcome: "selected", optionId: options.find((option) => option.kind === "allow_once").optionId } };
    },
    extNotification: async (method, params) => {
      if (method === "_sandboxagent/session/ended") heard(params);
    },
  },
});
const prompt = (sessionId, text) => client.prompt({ sessionId, prompt: [{ type: "text", text }] });

const hello = await client.initialize();
assert.equal(hello.protocolVersion, 1);
const { sessionId } = await client.newSession({ cwd: "/tmp", mcpServers: [] });
assert.equal((await prompt(sessionId, "hello")).stopReason, "end_turn");
assert.equal(said, "hello ", "all of it was heard before the turn ended");
assert.equal((await prompt(sessionId, "permission")).stopReason, "end_turn");
assert.equal(asked, 1);
assert.match(said, /permission: once/);
const { sessions } = await client.listSessions({});
assert.equal(sessions[0].sessionId, sessionId);
assert.equal(sessions[0]._meta["sandboxagent.dev"].ended, false);

// An agent that dies: the call is answered, and how it ended is told.
const failure = await prompt(sessionId, "crash 3 120").then(
  () => assert.fail("it died"),
  (error) => error,
);
assert.equal(failure.code, -32000);
assert.equal(failure.data.exit_code, 3);
const told = await ended;
assert.equal(told.session_id, sessionId);
assert.equal(told.data.stderr.total_lines, 120);
const late = await prompt(sessionId, "hello").catch((error) => error);
assert.equal(late.code, -32000, "the client lives on, and is answered");
await client.disconnect();
const listed = await fetch(`${baseUrl}/v1/acp`, { headers: { authorization: `Bearer ${token}` } });
assert.deepEqual((await listed.json()).servers, []);
console.log("ok");
