// The language client: how the server is started, what we declare, and how the stream of a chat comes in.

import { randomUUID } from "node:crypto";

import * as vscode from "vscode";
import {
  type CancellationToken,
  type ClientCapabilities,
  type FeatureState,
  LanguageClient,
  type LanguageClientOptions,
  type LSPAny,
  ProgressType,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";

import type { Method, PermissionRequest, SendResult, TimelineEvent, UserQuestion } from "./protocol";
import type { Server } from "./python";
import { declaredKeys, explicitSettings, SECTION, storedSecrets } from "./settings";

/** What the server asks the user, and gets told. */
export interface Askers {
  permission(request: PermissionRequest, token: CancellationToken): Promise<{ id: string; choice: string; reason?: string } | null>;
  question(request: UserQuestion, token: CancellationToken): Promise<{ id: string; answer: string } | null>;
}

export interface Hooks extends Askers {
  onEvent(event: TimelineEvent): void;
  onState(state: State): void;
  onStatus(): void;
}

/** Declares `experimental.astroresearch`, so that the server sends us its timeline and its questions. */
class OwnCapabilities implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    const own = { astroresearch: { timeline: true, permission: true, askUser: true } };
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), ...own };
  }
  initialize(): void {}
  getState(): FeatureState {
    return { kind: "static" };
  }
  clear(): void {}
}

/** Actions of `_astroresearch.act` that `_astroresearch.show` shows. */
const OWN_VIEWS = new Set(["ask", "findCitations", "note"]);
const PROGRESS = new ProgressType<{ kind?: string; event?: TimelineEvent }>();

export class ServerClient {
  private readonly client: LanguageClient;
  private readonly keys: readonly string[];
  private readonly disposables: vscode.Disposable[] = [];

  constructor(
    private readonly context: vscode.ExtensionContext,
    server: Server,
    log: vscode.LogOutputChannel,
    private readonly hooks: Hooks,
  ) {
    this.keys = declaredKeys(context.extension.packageJSON);
    const executable = {
      command: server.command,
      args: server.args,
      // Not the workspace: nothing of it may be picked up by where the server happens to start.
      options: { cwd: context.globalStorageUri.fsPath, env: { ...process.env, PYTHONUTF8: "1" } },
    };
    this.client = new LanguageClient(SECTION, "AstroResearch", executable, this.options(log));
    this.client.registerFeature(new OwnCapabilities());
    this.disposables.push(this.client.onDidChangeState(({ newState }) => hooks.onState(newState)));
    this.client.onRequest("astroresearch/permission/request", (request: PermissionRequest, token) => hooks.permission(request, token));
    this.client.onRequest("astroresearch/user/ask", (request: UserQuestion, token) => hooks.question(request, token));
    for (const name of ["didChangeStatus", "didChangeLibrary"]) {
      this.client.onNotification(`astroresearch/${name}`, () => hooks.onStatus());
    }
    this.disposables.push(
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(SECTION)) void this.sendSettings();
      }),
    );
  }

  private options(log: vscode.LogOutputChannel): LanguageClientOptions {
    return {
      documentSelector: [
        { language: "latex", scheme: "file" },
        { language: "tex", scheme: "file" },
        { language: "bibtex", scheme: "file" },
        { pattern: "**/*.{tex,ltx,bib}", scheme: "file" },
      ],
      outputChannel: log,
      initializationOptions: () => ({ settings: this.settings(), trusted: vscode.workspace.isTrusted }),
      markdown: { isTrusted: false, supportHtml: false },
      middleware: {
        workspace: {
          configuration: (params) =>
            params.items.map(({ section, scopeUri }): LSPAny => {
              const scope = scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri);
              const settings = explicitSettings(this.keys, scope);
              if (!section || section === SECTION) return settings as LSPAny;
              return (settings[section.replace(`${SECTION}.`, "")] ?? null) as LSPAny;
            }),
        },
        // What code actions do is shown in views of ours where there is a better one than a message.
        executeCommand: (command, args, next) => {
          const [given] = args as [{ action?: string }?];
          const own = command === "_astroresearch.act" && OWN_VIEWS.has(given?.action ?? "");
          return own ? vscode.commands.executeCommand("_astroresearch.show", given) : next(command, args);
        },
        // Tokens that the server made, as for the turn of a question that had to wait.
        handleWorkDoneProgress: (token, params, next) => {
          const event = (params as { event?: TimelineEvent }).event;
          if (event) this.hooks.onEvent(event);
          next(token, params);
        },
      },
    };
  }

  private settings(): Record<string, unknown> {
    return explicitSettings(this.keys, vscode.workspace.workspaceFolders?.[0]?.uri);
  }

  private async sendSettings(): Promise<void> {
    if (!this.running) return;
    await this.client.sendNotification("workspace/didChangeConfiguration", { settings: { [SECTION]: this.settings() } });
  }

  get running(): boolean {
    return this.client.state === State.Running;
  }

  async start(): Promise<void> {
    await vscode.workspace.fs.createDirectory(this.context.globalStorageUri);
    await this.client.start();
    for (const [key, value] of await storedSecrets(this.context.secrets)) {
      await this.request("astroresearch/secrets/set", { key, value });
    }
  }

  async stop(): Promise<void> {
    for (const one of this.disposables) one.dispose();
    await this.client.dispose(2000).catch(() => undefined); // a server that is gone can't say goodbye
  }

  request<R>(method: Method, params: object, token?: vscode.CancellationToken): Promise<R> {
    return token ? this.client.sendRequest<R>(method, params, token) : this.client.sendRequest<R>(method, params);
  }

  notify(method: Method, params: object): Promise<void> {
    return this.client.sendNotification(method, params);
  }

  /** Sends a question; its events go to `hooks.onEvent` as they come. */
  async send(params: object, token: vscode.CancellationToken): Promise<SendResult> {
    const workDoneToken = randomUUID();
    const listening = this.client.onProgress(PROGRESS, workDoneToken, (value) => {
      if (value.event) this.hooks.onEvent(value.event);
      if (value.kind === "end") listening.dispose();
    });
    try {
      const result = await this.request<SendResult>("astroresearch/chat/send", { ...params, workDoneToken }, token);
      if (!result.queued) listening.dispose(); // a question that waits streams later, up to its `end`
      return result;
    } catch (error) {
      listening.dispose();
      throw error;
    }
  }

  /** A request whose progress is shown to the user in a notification with a cancel button. */
  withProgress<R>(title: string, method: Method, params: object): Promise<R> {
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    return Promise.resolve(
      vscode.window.withProgress(options, async (progress, token) => {
        const workDoneToken = randomUUID();
        let before = 0;
        const type = new ProgressType<{ message?: string; percentage?: number }>();
        const listening = this.client.onProgress(type, workDoneToken, ({ message, percentage }) => {
          const increment = percentage === undefined ? undefined : Math.max(0, percentage - before);
          before = percentage ?? before;
          progress.report({ ...(message ? { message } : {}), ...(increment === undefined ? {} : { increment }) });
        });
        try {
          return await this.request<R>(method, { ...params, workDoneToken }, token);
        } finally {
          listening.dispose();
        }
      }),
    );
  }
}
