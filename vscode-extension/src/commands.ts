// The commands of the palette. Each does one request and shows what came of it.

import * as vscode from "vscode";

import type { ChatView } from "./chat/view";
import { isManuscript, type Manuscript } from "./chat/context";
import type { ServerClient } from "./client";
import { authorsOf, placeOf } from "./paperText";
import type { Paper, SearchHit, SessionRecord } from "./protocol";
import type { SecretKey } from "./settings";

export interface CommandPorts {
  /** The running server; asks the user to start it, and throws, where there is none. */
  client(): ServerClient;
  chat: ChatView;
  manuscript: Manuscript;
  secrets: vscode.SecretStorage;
  log: vscode.LogOutputChannel;
  restart(): Promise<void>;
  createEnvironment(): Promise<void>;
}

/** The argument of `_astroresearch.act`. */
interface Act {
  action: string;
  query?: string;
  citeKey?: string;
  paper?: string;
  uri?: string;
}

export function registerCommands(ports: CommandPorts): vscode.Disposable {
  const commands: Record<string, (...args: never[]) => unknown> = {
    "astroresearch.openChat": () => ports.chat.focus(),
    "astroresearch.askAboutSelection": () => ports.chat.focus(selectionOfPaper()),
    "astroresearch.newSession": () => {
      ports.chat.newSession();
      return ports.chat.focus();
    },
    "astroresearch.sessions": () => sessions(ports),
    "astroresearch.stop": () => ports.chat.stop(),
    "astroresearch.searchPapers": () => searchPapers(ports),
    "astroresearch.addPapers": (file?: vscode.Uri, files?: vscode.Uri[]) => addPapers(ports, files ?? (file ? [file] : undefined)),
    "astroresearch.newNote": () => newNote(ports),
    "astroresearch.chooseModel": () => chooseModel(ports),
    "astroresearch.setApiKey": () => setSecret(ports, "model.api_key", "API key of the model's endpoint"),
    "astroresearch.setAdsToken": () => setSecret(ports, "ads.token", "Token of the ADS API"),
    "astroresearch.createEnvironment": () => ports.createEnvironment(),
    "astroresearch.restart": () => ports.restart(),
    "astroresearch.showLog": () => ports.log.show(),
    "_astroresearch.show": (given: Act) => show(ports, given),
    "_astroresearch.insertCitation": (paper: string) => insertCitation(ports, paper),
  };
  const guarded = Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (...args: never[]) => {
      try {
        return await run(...args);
      } catch (error) {
        if (!(error instanceof vscode.CancellationError)) void vscode.window.showErrorMessage(messageOf(error));
        return undefined;
      }
    }),
  );
  return vscode.Disposable.from(...guarded);
}

/** An error's sentence and its hint. */
export function messageOf(error: unknown): string {
  const { message, data } = error as { message?: string; data?: { hint?: string } };
  return [message ?? String(error), data?.hint].filter(Boolean).join(" ");
}

/** A passage that is selected in a paper's text, as the beginning of a question; undefined elsewhere. */
function selectionOfPaper(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !placeOf(editor.document.uri) || editor.selection.isEmpty) return undefined;
  return `About this passage: “${editor.document.getText(editor.selection).replace(/\s+/g, " ").trim()}”\n\n`;
}

async function sessions(ports: CommandPorts): Promise<void> {
  const bin: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Delete" };
  type Row = vscode.QuickPickItem & { id: string };
  const read = async (): Promise<Row[]> => {
    const { sessions: all } = await ports.client().request<{ sessions: SessionRecord[] }>("astroresearch/session/list", { limit: 200 });
    return all.map(({ id, title, updated, turnCount }) => ({
      id,
      label: title || "Untitled",
      description: `${new Date(updated).toLocaleString()} · ${turnCount === 1 ? "1 question" : `${turnCount} questions`}`,
      buttons: [bin],
      picked: id === ports.chat.currentSession,
    }));
  };
  const pick = vscode.window.createQuickPick<Row>();
  pick.placeholder = "Open a session";
  pick.items = await read();
  pick.onDidTriggerItemButton(async ({ item }) => {
    await ports.client().request("astroresearch/session/delete", { sessionId: item.id });
    if (item.id === ports.chat.currentSession) ports.chat.newSession();
    pick.items = await read();
  });
  pick.onDidAccept(async () => {
    const [item] = pick.selectedItems;
    pick.hide();
    if (item) {
      await ports.chat.load(item.id);
      await ports.chat.focus();
    }
  });
  pick.onDidHide(() => pick.dispose());
  pick.show();
}

/** What a code action asks for (`_astroresearch.act`, docs/protocol.md), in our own views. */
async function show(ports: CommandPorts, given: Act): Promise<void> {
  if (given.action === "ask") await ports.chat.focus(selectionOfPaper());
  else if (given.action === "findCitations") await searchPapers(ports, given.query);
  else await newNote(ports, given);
}

async function searchPapers(ports: CommandPorts, given?: string): Promise<void> {
  const query = given ?? await vscode.window.showInputBox({ title: "Search ADS and arXiv", placeHolder: "cooling flows in galaxy clusters, or author:\"Fabian\" year:2012" });
  if (!query) return;
  const uri = ports.manuscript.current()?.document.uri.toString();
  const params = { query, limit: 25, ...(uri ? { textDocument: { uri } } : {}) };
  const { hits, notices } = await ports
    .client()
    .withProgress<{ hits: SearchHit[]; notices: string[] }>(`Searching for “${query}”`, "astroresearch/papers/search", params);
  for (const notice of notices) void vscode.window.showInformationMessage(notice);
  if (!hits.length) return void vscode.window.showInformationMessage(`No paper was found for “${query}”.`);
  const rows = hits.map(({ paper, inLibrary, citedHere, hasNotes }) => ({
    paper,
    label: paper.title,
    description: authorsOf(paper),
    detail: [nameOf(paper), inLibrary && "$(book) in your library", citedHere && "$(check) cited here", hasNotes && "$(note) has notes"].filter(Boolean).join("   "),
  }));
  const row = await vscode.window.showQuickPick(rows, { title: `${hits.length} papers`, matchOnDescription: true, matchOnDetail: true });
  if (row) await offer(ports, row.paper);
}

function nameOf(paper: Paper): string {
  const { bibcode, arxiv, doi } = paper.identifiers;
  return bibcode || (arxiv && `arXiv:${arxiv}`) || doi || paper.id;
}

async function offer(ports: CommandPorts, paper: Paper): Promise<void> {
  const rows: { label: string; run: () => Promise<void> }[] = [
    { label: "$(cloud-download) Download into the library", run: () => download(ports, paper) },
    { label: "$(quote) Insert a citation in the manuscript", run: () => insertCitation(ports, nameOf(paper)) },
    { label: "$(copy) Copy the BibTeX entry", run: () => copyBibtex(ports, nameOf(paper)) },
  ];
  const row = await vscode.window.showQuickPick(rows, { title: paper.title });
  await row?.run();
}

async function download(ports: CommandPorts, paper: Paper): Promise<void> {
  const got = await ports.client().withProgress<Paper>(`Downloading ${authorsOf(paper)}`, "astroresearch/papers/download", { paper: nameOf(paper) });
  const text = got.state === "failed" ? `${got.title}: ${got.stateReason}` : `“${got.title}” is in your library (${got.pagesCount} pages).`;
  void vscode.window.showInformationMessage(text);
}

async function copyBibtex(ports: CommandPorts, paper: string): Promise<void> {
  const { bibtex } = await ports.client().request<{ bibtex: string }>("astroresearch/papers/bibtex", { papers: [paper] });
  await vscode.env.clipboard.writeText(bibtex);
  vscode.window.setStatusBarMessage("BibTeX copied", 3000);
}

async function insertCitation(ports: CommandPorts, paper: string): Promise<void> {
  const current = ports.manuscript.current();
  if (!current) throw new Error("Open the manuscript and put the cursor where the citation belongs.");
  const { line, character } = current.selection.end;
  const params = { paper, textDocument: { uri: current.document.uri.toString() }, position: { line, character } };
  const { key, added, file } = await ports.client().request<{ key: string; added: boolean; file: string }>("astroresearch/bib/insert", params);
  vscode.window.setStatusBarMessage(added ? `${key} added to ${file}` : `${key} cited`, 5000);
}

async function addPapers(ports: CommandPorts, files: vscode.Uri[] | undefined): Promise<void> {
  const chosen =
    files ??
    (await vscode.window.showOpenDialog({ canSelectMany: true, canSelectFiles: true, filters: { PDF: ["pdf"] }, openLabel: "Add to the library" }));
  if (!chosen?.length) return;
  const title = chosen.length === 1 ? "Reading a paper" : `Reading ${chosen.length} papers`;
  const { imported, failed } = await ports
    .client()
    .withProgress<{ imported: Paper[]; failed: { path: string; message: string }[] }>(title, "astroresearch/papers/import", { paths: chosen.map((uri) => uri.fsPath) });
  for (const { path, message } of failed) void vscode.window.showWarningMessage(`${path}: ${message}`);
  const [first] = imported;
  if (first) {
    const what = imported.length === 1 ? `“${first.title || "The paper"}” is` : `${imported.length} papers are`;
    void vscode.window.showInformationMessage(`${what} in your library.`);
  }
}

async function newNote(ports: CommandPorts, given?: Act): Promise<void> {
  const anchor = given?.citeKey
    ? { about: `On ${given.citeKey}`, params: { citeKey: given.citeKey, paper: given.paper ?? "", uri: given.uri ?? "" } }
    : noteAnchor();
  const text = await vscode.window.showInputBox({ title: "New note", prompt: anchor.about, ignoreFocusOut: true });
  if (!text) return;
  await ports.client().request("astroresearch/notes/create", { ...anchor.params, text });
  vscode.window.setStatusBarMessage("Note saved", 3000);
}

function noteAnchor(): { about: string; params: object } {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return { about: "Without a place", params: {} };
  const { document, selection } = editor;
  const place = placeOf(document.uri);
  if (place) {
    const quote = document.getText(selection).trim();
    return { about: quote ? "On the selected passage of the paper" : "On this page of the paper", params: { paper: place.paper, page: place.page, quote } };
  }
  if (!isManuscript(document)) return { about: "Without a place", params: {} };
  const line = selection.start.line;
  const params = { uri: document.uri.toString(), line, context: document.lineAt(line).text };
  return { about: `On line ${line + 1} of the manuscript`, params };
}

async function chooseModel(ports: CommandPorts): Promise<void> {
  const { models } = await ports.client().request<{ models: { name: string; active: boolean; reason?: string }[] }>("astroresearch/models/list", {});
  const other = "$(edit) Another name…";
  const rows = [
    ...models.map(({ name, active, reason }) => ({ label: name, description: active ? "in use" : "", detail: reason ?? "", name })),
    { label: other, description: "", detail: "As the endpoint of the setting astroresearch.model.base_url knows it", name: "" },
  ];
  const row = await vscode.window.showQuickPick(rows, { title: "Model of this window" });
  if (!row) return;
  const name = row.name || (await vscode.window.showInputBox({ title: "Name of the model" }));
  if (name) await ports.client().request("astroresearch/models/choose", { name });
}

async function setSecret(ports: CommandPorts, key: SecretKey, title: string): Promise<void> {
  const value = await vscode.window.showInputBox({ title, password: true, ignoreFocusOut: true, prompt: "Kept in the editor's secret store. Empty removes it." });
  if (value === undefined) return;
  if (value) await ports.secrets.store(key, value);
  else await ports.secrets.delete(key);
  await ports.client().request("astroresearch/secrets/set", { key, value });
  vscode.window.setStatusBarMessage(value ? "Saved" : "Removed", 3000);
}
