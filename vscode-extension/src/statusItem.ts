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
    const { model } = this.status;
    return model?.ok && model.name ? model.name : "no model: quotes from your library";
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
      const { model, ads, library, embedder, problems = [] } = this.status;
      for (const [name, part] of Object.entries({ Model: model, ADS: ads, Library: library, "Search by meaning": embedder })) {
        if (part?.text) lines.push(`${name}: ${part.text}`);
      }
      for (const problem of problems) lines.push(`⚠ ${typeof problem === "string" ? problem : problem.message}`);
    }
    return lines.join("\n");
  }
}
