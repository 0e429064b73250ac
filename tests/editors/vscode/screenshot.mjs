// Takes the README's picture from the real thing: `node screenshot.mjs [DEMO_FOLDER [OUT]]`.
// DEMO_FOLDER is what `astroresearch demo` leaves (astroresearch-demo); needs install.sh, and the .vsix of `make vsix`.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { ROOT, Workbench } from "./workbench.mjs";

const QUESTION = process.env.QUESTION ?? "What keeps the gas in the core of Perseus from cooling?";
const demo = path.resolve(process.argv[2] ?? path.join(ROOT, "astroresearch-demo"));
const out = path.resolve(process.argv[3] ?? path.join(ROOT, "docs", "images", "timeline.png"));
const extension = path.join(ROOT, "vscode-extension");
const { version } = JSON.parse(fs.readFileSync(path.join(extension, "package.json"), "utf8"));
const state = fs.mkdtempSync(path.join(os.tmpdir(), "astroresearch-picture-"));
const nowhere = "http://127.0.0.1:9";

const bench = await Workbench.start({
  workspace: path.join(demo, "manuscript"),
  state,
  vsix: path.join(extension, `astroresearch-${version}.vsix`),
  settings: { "astroresearch.interpreter": path.join(ROOT, ".venv", "bin", "python"), "editor.fontSize": 13 },
  env: {
    ASTRORESEARCH_HOME: path.join(demo, "home"),
    ...Object.fromEntries(["ADS", "ARXIV", "SESAME", "SIMBAD"].map((name) => [`ASTRORESEARCH_${name}_URL`, nowhere])),
  },
  width: 1360,
  height: 860,
  scale: 1.5,
});
try {
  const { page, chat } = bench;
  await bench.openFile("main.tex");
  await bench.openChat();
  // A wider side bar: drag its edge.
  const edge = await page.locator(".part.sidebar").boundingBox();
  await page.mouse.move(edge.x + edge.width, 500);
  await page.mouse.down();
  await page.mouse.move(edge.x + 560, 500, { steps: 8 });
  await page.mouse.up();
  await bench.ask(QUESTION);
  await chat.locator(".turn:not([data-status=running]) .quotes .citation").first().waitFor({ timeout: 60_000 });
  await page.mouse.move(900, 600);
  await page.locator(".monaco-editor .view-line").first().click();
  await chat.locator("main.timeline").evaluate((log) => (log.scrollTop = 0));
  await page.waitForTimeout(1_000); // tool tips fade
  await bench.screenshot(out);
  console.log(path.relative(process.cwd(), out));
} catch (error) {
  await bench.screenshot(path.join(ROOT, "test-results", "vscode", "failed-picture.png"));
  throw error;
} finally {
  await bench.close();
  fs.rmSync(state, { recursive: true, force: true });
}
process.exit(0);
