// The chat in the sidebar: keeps the session's events, hands them to the webview and the user's wishes to the server.

import { randomBytes } from "node:crypto";

import * as vscode from "vscode";
import { type CancellationToken, LSPErrorCodes, ResponseError } from "vscode-languageclient/node";

import type { Askers, ServerClient } from "../client";
import type { PermissionRequest, SendResult, SessionRecord, TimelineEvent, UserQuestion } from "../protocol";
import { contextLabel, type Manuscript } from "./context";
import type { ChatState, FromWebview, ToWebview } from "./messages";

/** Events that are shown at first; earlier ones on request. */
const TAIL = 2_000;
const CURRENT = "currentSession";

type Pending = (answer: { choice: string; text: string } | undefined) => void;

export interface ChatPorts {
  /** The server, or undefined while it does not run. */
  client(): ServerClient | undefined;
  manuscript: Manuscript;
  state: vscode.Memento;
  extensionUri: vscode.Uri;
  log: vscode.LogOutputChannel;
  showQuote(place: { paper: string; page: number }, quote: string): Promise<void>;
}

export class ChatView implements vscode.WebviewViewProvider, Askers, vscode.Disposable {
  static readonly id = "astroresearch.chat";
  private view: vscode.WebviewView | undefined;
  private loaded = false;
  private waiting: ToWebview[] = [];
  private sessionId = "";
  private title = "";
  private events: TimelineEvent[] = [];
  private earlier = false;
  /** Which session each turn belongs to, and whether we asked for a new one that has not said its name yet. */
  private owners = new Map<string, string>();
  private starting = false;
  private sends = new Set<vscode.CancellationTokenSource>();
  private queued: string[] = [];
  private asked = new Map<string, PermissionRequest | UserQuestion>();
  private pending = new Map<string, Pending>();
  private status: Pick<ChatState, "server" | "model"> = { server: "starting", model: "" };
  private readonly disposables: vscode.Disposable[] = [];

  constructor(private readonly ports: ChatPorts) {
    this.sessionId = ports.state.get<string>(CURRENT, "");
    this.disposables.push(ports.manuscript.onDidChange(() => this.sendState()));
  }

  // --- the webview -----------------------------------------------------------------------------------------------

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.loaded = false;
    const root = vscode.Uri.joinPath(this.ports.extensionUri, "dist", "webview");
    view.webview.options = { enableScripts: true, localResourceRoots: [root] };
    view.webview.onDidReceiveMessage((message: FromWebview) => void this.guard(this.take(message)));
    view.onDidDispose(() => {
      this.view = undefined;
      this.loaded = false;
    });
    view.webview.html = page(view.webview, root);
  }

  private post(message: ToWebview): void {
    if (this.view && this.loaded) void this.view.webview.postMessage(message);
    else if (message.type === "focus") this.waiting = [message]; // everything else is told anew when it has loaded
  }

  private redraw(): void {
    const { sessionId, title, events, earlier } = this;
    this.post({ type: "session", sessionId, title, events, earlier });
    for (const asked of this.asked.values()) this.post({ type: "ask", asked });
    this.sendState();
  }

  private sendState(): void {
    if (this.view) this.view.description = this.title;
    const context = contextLabel(this.ports.manuscript.current());
    this.post({ type: "state", state: { ...this.status, context, queued: this.queued } });
  }

  private async take(message: FromWebview): Promise<void> {
    switch (message.type) {
      case "ready":
        this.loaded = true;
        this.redraw();
        for (const one of this.waiting.splice(0)) this.post(one);
        return;
      case "send":
        return this.send(message);
      case "stop":
        return this.stop();
      case "earlier":
        return this.load(this.sessionId, { all: true });
      case "gap":
        return this.fill(message.seq + 1);
      case "answer":
        return this.answer(message.id, message.choice, message.text);
      case "quote":
        return this.ports.showQuote({ paper: message.paperId, page: message.page }, message.quote);
      case "cite":
        return void (await vscode.commands.executeCommand("_astroresearch.insertCitation", message.paperId));
      case "link":
        return void (await this.openLink(message.url));
      case "copy":
        return void (await vscode.env.clipboard.writeText(message.text));
      case "command":
        return void (await vscode.commands.executeCommand(`astroresearch.${message.command}`));
    }
  }

  /** Only the web, only on a click; VS Code asks before it leaves. */
  private async openLink(url: string): Promise<void> {
    const uri = vscode.Uri.parse(url, true);
    if (["https", "http", "mailto"].includes(uri.scheme)) await vscode.env.openExternal(uri);
  }

  private async guard(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.ports.log.error(String(error instanceof Error ? (error.stack ?? error.message) : error));
      void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
    }
  }

  // --- what others tell us ---------------------------------------------------------------------------------------

  setStatus(status: Partial<Pick<ChatState, "server" | "model">>): void {
    this.status = { ...this.status, ...status };
    this.sendState();
  }

  onEvent(event: TimelineEvent): void {
    if (event.type === "session" && event.agent === "main") this.onTurn(event);
    if (this.owners.get(event.turnId) !== this.sessionId) return; // of a session that is not shown; the server keeps it
    this.events.push(event);
    this.post({ type: "events", events: [event] });
  }

  private onTurn({ turnId, sessionId, title, question }: Extract<TimelineEvent, { type: "session" }>): void {
    this.owners.set(turnId, sessionId);
    if (this.starting && !this.sessionId) this.remember(sessionId);
    if (sessionId !== this.sessionId) return;
    this.starting = false;
    this.title = title;
    if (question) this.queued = without(this.queued, question);
    else this.queued.shift();
    this.sendState();
  }

  /** The server runs (again): shows the session that was open. */
  async onServerRunning(): Promise<void> {
    if (this.sessionId && !this.events.length) await this.guard(this.load(this.sessionId));
  }

  /** The server is gone: whatever it asked or ran is over; the next start reads the session anew. */
  onServerGone(): void {
    for (const settle of this.pending.values()) settle(undefined);
    this.asked.clear();
    this.queued = [];
    this.post({ type: "interrupted" });
    this.events = [];
    this.sendState();
  }

  permission(request: PermissionRequest, token: CancellationToken): Promise<{ id: string; choice: string; reason?: string } | null> {
    return this.ask(request, token, ({ choice, text }) => ({ id: request.id, choice, ...(text ? { reason: text } : {}) }));
  }

  question(request: UserQuestion, token: CancellationToken): Promise<{ id: string; answer: string } | null> {
    return this.ask(request, token, ({ choice, text }) => ({ id: request.id, answer: text || choice }));
  }

  private ask<T>(request: PermissionRequest | UserQuestion, token: CancellationToken, answer: (said: { choice: string; text: string }) => T): Promise<T | null> {
    return new Promise((resolve) => {
      const settle: Pending = (said) => {
        this.pending.delete(request.id);
        this.asked.delete(request.id);
        if (!said) this.post({ type: "withdrawn", id: request.id });
        resolve(said ? answer(said) : null);
      };
      this.pending.set(request.id, settle);
      this.asked.set(request.id, request);
      token.onCancellationRequested(() => settle(undefined));
      this.post({ type: "ask", asked: request });
      if (!this.view?.visible) void this.reveal(true);
    });
  }

  private async answer(id: string, choice: string, text: string): Promise<void> {
    const settle = this.pending.get(id);
    if (settle) settle({ choice, text });
    else await this.ports.client()?.request("astroresearch/chat/answer", { id, choice, text });
  }

  // --- sessions --------------------------------------------------------------------------------------------------

  async reveal(preserveFocus = false): Promise<void> {
    if (this.view) this.view.show(preserveFocus);
    else await vscode.commands.executeCommand(`${ChatView.id}.focus`);
  }

  async focus(text?: string): Promise<void> {
    await this.reveal();
    this.post(text === undefined ? { type: "focus" } : { type: "focus", text });
  }

  newSession(): void {
    this.remember("");
    this.title = "";
    this.events = [];
    this.earlier = false;
    this.starting = false;
    this.redraw();
  }

  private remember(sessionId: string): void {
    this.sessionId = sessionId;
    void this.ports.state.update(CURRENT, sessionId || undefined);
  }

  /** Shows a stored session, its newest events first. */
  async load(sessionId: string, { all = false } = {}): Promise<void> {
    const client = this.ports.client();
    if (!client) return;
    const session = await client.request<SessionRecord>("astroresearch/session/get", { sessionId }).catch(() => undefined);
    if (!session) return this.newSession(); // deleted meanwhile
    const params = all ? { sessionId, limit: 20_000 } : { sessionId, limit: TAIL, last: true };
    const { events } = await client.request<{ events: TimelineEvent[] }>("astroresearch/session/events", params);
    this.remember(sessionId);
    this.title = session.title;
    this.events = events;
    this.earlier = !all && events.length >= TAIL;
    this.redraw();
  }

  private async fill(fromSeq: number): Promise<void> {
    const client = this.ports.client();
    if (!client || !this.sessionId) return;
    const { events } = await client.request<{ events: TimelineEvent[] }>("astroresearch/session/events", { sessionId: this.sessionId, fromSeq });
    const known = new Map(this.events.map((event) => [event.seq, event]));
    for (const event of events) known.set(event.seq, event);
    this.events = [...known.values()].sort((a, b) => a.seq - b.seq);
    this.redraw();
  }

  get currentSession(): string {
    return this.sessionId;
  }

  // --- turns -----------------------------------------------------------------------------------------------------

  private async send(message: Extract<FromWebview, { type: "send" }>): Promise<void> {
    const refuse = (text: string, hint = "") => this.post({ type: "refused", text: message.text, message: text, hint });
    const client = this.ports.client();
    if (!client) return refuse("The server does not run.", "Restart it, or look into the log.");
    const source = new vscode.CancellationTokenSource();
    this.sends.add(source);
    this.starting = !this.sessionId;
    const context = message.withContext ? this.ports.manuscript.forServer() : undefined;
    const params = {
      text: message.text,
      mode: message.mode,
      ...(this.sessionId ? { sessionId: this.sessionId } : {}),
      ...(message.steer ? { steer: true } : {}),
      ...(context ? { context } : {}),
    };
    this.post({ type: "sent" });
    try {
      this.sent(message.text, await client.send(params, source.token));
    } catch (error) {
      if (error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled) return;
      refuse(error instanceof Error ? error.message : String(error), hintOf(error));
    } finally {
      this.sends.delete(source);
      source.dispose();
    }
  }

  private sent(text: string, result: SendResult): void {
    if (!result.queued) return;
    this.queued.push(text);
    this.sendState();
  }

  /** Stops the turn that runs, and drops what waits. */
  async stop(): Promise<void> {
    this.queued = [];
    this.sendState();
    if (this.sessionId) await this.ports.client()?.notify("astroresearch/chat/cancel", { sessionId: this.sessionId });
    else for (const source of this.sends) source.cancel(); // no event came yet: the session has no name
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
    for (const source of this.sends) source.cancel();
  }
}

function without(list: readonly string[], text: string): string[] {
  const place = list.indexOf(text);
  return place < 0 ? [...list] : list.toSpliced(place, 1);
}

function hintOf(error: unknown): string {
  const data = error instanceof ResponseError ? (error.data as { hint?: string } | undefined) : undefined;
  return data?.hint ?? "";
}

function page(webview: vscode.Webview, root: vscode.Uri): string {
  const nonce = randomBytes(18).toString("base64");
  const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(root, name)).toString();
  const policy = [
    "default-src 'none'",
    `img-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`,
    `style-src ${webview.cspSource} 'unsafe-inline'`, // KaTeX places its boxes by style attributes
    `script-src 'nonce-${nonce}'`,
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${file("chat.css")}">
<title>AstroResearch</title>
</head>
<body>
<div id="app"></div>
<script nonce="${nonce}" src="${file("chat.js")}"></script>
</body>
</html>`;
}
