// Production builds of the app in a folder by every bundler: node build.mjs FOLDER. Its main.js imports "webinfer-player".
import { build as esbuild } from "esbuild";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { build as vite } from "vite";
import webpack from "webpack";

const folder = process.argv[2];
const entry = join(folder, "main.js");
const page = (type) => `<!doctype html><title>app</title><link rel="icon" href="data:,"><script ${type} src="main.js"></script>`;

await vite({ root: folder, base: "./", logLevel: "error", build: { outDir: "vite", assetsInlineLimit: 0 } });

await new Promise((resolve, reject) => {
  const output = { path: join(folder, "webpack"), filename: "main.js" };
  webpack({ mode: "production", context: folder, entry, output, performance: false }, (error, stats) => {
    const problems = error ? [error] : stats.toJson({ all: false, errors: true, warnings: true });
    if (error || problems.errors.length || problems.warnings.length) reject(new Error(JSON.stringify(problems)));
    else resolve();
  });
});
writeFileSync(join(folder, "webpack", "index.html"), page(""));

for (const format of ["esm", "iife"]) {
  const outfile = join(folder, `esbuild-${format}`, "main.js");
  await esbuild({ entryPoints: [entry], bundle: true, minify: true, format, outfile, logLevel: "error" });
  writeFileSync(join(folder, `esbuild-${format}`, "index.html"), page(format === "esm" ? 'type="module"' : ""));
}
