// Joins the parts: finds the server, starts it, shows its state.

import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";

import { Manuscript } from "./chat/context";
import { ChatView } from "./chat/view";
import { ServerClient } from "./client";
import { messageOf, registerCommands } from "./commands";
import { EnvironmentError, ManagedEnvironment } from "./environment";
import { PaperText, SCHEME } from "./paperText";
import type { ServerStatus } from "./protocol";
import { findServer, machine } from "./python";
import { chosenPython, onChoice } from "./pythonExtension";
import { changesStart, interpreter, serverCommand } from "./settings";
import { StatusItem } from "./statusItem";

class Extension {
  private readonly log = vscode.window.createOutputChannel("AstroResearch", { log: true });
  private readonly item = new StatusItem();
  private readonly manuscript = new Manuscript();
  private readonly managed: ManagedEnvironment;
  private readonly chat: ChatView;
  private readonly papers: PaperText;
  private server: ServerClient | undefined;
  /** Starts and stops follow one another. */
  private work: Promise<void> = Promise.resolve();

  constructor(private readonly context: vscode.ExtensionContext) {
    this.managed = new ManagedEnvironment(context.globalStorageUri.fsPath, context.extensionPath);
    this.papers = new PaperText(() => this.running());
    this.chat = new ChatView({
      client: () => (this.server?.running ? this.server : undefined),
      manuscript: this.manuscript,
      state: context.workspaceState,
      extensionUri: context.extensionUri,
      log: this.log,
      showQuote: (place, quote) => this.papers.show(place, quote),
    });
  }

  activate(): void {
    const { subscriptions } = this.context;
    subscriptions.push(
      this.log,
      this.item,
      this.manuscript,
      this.chat,
      this.papers,
      vscode.window.registerWebviewViewProvider(ChatView.id, this.chat, { webviewOptions: { retainContextWhenHidden: true } }),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this.papers),
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.restart()),
      vscode.workspace.onDidChangeConfiguration((event) => changesStart(event) && void this.restart()),
      registerCommands({
        client: () => this.running(),
        chat: this.chat,
        manuscript: this.manuscript,
        secrets: this.context.secrets,
        log: this.log,
        restart: () => this.restart(),
        createEnvironment: () => this.createEnvironment(),
      }),
    );
    void this.restart().then(async () => {
      const listening = await onChoice(() => void this.restart());
      if (listening) subscriptions.push(listening);
    });
  }

  private running(): ServerClient {
    if (!this.server?.running) throw new Error("The server does not run. Start it with “AstroResearch: Restart Server”; the log says why it stopped.");
    return this.server;
  }

  restart(): Promise<void> {
    this.work = this.work.then(async () => {
      await this.server?.stop();
      this.server = undefined;
      await this.start().catch((error: unknown) => this.failed(`The server could not be started: ${messageOf(error)}`));
    });
    return this.work;
  }

  private async start(): Promise<void> {
    this.setState("starting");
    const found = await findServer(
      {
        command: serverCommand(),
        interpreter: interpreter(),
        chosen: await chosenPython(this.log),
        managed: await this.managed.python(),
      },
      machine,
    );
    if ("failed" in found) return this.missing(found.failed, found.tried);
    const { server } = found;
    this.log.info(`Server (${server.origin}): ${[server.command, ...server.args].join(" ")}`);
    this.server = new ServerClient(this.context, server, this.log, {
      permission: (request, token) => this.chat.permission(request, token),
      question: (request, token) => this.chat.question(request, token),
      onEvent: (event) => this.chat.onEvent(event),
      onStatus: () => void this.refresh(),
      onState: (state) => this.onState(state),
    });
    await this.server.start();
    await this.refresh();
    if (server.origin === "the managed environment" && (await this.managed.outdated())) void this.offerUpdate();
  }

  private onState(state: State): void {
    if (state === State.Running) {
      this.setState("running");
      // The client counts as running only after this event.
      setImmediate(() => void this.chat.onServerRunning());
    } else if (state === State.Stopped) {
      this.setState("stopped");
      this.chat.onServerGone();
    }
  }

  private setState(server: "starting" | "running" | "stopped" | "missing"): void {
    this.item.setState(server);
    this.chat.setStatus({ server });
  }

  private async refresh(): Promise<void> {
    if (!this.server?.running) return;
    try {
      const status = await this.server.request<ServerStatus>("astroresearch/status", {});
      this.item.setStatus(status);
      this.chat.setStatus({ model: this.item.model });
    } catch (error) {
      this.log.warn(`The server did not tell its status: ${messageOf(error)}`);
    }
  }

  private failed(message: string): void {
    this.setState("stopped");
    this.log.error(message);
    void vscode.window.showErrorMessage(message, "Show Log", "Restart").then((choice) => {
      if (choice === "Show Log") this.log.show();
      if (choice === "Restart") void this.restart();
    });
  }

  private missing(message: string, tried: string[]): void {
    this.setState("missing");
    this.log.error([message, ...tried.map((one) => `  ${one}`)].join("\n"));
    const create = "Create Environment";
    const choose = "Set Interpreter";
    void vscode.window.showErrorMessage(`${message} The extension can make an environment of its own.`, create, choose, "Show Log").then((choice) => {
      if (choice === create) void vscode.commands.executeCommand("astroresearch.createEnvironment");
      if (choice === choose) void vscode.commands.executeCommand("workbench.action.openSettings", "astroresearch.interpreter");
      if (choice === "Show Log") this.log.show();
    });
  }

  private async offerUpdate(): Promise<void> {
    const choice = await vscode.window.showInformationMessage("The extension brings a newer server than its managed environment has.", "Update", "Later");
    if (choice === "Update") await vscode.commands.executeCommand("astroresearch.createEnvironment");
  }

  private async createEnvironment(): Promise<void> {
    await this.server?.stop();
    this.server = undefined;
    const options = { location: vscode.ProgressLocation.Notification, title: "AstroResearch", cancellable: true };
    try {
      await vscode.window.withProgress(options, (progress, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() => abort.abort());
        return this.managed.create(machine, {
          step: (message) => progress.report({ message }),
          line: (line) => this.log.info(line),
          signal: abort.signal,
        });
      });
    } catch (error) {
      this.setState("missing");
      if ((error as Error).name === "AbortError") return;
      const hint = error instanceof EnvironmentError ? error.hint : "";
      this.log.error(messageOf(error));
      const choice = await vscode.window.showErrorMessage(`${messageOf(error)} ${hint}`.trim(), "Try Again", "Show Log");
      if (choice === "Try Again") await this.createEnvironment();
      if (choice === "Show Log") this.log.show();
      return;
    }
    await this.restart();
  }

  async stop(): Promise<void> {
    await this.server?.stop();
  }
}

let extension: Extension | undefined;

export function activate(context: vscode.ExtensionContext): void {
  extension = new Extension(context);
  extension.activate();
}

export function deactivate(): Promise<void> | undefined {
  return extension?.stop();
}
