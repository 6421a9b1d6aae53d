// Gives tests the TypeScript of the page: bundled into one module in a temporary folder, which goes with the process.
import { build } from "esbuild";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const web = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** What the files export, together. They share one copy of whatever they use. */
export async function load(...files) {
  const dir = mkdtempSync(join(tmpdir(), "baton-page-unit-"));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  const outfile = join(dir, "bundle.mjs");
  const contents = files.map((file) => `export * from ${JSON.stringify(join(web, "src", file))};`).join("\n");
  await build({
    stdin: { contents, resolveDir: web, loader: "ts" },
    outfile, bundle: true, format: "esm", platform: "node", target: "node20", logLevel: "warning", jsx: "automatic", jsxImportSource: "preact",
    alias: { "@baton/sdk": join(web, "../sdk/typescript/src/index.ts") },
    loader: { ".css": "empty" },
  });
  return import(pathToFileURL(outfile).href);
}

/** A task with what tasks always have. */
export const task = (id, more = {}) => ({
  id, title: `Title of ${id}`, status: "ready", phase: "IMPLEMENTATION", priority: "normal", rev: 1, lastTransitionAt: "2026-02-09T10:00:00.000Z", ...more,
});
