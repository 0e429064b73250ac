// Pages of papers as read-only documents: `astroresearch-paper:/PAPER page 3.txt?{"paper":"PAPER","page":3}`.

import * as vscode from "vscode";

import { findQuote } from "./chat/quote";
import type { ServerClient } from "./client";
import type { PageText, Paper } from "./protocol";

export const SCHEME = "astroresearch-paper";

interface Text {
  paper: Paper;
  pages: PageText[];
}

export interface Place {
  paper: string;
  /** From 1; 0 for the whole paper. */
  page: number;
  /** The page after it is shown too: a sentence goes on there. */
  andNext?: boolean;
}

export function pageUri({ paper, page, andNext }: Place): vscode.Uri {
  const name = !page ? paper : andNext ? `${paper} pages ${page}–${page + 1}` : `${paper} page ${page}`;
  const query = JSON.stringify(andNext ? { paper, page, andNext } : { paper, page });
  return vscode.Uri.from({ scheme: SCHEME, path: `/${name}.txt`, query });
}

/** The paper and page of such a document; undefined for others. */
export function placeOf(uri: vscode.Uri): Place | undefined {
  if (uri.scheme !== SCHEME) return undefined;
  try {
    const { paper, page, andNext } = JSON.parse(uri.query) as Place;
    return { paper: String(paper), page: Number(page) || 0, ...(andNext ? { andNext: true } : {}) };
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
    const { paper, page, andNext } = place;
    const { paper: record, pages } = await this.client().request<Text>("astroresearch/papers/text", page && !andNext ? { paper, page } : { paper }, token);
    const head = [record.title, authorsOf(record)].filter(Boolean).join("\n");
    if (!andNext) return [head, ...pages.map((one) => `── page ${one.page} ──\n\n${one.text}`)].join("\n\n");
    // Nothing but a space between the two, so that a quote that runs over the page's end is found.
    const both = pages.filter((one) => one.page === page || one.page === page + 1).map((one) => one.text);
    return [head, `── pages ${page}–${page + 1} ──`, both.join("\n\n")].join("\n\n");
  }

  /** Opens a page, or two where the quote runs over its end, and marks the quote. */
  async show(place: Place, quote: string): Promise<void> {
    let document = await vscode.workspace.openTextDocument(pageUri(place));
    let span = findQuote(document.getText(), quote);
    if (!span && quote && place.page) {
      const two = await vscode.workspace.openTextDocument(pageUri({ ...place, andNext: true }));
      span = findQuote(two.getText(), quote);
      if (span) document = two;
    }
    const editor = await vscode.window.showTextDocument(document, { preview: true, preserveFocus: false });
    const range = span && new vscode.Range(document.positionAt(span.start), document.positionAt(span.end));
    editor.setDecorations(this.highlight, range ? [range] : []);
    if (range) {
      editor.selection = new vscode.Selection(range.start, range.start);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    } else if (quote) {
      void vscode.window.showWarningMessage("The quote was not found on this page. The whole page is shown.");
    }
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
