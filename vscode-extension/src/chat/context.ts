// The manuscript that goes with a question: the last .tex or .bib editor, its selection, and the cite keys in it.

import path from "node:path";

import * as vscode from "vscode";

import { citeKeys } from "./citeKeys";

const SUFFIXES = [".tex", ".ltx", ".bib"];

export interface Current {
  document: vscode.TextDocument;
  selection: vscode.Range;
}

export function isManuscript(document: vscode.TextDocument): boolean {
  return document.uri.scheme === "file" && SUFFIXES.includes(path.extname(document.uri.path).toLowerCase());
}

export class Manuscript implements vscode.Disposable {
  private editor: vscode.TextEditor | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor() {
    this.look(vscode.window.activeTextEditor);
    this.disposables = [
      vscode.window.onDidChangeActiveTextEditor((editor) => this.look(editor)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => textEditor === this.editor && this.changed.fire()),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (this.editor?.document === document) this.editor = undefined;
        this.changed.fire();
      }),
    ];
  }

  private look(editor: vscode.TextEditor | undefined): void {
    if (!editor || !isManuscript(editor.document)) return; // the chat itself takes the focus: keep the last one
    this.editor = editor;
    this.changed.fire();
  }

  current(): Current | undefined {
    return this.editor && !this.editor.document.isClosed ? { document: this.editor.document, selection: this.editor.selection } : undefined;
  }

  forServer(): object | undefined {
    const current = this.current();
    if (!current) return undefined;
    const { document, selection } = current;
    const { start, end } = selection;
    const range = {
      start: { line: start.line, character: start.character },
      end: { line: end.line, character: end.character },
    };
    return {
      textDocument: { uri: document.uri.toString() },
      version: document.version,
      range,
      citeKeys: citeKeys(document.getText(selection.isEmpty ? document.lineAt(start.line).range : selection)),
    };
  }

  dispose(): void {
    this.changed.dispose();
    for (const one of this.disposables) one.dispose();
  }
}

/** `paper.tex, lines 12–15`, or `paper.tex` without a selection. */
export function contextLabel(current: Current | undefined): string {
  if (!current) return "";
  const name = path.basename(current.document.uri.path);
  const { start, end } = current.selection;
  if (current.selection.isEmpty) return name;
  return start.line === end.line ? `${name}, line ${start.line + 1}` : `${name}, lines ${start.line + 1}–${end.line + 1}`;
}
