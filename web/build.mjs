// Bundles the page into dist/: one script, one style, hashed names, each beside its gzip; and index.html that names them.
// With --watch it goes on doing so. The last line says how large it is; too large is an error.

import { build, context } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const sdk = join(here, "../sdk/typescript/src");
const dist = join(here, process.env.BATON_PAGE_DIST ?? "dist");
const GZIP_BYTES_MAX = 90_000;

/** Writes what is another than before, and nothing else: whatever is built of these files would be built again. */
async function put(files) {
  for (const [name, bytes] of files) {
    const path = join(dist, name);
    const known = await readFile(path).catch(() => undefined);
    if (known === undefined || !known.equals(bytes)) await writeFile(path, bytes);
  }
  for (const name of await readdir(join(dist, "assets"))) {
    if (!files.has(`assets/${name}`)) await rm(join(dist, "assets", name), { recursive: true });
  }
}

const pack = {
  name: "pack",
  setup(bundler) {
    bundler.onEnd(async ({ errors, outputFiles }) => {
      if (errors.length > 0) return;
      const files = new Map([["assets/icon.svg", await readFile(join(here, "src/icon.svg"))]]);
      const names = [];
      let size = 0;
      for (const { path, contents } of outputFiles) {
        const name = `assets/${basename(path)}`;
        const zipped = gzipSync(contents, { level: 9 });
        files.set(name, Buffer.from(contents)).set(`${name}.gz`, zipped);
        names.push(name);
        size += zipped.length;
      }
      const named = (end) => `/${names.find((name) => name.endsWith(end))}`;
      const html = await readFile(join(here, "index.html"), "utf8");
      files.set("index.html", Buffer.from(html.replace("{{script}}", named(".js")).replace("{{style}}", named(".css"))));
      await put(files);
      console.log(`page: ${size} bytes of script and style in gzip (at most ${GZIP_BYTES_MAX})`);
      if (size > GZIP_BYTES_MAX) throw new Error(`the page is too large: ${size} > ${GZIP_BYTES_MAX}`);
    });
  },
};

/** The client has a method for each route. Those that nothing here calls, as `client.NAME`, are left out with their routes. */
const trim = {
  name: "trim",
  setup(bundler) {
    bundler.onLoad({ filter: /src\/(generated\/operations|client)\.ts$/ }, async ({ path }) => {
      const sources = await Promise.all([join(here, "src"), sdk].map(textOf));
      const called = new Set(sources.join("\n").match(/(?<=\b(?:client|this|OPERATIONS)\s*\.)\w+/g));
      const isNeeded = (whole, name) => (called.has(name) ? whole : "");
      const text = await readFile(path, "utf8");
      return { loader: "ts", contents: text.replace(/^ {2}(\w+)\(.*\{\n {4}return .*\n {2}\}\n/gm, isNeeded).replace(/^ {2}(\w+): \{ method: .*\n/gm, isNeeded) };
    });
  },
};

/** The text of all sources in a folder but those that are generated. */
async function textOf(dir) {
  const names = (await readdir(dir, { recursive: true })).filter((name) => /\.tsx?$/.test(name) && !name.startsWith("generated"));
  return (await Promise.all(names.map((name) => readFile(join(dir, name), "utf8")))).join("\n");
}

const options = {
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx" },
  entryNames: "assets/[name]-[hash]",
  outdir: dist,
  write: false,
  alias: { "@baton/sdk": join(sdk, "index.ts") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: [join(here, "src/jsx.ts")],
  // Where it has a word about elements, that of tsconfig.json would count.
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, useDefineForClassFields: true } },
  legalComments: "none",
  logLevel: "warning",
  plugins: [trim, pack],
};
await mkdir(join(dist, "assets"), { recursive: true });
if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
