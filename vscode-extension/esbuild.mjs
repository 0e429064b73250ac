// Bundles the extension (Node) and its webview (browser); --tests bundles the unit tests, --watch rebuilds on change.
import esbuild from "esbuild";
import fs from "node:fs";

const has = (flag) => process.argv.includes(flag);
const common = { bundle: true, target: "es2022", sourcemap: false, legalComments: "none", logLevel: "warning" };

const extension = {
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  platform: "node",
  format: "cjs",
  external: ["vscode"],
  minify: !has("--watch"),
};

const webview = {
  ...common,
  entryPoints: { chat: "webview/main.ts" },
  outdir: "dist/webview",
  platform: "browser",
  format: "iife",
  // KaTeX's style sheet names three formats of each font; every browser that VS Code runs on reads the first.
  loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
  assetNames: "fonts/[name]",
  minify: !has("--watch"),
};

const tests = {
  ...common,
  entryPoints: fs.readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
  outdir: "dist-test",
  outExtension: { ".js": ".cjs" },
  platform: "node",
  format: "cjs",
};

if (has("--tests")) {
  fs.rmSync("dist-test", { recursive: true, force: true });
  await esbuild.build(tests);
} else if (has("--watch")) {
  for (const options of [extension, webview]) await (await esbuild.context(options)).watch();
} else {
  fs.rmSync("dist", { recursive: true, force: true });
  await Promise.all([extension, webview].map((options) => esbuild.build(options)));
}
