// Pages of papers as read-only documents: `astroresearch-paper:/PAPER/page 3.txt?{"page":3}`.

import * as vscode from "vscode";

import { findQuote } from "./chat/quote";
import type { ServerClient } from "./client";
import type { PageText, Paper } from "./protocol";

export const SCHEME = "astroresearch-paper";

export interface Place {
  paper: string;
  page: number;
}

export function pageUri({ paper, page }: Place): vscode.Uri {
  const name = page ? `${paper} page ${page}.txt` : `${paper}.txt`;
  return vscode.Uri.from({ scheme: SCHEME, path: `/${name}`, query: JSON.stringify({ paper, page }) });
}

/** The paper and page of such a document; undefined for others. */
export function placeOf(uri: vscode.Uri): Place | undefined {
  if (uri.scheme !== SCHEME) return undefined;
  try {
    const { paper, page } = JSON.parse(uri.query) as Place;
    return { paper: String(paper), page: Number(page) || 0 };
  } catch {
    return undefined;
  }
}

export class PaperText implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly highlight = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.findMatchHighlightBackground"),
    border: "1px solid",
    borderColor: new vscode.ThemeColor("editor.findMatchBorder"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.findMatchForeground"),
  });

  constructor(private readonly client: () => ServerClient) {}

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const place = placeOf(uri);
    if (!place) throw new Error(`${uri.toString()} names no paper.`);
    const params = place.page ? place : { paper: place.paper };
    const { paper, pages } = await this.client().request<{ paper: Paper; pages: PageText[] }>("astroresearch/papers/text", params, token);
    const head = [paper.title, authorsOf(paper)].filter(Boolean).join("\n");
    return [head, ...pages.map(({ page, text }) => `── page ${page} ──\n\n${text}`)].join("\n\n");
  }

  /** Opens a page beside the manuscript and marks the quote. */
  async show(place: Place, quote: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(pageUri(place));
    const editor = await vscode.window.showTextDocument(document, { preview: true, preserveFocus: false });
    const span = findQuote(document.getText(), quote);
    const range = span && new vscode.Range(document.positionAt(span.start), document.positionAt(span.end));
    editor.setDecorations(this.highlight, range ? [range] : []);
    if (!range) {
      if (quote) void vscode.window.showWarningMessage("The quote was not found on this page. The whole page is shown.");
      return;
    }
    editor.selection = new vscode.Selection(range.start, range.start);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  dispose(): void {
    this.highlight.dispose();
  }
}

/** `Fabian, Sanders, … 2011`. */
export function authorsOf(paper: Pick<Paper, "authors" | "year">): string {
  const names = paper.authors.map((name) => name.split(",")[0] ?? name);
  const shown = names.length > 3 ? `${names[0]} et al.` : names.join(", ");
  return [shown, paper.year || ""].filter(Boolean).join(" ");
}
