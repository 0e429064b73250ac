// Markdown and math of answers as HTML. The text comes from models and papers: no HTML of theirs passes, no image is loaded,
// links are plain until somebody clicks them.

import markdownItKatex from "@vscode/markdown-it-katex";
import MarkdownIt from "markdown-it";

const LINKS = /^(https?:|mailto:|astroresearch-paper:)/i;

const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false, breaks: false });
markdown.validateLink = (url) => LINKS.test(url.trim());
// The package is CommonJS: bundlers differ in where they put its default export.
const katex = (markdownItKatex as unknown as { default?: typeof markdownItKatex }).default ?? markdownItKatex;
markdown.use(katex, { throwOnError: false, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20 });

const escape = markdown.utils.escapeHtml;

// An image would be fetched from wherever the text says, and so tell its owner what we ask: show a link instead.
markdown.renderer.rules["image"] = (tokens, index) => {
  const token = tokens[index];
  const url = token?.attrGet("src") ?? "";
  return `<a class="link" href="#" data-url="${escape(url)}" title="${escape(url)}">[image: ${escape(token?.content || url)}]</a>`;
};
markdown.renderer.rules["link_open"] = (tokens, index) => {
  const url = tokens[index]?.attrGet("href") ?? "";
  return `<a class="link" href="#" data-url="${escape(url)}" title="${escape(url)}">`;
};

export function renderMarkdown(text: string): string {
  return markdown.render(text);
}

/** Splits Markdown where a later part can't change an earlier one: after blank lines outside of fences, math and lists. */
export function settledBlocks(text: string): { settled: string[]; open: string } {
  const settled: string[] = [];
  let block = "";
  let fence = "";
  let math = false;
  const lines = text.split(/(?<=\n)/);
  for (const [number, line] of lines.entries()) {
    const mark = /^ {0,3}(```+|~~~+)/.exec(line)?.[1] ?? "";
    if (fence) {
      if (mark.startsWith(fence) && line.trim() === mark) fence = "";
    } else if (mark) fence = mark;
    else if ((line.match(/(?<!\\)\$\$/g)?.length ?? 0) % 2) math = !math;
    block += line;
    const next = lines[number + 1];
    if (!fence && !math && line.trim() === "" && next !== undefined && /^[^\s\-*+>|\d]/.test(next)) {
      settled.push(block);
      block = "";
    }
  }
  return { settled, open: block };
}

/** Text of a tool or a stranger for a fixed-width box: what would hide or reorder it becomes visible. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}
