// Makes src/generated/ from docs/reference/openapi.json: the types of the schemas, and a class with a method for each operation.
//
//   node scripts/generate.mjs           writes the files
//   node scripts/generate.mjs --check   writes nothing, and fails where they are not what they would be
//
// What it does not know it refuses, so that a new word in the description is noticed here and not by whoever uses the types.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "../../../docs/reference/openapi.json");
const target = join(here, "../src/generated");
const head = "// Made by scripts/generate.mjs from docs/reference/openapi.json. Not to be edited.\n";

/** Words of a schema that say nothing about its type. */
const PASSED_OVER = new Set(["description", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "maxItems"]);
const KNOWN = new Set(["$ref", "type", "enum", "const", "properties", "required", "items", "additionalProperties", ...PASSED_OVER]);

function comment(text, indent) {
  return text ? `${indent}/** ${text.replaceAll("*/", "* /")} */\n` : "";
}

function key(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** The TypeScript type of a schema. */
function typeOf(schema, indent = "") {
  const odd = Object.keys(schema).filter((word) => !KNOWN.has(word));
  if (odd.length > 0) throw new Error(`the generator does not know ${odd.join(", ")}`);
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "string": return "string";
    case "integer":
    case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": {
      const item = schema.items ? typeOf(schema.items, indent) : "unknown";
      return item.includes(" ") ? `Array<${item}>` : `${item}[]`;
    }
    case "object": return schema.properties ? `{\n${members(schema, indent + "  ")}${indent}}` : "JsonObject";
    case undefined: return "unknown";
    default: throw new Error(`the generator does not know the type ${schema.type}`);
  }
}

/** The members of an object. Where more may stand beside those that are known, the type says so. */
function members(schema, indent) {
  let out = "";
  for (const [name, member] of Object.entries(schema.properties)) {
    const mark = (schema.required ?? []).includes(name) ? "" : "?";
    out += comment(member.description, indent) + `${indent}${key(name)}${mark}: ${typeOf(member, indent)};\n`;
  }
  if (schema.additionalProperties !== false) out += `${indent}[more: string]: unknown;\n`;
  return out;
}

function declaration(name, schema) {
  const words = comment(schema.description, "");
  if (schema.type === "object" && schema.properties) return `${words}export interface ${name} {\n${members(schema, "  ")}}\n`;
  return `${words}export type ${name} = ${typeOf(schema)};\n`;
}

const pascal = (name) => name[0].toUpperCase() + name.slice(1);
const needed = (schema) => (schema.required ?? []).length > 0;

/** One operation: how it is called, and the types of what it takes that have no name yet. */
function operation(method, path, described, types) {
  const id = described.operationId;
  const found = (place) => (described.parameters ?? []).filter((parameter) => parameter.in === place);
  const answers = Object.entries(described.responses).filter(([status]) => status !== "default");
  const [kind, { schema: answer }] = Object.entries(answers[0][1].content)[0];
  const call = { id, method: method.toUpperCase(), path, arguments: [], parts: [], summary: described.summary };
  for (const { name } of found("path")) {
    call.arguments.push(`${name}: string`);
    call.parts.push(name);
  }
  const content = described.requestBody && Object.entries(described.requestBody.content)[0];
  if (content) {
    const [type, { schema }] = content;
    if (type === "application/octet-stream") {
      call.arguments.push("body: Bytes");
      call.body = "bytes";
    } else if (schema.properties && Object.keys(schema.properties).length === 0) {
      // It takes an object, and nothing may be in it.
      call.body = "empty";
    } else {
      const name = schema.$ref ? typeOf(schema) : `${pascal(id)}Body`;
      if (!schema.$ref) types.push(declaration(name, { ...schema, description: `What \`${id}\` takes.` }));
      call.arguments.push(schema.$ref || needed(schema) ? `body: ${name}` : `body: ${name} = {}`);
      call.body = "json";
    }
  }
  const query = found("query");
  if (query.length > 0) {
    const properties = Object.fromEntries(query.map((q) => [q.name, { ...q.schema, description: q.description }]));
    const required = query.filter((q) => q.required).map((q) => q.name);
    const description = `What \`${id}\` may be asked for.`;
    types.push(declaration(`${pascal(id)}Query`, { type: "object", properties, required, description, additionalProperties: false }));
    call.arguments.push(`query: ${pascal(id)}Query${required.length > 0 ? "" : " = {}"}`);
    call.query = true;
  }
  call.answer = { "application/json": "json", "text/plain": "text", "application/octet-stream": "bytes", "text/event-stream": "events" }[kind];
  if (!call.answer) throw new Error(`the generator does not know answers of ${kind}`);
  call.gives = { json: () => typeOf(answer), text: () => "string", bytes: () => "Uint8Array", events: () => "" }[call.answer]();
  return call;
}

/** A method. Streams are not called: the client follows them, in code of its own. */
function methodOf(call) {
  const given = [`path: [${call.parts.join(", ")}]`];
  if (call.body && call.body !== "empty") given.push("body");
  if (call.query) given.push("query: { ...query }");
  const takes = [...call.arguments, "options: CallOptions = {}"].join(", ");
  return `${comment(call.summary, "  ")}  ${call.id}(${takes}): Promise<${call.gives}> {
    return this.call<${call.gives}>(OPERATIONS.${call.id}, { ${given.join(", ")} }, options);
  }\n`;
}

/** Whether a path is for this client: the page is for people, and those who speak other protocols have clients of their own. */
function isOurs(path) {
  return path !== "/" && !/^\/v1\/(commands|mcp|acp)(\/|$)/.test(path);
}

/** The text of each file, by its name. */
export function generate() {
  const described = JSON.parse(readFileSync(source, "utf8"));
  const types = Object.entries(described.components.schemas).map(([name, schema]) => declaration(name, schema));
  const calls = Object.entries(described.paths).filter(([path]) => isOurs(path)).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, words]) => operation(method, path, words, types)));
  const table = calls.map(({ id, method, path, body, answer }) =>
    `  ${id}: { method: "${method}", path: "${path}"${body ? `, body: "${body}"` : ""}${answer === "json" ? "" : `, answer: "${answer}"`} },\n`);
  const methods = calls.filter((call) => call.answer !== "events").map(methodOf);
  const text = methods.join("\n");
  const declared = types.map((type) => type.match(/export (?:interface|type) (\w+)/)[1]);
  const used = declared.filter((name) => new RegExp(`\\b${name}\\b`).test(text)).sort();
  return {
    "types.ts": `${head}\n/** An object of which nothing more is said. */\nexport interface JsonObject {\n  [key: string]: unknown;\n}\n\n${types.join("\n")}`,
    "operations.ts": `${head}
import type { Arguments, Bytes, CallOptions, Operation } from "../call.js";
import type { ${used.join(", ")} } from "../types.js";

/** Every operation of the interface, by its name. */
export const OPERATIONS = {
${table.join("")}} as const satisfies { readonly [id: string]: Operation };

/** A method for each operation that is answered at once. */
export abstract class Operations {
  /** Sends a request, and gives what it was answered with. */
  protected abstract call<T>(operation: Operation, given: Arguments, options: CallOptions): Promise<T>;

${text}}
`,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = generate();
  mkdirSync(target, { recursive: true });
  if (process.argv.includes("--check")) {
    const read = (name) => { try { return readFileSync(join(target, name), "utf8"); } catch { return undefined; } };
    const stale = Object.keys(files).filter((name) => read(name) !== files[name]);
    if (stale.length > 0) {
      console.error(`src/generated/ is not what docs/reference/openapi.json gives: ${stale.join(", ")}; run: npm run generate`);
      process.exit(1);
    }
  } else {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(target, name), text);
  }
}
