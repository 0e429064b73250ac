// A real VS Code workbench: code-server on a free port of 127.0.0.1 with fresh state, driven in a headless Chromium.

import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const { chromium } = createRequire(path.join(ROOT, "vscode-extension", "package.json"))("playwright-core");
const CODE_SERVER = path.join(ROOT, ".cache", "code-server", "node_modules", "code-server", "out", "node", "entry.js");

/** Nothing that asks the network, nothing that covers the window; hot exit and auto-save would carry edits over. */
const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.enableExperiments": false,
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.colorTheme": "Default Light Modern",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "git.enabled": false,
  "chat.commandCenter.enabled": false,
  "chat.disableAIFeatures": true,
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
  "editor.wordWrap": "on",
};
const CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class Workbench {
  /**
   * @param {{workspace: string, state: string, vsix: string, settings?: object, env?: object, width?: number, height?: number, scale?: number}} options
   *   `state`: an empty folder of this run; `env`: what the extension and its server see beside this process's environment.
   */
  static async start({ workspace, state, vsix, settings = {}, env = {}, width = 1280, height = 800, scale = 1 }) {
    const bench = new Workbench();
    bench.state = state;
    fs.mkdirSync(path.join(state, "data", "User"), { recursive: true });
    fs.writeFileSync(path.join(state, "data", "User", "settings.json"), JSON.stringify({ ...SETTINGS, ...settings }));
    fs.writeFileSync(path.join(state, "config.yaml"), "");
    const where = ["--config", path.join(state, "config.yaml"), "--user-data-dir", path.join(state, "data"), "--extensions-dir", path.join(state, "extensions")];
    const variables = { ...process.env, XDG_CONFIG_HOME: path.join(state, "xdg"), XDG_DATA_HOME: path.join(state, "xdg-data"), ...env };
    delete variables.VSCODE_IPC_HOOK_CLI;
    await finished(spawn(process.execPath, [CODE_SERVER, ...where, "--install-extension", vsix], { env: variables, stdio: ["ignore", "pipe", "pipe"] }));
    const port = await freePort();
    const flags = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
    const quiet = ["--disable-getting-started-override", "--disable-file-downloads", "--disable-proxy"];
    bench.output = fs.openSync(path.join(state, "code-server.log"), "w");
    // A group of its own, so that its extension hosts end with it.
    bench.server = spawn(process.execPath, [CODE_SERVER, ...where, ...flags, ...quiet, workspace], { env: variables, detached: true, stdio: ["ignore", bench.output, bench.output] });
    process.on("exit", () => bench.kill());
    await reachable(`http://127.0.0.1:${port}/healthz`);
    bench.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: CHROMIUM });
    const context = await bench.browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale });
    bench.page = await context.newPage();
    bench.requests = [];
    bench.page.on("request", (request) => bench.requests.push(request.url()));
    await bench.page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`, { waitUntil: "domcontentloaded" });
    await bench.page.waitForSelector(".monaco-workbench .activitybar", { timeout: 60_000 });
    return bench;
  }

  kill() {
    try {
      process.kill(-this.server.pid, "SIGKILL");
    } catch {
      // it has ended
    }
  }

  async close() {
    await this.browser?.close();
    this.kill();
  }

  /** The document inside of the chat's webview. */
  get chat() {
    return this.page.frameLocator("iframe.webview").first().frameLocator("iframe#active-frame");
  }

  async openFile(name) {
    await this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first().dblclick({ timeout: 30_000 });
    await this.page.locator(".monaco-editor .view-line").first().waitFor({ timeout: 30_000 });
  }

  async openChat() {
    await this.page.locator(".activitybar [aria-label^='AstroResearch']").first().click({ timeout: 30_000 });
    await this.chat.locator("textarea").waitFor({ timeout: 60_000 });
  }

  async openExplorer() {
    await this.page.locator(".activitybar [aria-label^='Explorer']").first().click({ timeout: 30_000 });
  }

  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input[type=text]");
    await input.waitFor({ state: "visible", timeout: 10_000 });
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title.replace(/^.*: /, "") }).first().waitFor({ timeout: 10_000 });
    await this.page.keyboard.press("Enter");
  }

  async ask(text) {
    const input = this.chat.locator("footer textarea");
    await this.chat.locator("button.send:enabled").waitFor({ timeout: 30_000 });
    await input.fill(text);
    await input.press("Enter");
  }

  /** The menu of code actions at the cursor; now and then the first press shows none. */
  async codeActions() {
    const rows = this.page.locator(".action-widget .monaco-list-row.action");
    for (let attempt = 0; attempt < 4; attempt++) {
      await this.page.keyboard.press("Control+.");
      try {
        await rows.first().waitFor({ timeout: 4_000 });
        return rows.allTextContents();
      } catch {
        // once more
      }
    }
    throw new Error("no menu of code actions");
  }

  screenshot(file) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    return this.page.screenshot({ path: file });
  }
}

function finished(child) {
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`${child.spawnargs.slice(-2).join(" ")}: ${output}`))));
  });
}

async function reachable(url) {
  for (const until = Date.now() + 60_000; Date.now() < until; ) {
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      // not yet
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}

/** Runs named steps and prints one line of JSON each; the first that fails ends the run, with a picture. */
export async function play(steps, { bench, pictures }) {
  for (const [name, run] of Object.entries(steps)) {
    const start = Date.now();
    try {
      const data = await run();
      console.log(JSON.stringify({ step: name, ok: true, seconds: (Date.now() - start) / 1000, ...(data === undefined ? {} : { data }) }));
    } catch (error) {
      const picture = path.join(pictures, `failed-${name.replace(/\W+/g, "-")}.png`);
      await bench.screenshot(picture).catch(() => undefined);
      console.log(JSON.stringify({ step: name, ok: false, error: String(error.message ?? error).slice(0, 2000), picture }));
      return false;
    }
  }
  return true;
}
