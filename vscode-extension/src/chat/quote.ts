// Finds a quote in a page's text although line breaks, hyphenation, ligatures and quotation marks differ.

export interface Span {
  start: number;
  end: number;
}

/** Spaces and dashes say nothing about where a quote stands: line breaks add and remove both. */
const IGNORED = /[\s\u00ad\-‐‑–—−]/u;
const SAME: Record<string, string> = { "‘": "'", "’": "'", "“": '"', "”": '"' };

/** What counts of a text, and for each UTF-16 unit of it where it came from. */
function essence(text: string): { text: string; from: number[] } {
  let out = "";
  const from: number[] = [];
  let at = 0;
  for (const character of text) {
    if (!IGNORED.test(character)) {
      const same = (SAME[character] ?? character).normalize("NFKC").toLowerCase();
      out += same;
      for (let i = 0; i < same.length; i++) from.push(at);
    }
    at += character.length;
  }
  return { text: out, from };
}

/** Where the quote stands in the text, in UTF-16 offsets of the original; undefined if it is not there. */
export function findQuote(text: string, quote: string): Span | undefined {
  const hay = essence(text);
  const needle = essence(quote).text;
  if (!needle) return undefined;
  const at = hay.text.indexOf(needle);
  const start = hay.from[at];
  const last = hay.from[at + needle.length - 1];
  if (start === undefined || last === undefined) return undefined;
  return { start, end: last + (/[\ud800-\udbff]/.test(text[last] ?? "") ? 2 : 1) };
}
