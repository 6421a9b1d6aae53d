// Bundles the page into dist/: one script, one style, hashed names, each beside its gzip; and index.html that names them.
// With --watch it goes on doing so. The last line says how large it is; too large is an error.

import { build, context } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, process.env.BATON_PAGE_DIST ?? "dist");
const GZIP_BYTES_MAX = 90_000;

const pack = {
  name: "pack",
  setup(bundler) {
    bundler.onStart(() => rm(join(dist, "assets"), { recursive: true, force: true }));
    bundler.onEnd(async (result) => {
      if (result.errors.length > 0) return;
      const names = await readdir(join(dist, "assets"));
      await copyFile(join(here, "src/icon.svg"), join(dist, "assets/icon.svg"));
      let size = 0;
      for (const name of names) {
        const zipped = gzipSync(await readFile(join(dist, "assets", name)), { level: 9 });
        await writeFile(join(dist, "assets", `${name}.gz`), zipped);
        size += zipped.length;
      }
      const named = (end) => `/assets/${names.find((name) => name.endsWith(end))}`;
      const html = await readFile(join(here, "index.html"), "utf8");
      await writeFile(join(dist, "index.html"), html.replace("{{script}}", named(".js")).replace("{{style}}", named(".css")));
      console.log(`page: ${size} bytes of script and style in gzip (at most ${GZIP_BYTES_MAX})`);
      if (size > GZIP_BYTES_MAX) throw new Error(`the page is too large: ${size} > ${GZIP_BYTES_MAX}`);
    });
  },
};

const options = {
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx" },
  entryNames: "assets/[name]-[hash]",
  outdir: dist,
  alias: { "@baton/sdk": join(here, "../sdk/typescript/src/index.ts") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  plugins: [pack],
};
await mkdir(join(dist, "assets"), { recursive: true });
if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
