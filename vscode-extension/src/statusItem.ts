// The item in the status bar: whether the server runs, what it uses, what is missing.

import * as vscode from "vscode";

import type { ServerStatus } from "./protocol";

const ICONS = { starting: "$(loading~spin)", running: "$(telescope)", stopped: "$(error)", missing: "$(warning)" };

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("astroresearch.status", vscode.StatusBarAlignment.Right, 50);
  private state: keyof typeof ICONS = "starting";
  private status: ServerStatus = {};

  constructor() {
    this.item.name = "AstroResearch";
    this.draw();
    this.item.show();
  }

  setState(state: keyof typeof ICONS): void {
    this.state = state;
    this.draw();
  }

  setStatus(status: ServerStatus): void {
    this.status = status;
    this.draw();
  }

  /** For people: the model in use. */
  get model(): string {
    return nameOf(this.status.model) || "no model: quotes from your library";
  }

  dispose(): void {
    this.item.dispose();
  }

  private draw(): void {
    const { state, item } = this;
    item.text = `${ICONS[state]} AstroResearch`;
    item.command = { running: "astroresearch.openChat", starting: "astroresearch.showLog", stopped: "astroresearch.restart", missing: "astroresearch.createEnvironment" }[state];
    item.backgroundColor = state === "stopped" || state === "missing" ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    item.tooltip = this.tooltip();
    item.accessibilityInformation = { label: `AstroResearch: ${state}` };
  }

  private tooltip(): string {
    const says = { starting: "starting", running: "running", stopped: "stopped; click to start it again", missing: "no server found; click to create an environment" };
    const lines = [`Server ${this.status.version ?? ""}: ${says[this.state]}`.replace(" :", ":")];
    if (this.state === "running") {
      lines.push(`Model: ${this.model}`);
      const papers = (this.status.library as { papers?: number } | undefined)?.papers;
      if (papers !== undefined) lines.push(`Library: ${papers === 1 ? "1 paper" : `${papers} papers`}`);
      for (const problem of this.status.problems ?? []) lines.push(`⚠ ${nameOf(problem) || JSON.stringify(problem)}`);
    }
    return lines.join("\n");
  }
}

/** A name or a sentence, from a string or from an object that has one. */
function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  const { name, message } = (value ?? {}) as { name?: unknown; message?: unknown };
  return typeof name === "string" ? name : typeof message === "string" ? message : "";
}
