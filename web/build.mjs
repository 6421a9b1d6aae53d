// Bundles the page into dist/: one script, one style, hashed names, each beside its gzip; and index.html that names them.
// With --watch it goes on doing so. The last line says how large it is; too large is an error.

import { build, context } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
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

/** Operations of the SDK that nobody calls here are left out: all of them are methods of one class, of which a bundler can leave out none. */
const called = {
  name: "called",
  setup(bundler) {
    bundler.onLoad({ filter: /sdk.typescript.src.generated.operations\.ts$/ }, async ({ path }) => {
      const folders = [join(here, "src"), join(path, "../..")];
      const files = (await Promise.all(folders.map((dir) => readdir(dir, { recursive: true }).then((names) => names.map((name) => join(dir, name)))))).flat();
      const own = files.filter((file) => /\.tsx?$/.test(file) && file !== path);
      const text = (await Promise.all(own.map((file) => readFile(file, "utf8")))).join("\n");
      let contents = await readFile(path, "utf8");
      for (const [, id] of contents.matchAll(/^ {2}(\w+): \{ id: /gm)) {
        if (new RegExp(`\\.${id}\\b`).test(text)) continue;
        contents = contents.replace(new RegExp(`^ {2}${id}: .*\n`, "m"), "").replace(new RegExp(`^ {2}${id}\\([^]*?^ {2}\\}\n`, "m"), "");
      }
      return { contents, loader: "ts", watchFiles: own };
    });
  },
};

const options = {
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx" },
  entryNames: "assets/[name]-[hash]",
  outdir: dist,
  write: false,
  alias: { "@baton/sdk": join(here, "../sdk/typescript/src/index.ts") },
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
  plugins: [called, pack],
};
await mkdir(join(dist, "assets"), { recursive: true });
if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
