// The main job in a real VS Code: `node main_job.mjs WORKSPACE STATE VSIX PYTHON PICTURES`. One line of JSON a step.

import path from "node:path";

import { play, Workbench } from "./workbench.mjs";

const [workspace, state, vsix, python, pictures] = process.argv.slice(2);
const bench = await Workbench.start({ workspace, state, vsix, settings: { "astroresearch.interpreter": python } });
const { page, chat } = bench;

const steps = {
  "a .tex file opens and the server runs": async () => {
    await bench.openFile("main.tex");
    await page.locator(".statusbar-item [aria-label*='AstroResearch: running'], .statusbar-item[aria-label*='AstroResearch: running']").first().waitFor({ timeout: 60_000 });
  },
  "an undefined key gets a squiggle": () => page.locator(".monaco-editor .squiggly-warning").first().waitFor({ timeout: 20_000 }),
  "a PDF is added from the explorer": async () => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "cooling.pdf" }).first().click({ button: "right" });
    await page.locator(".context-view .action-label, .monaco-menu .action-label", { hasText: "Add PDFs to the Library" }).first().hover();
    await page.keyboard.press("Enter"); // a fresh menu ignores the mouse's button for a moment
    await page.locator(".notification-toast", { hasText: "in your library" }).waitFor({ timeout: 60_000 });
  },
  "the chat opens": async () => {
    await page.locator(".monaco-editor .view-line", { hasText: "Perseus" }).first().click();
    await bench.openChat();
    await chat.locator(".chip", { hasText: "main.tex" }).waitFor({ timeout: 10_000 });
  },
  "the timeline grows by three tools": async () => {
    await bench.ask("Does the core of Perseus cool?");
    await chat.locator(".turn .user", { hasText: "Does the core of Perseus cool?" }).waitFor({ timeout: 20_000 });
    await chat.locator(".tool.completed").nth(2).waitFor({ timeout: 60_000 });
    return chat.locator(".tool .tool-title").allTextContents();
  },
  "a permission is asked and takes no answer at once": async () => {
    const card = chat.locator(".permission.asks");
    await card.waitFor({ timeout: 60_000 });
    const buttons = card.locator("button");
    const atOnce = await buttons.evaluateAll((all) => all.map((one) => one.disabled));
    const focused = await card.evaluate((node) => node.contains(document.activeElement));
    await bench.screenshot(path.join(pictures, "permission.png"));
    return { atOnce, focused, detail: await card.locator("pre.detail").textContent(), labels: await buttons.allTextContents() };
  },
  "once it is allowed, the edit is made": async () => {
    await chat.locator(".permission.asks button[data-choice=once]:enabled").click({ timeout: 5_000 });
    await page.locator(".monaco-editor .view-line", { hasText: "The hot gas" }).waitFor({ timeout: 30_000 });
  },
  "the answer has math and no image": async () => {
    await chat.locator(".message .katex").first().waitFor({ timeout: 60_000 });
    await chat.locator(".message a.link", { hasText: "[image: chart]" }).waitFor();
    return { images: await chat.locator("img").count(), loaded: bench.requests.filter((url) => url.includes("chart.png")) };
  },
  "a quote is verified, and a click shows its page": async () => {
    const quote = chat.locator(".quotes .citation.verified").first();
    await quote.waitFor({ timeout: 30_000 });
    await bench.screenshot(path.join(pictures, "timeline.png"));
    await quote.locator("button.quote").click();
    await page.locator(".tab.active", { hasText: /pages? \d/ }).waitFor({ timeout: 20_000 });
    await page.locator(".monaco-editor .view-line", { hasText: "Perseus" }).first().waitFor({ timeout: 20_000 });
    await bench.screenshot(path.join(pictures, "quote.png"));
    if (await page.locator(".notification-toast", { hasText: "was not found" }).count()) throw new Error("the quote was not found");
    return quote.locator(".source").textContent();
  },
  "a question that runs can be stopped": async () => {
    await bench.ask("wait for me");
    await chat.locator("button.stop:visible").click({ timeout: 20_000 });
    await chat.locator(".turn[data-status=cancelled]").waitFor({ timeout: 20_000 });
  },
  "after a restart the session is there again": async () => {
    await bench.command("AstroResearch: Restart Server");
    await chat.locator(".turn .user", { hasText: "Does the core of Perseus cool?" }).waitFor({ timeout: 30_000 });
    await chat.locator(".quotes .citation.verified").first().waitFor({ timeout: 30_000 });
    await chat.locator("button.send:enabled").waitFor({ timeout: 30_000 });
    return chat.locator(".turn").count();
  },
  "nobody outside was asked": async () =>
    bench.requests.filter((url) => /^(https?|wss?):/.test(url)).map((url) => new URL(url).hostname).filter((host) => host !== "127.0.0.1" && !host.endsWith(".vscode-resource.vscode-cdn.net")),
};

const fine = await play(steps, { bench, pictures });
await bench.close();
process.exit(fine ? 0 : 1);
