import assert from "node:assert/strict";
import { test } from "node:test";

import { citeKeys } from "../src/chat/citeKeys";
import { findQuote } from "../src/chat/quote";
import { renderMarkdown, settledBlocks, visible } from "../webview/markdown";

function found(text: string, quote: string): string | undefined {
  const span = findQuote(text, quote);
  return span && text.slice(span.start, span.end);
}

test("a quote is found over line breaks, hyphenation, ligatures and other quotation marks", () => {
  const page = "In the core the hot gas\ncools radia-\ntively — a “cooling ﬂow” — within 10 Gyr.";
  assert.equal(found(page, "hot gas cools radiatively"), "hot gas\ncools radia-\ntively");
  assert.equal(found(page, 'a "cooling flow"'), "a “cooling ﬂow”");
  assert.equal(found(page, "COOLS"), "cools");
  assert.equal(found(page, "the cold gas"), undefined);
  assert.equal(found(page, "  "), undefined);
  assert.equal(found("mass of 𝑀 = 3", "𝑀 = 3"), "𝑀 = 3");
});

test("cite keys of all commands of the family, each once", () => {
  assert.deepEqual(citeKeys("\\citep[see][p.~3]{a, b} and \\textcite*{b,c} \\ref{no}"), ["a", "b", "c"]);
});

test("HTML of a model is text, scripts and images never load", () => {
  const html = renderMarkdown('<img src=x onerror=alert(1)> ![chart](https://evil.example/x.png?q=secret) <script>1</script>');
  assert.doesNotMatch(html, /<img|<script/i);
  assert.match(html, /\[image: chart\]/);
});

test("only links of known kinds are links, and they carry no address that a browser would follow", () => {
  assert.doesNotMatch(renderMarkdown("[x](javascript:alert(1)) [y](vscode://run) [z](file:///etc/passwd) [c](command:go)"), /<a /);
  const html = renderMarkdown("[ADS](https://ui.adsabs.harvard.edu) and [p. 3](astroresearch-paper:fab11?page=3)");
  assert.match(html, /href="#" data-url="https:\/\/ui.adsabs.harvard.edu"/);
  assert.match(html, /data-url="astroresearch-paper:fab11\?page=3"/);
  assert.doesNotMatch(html, /href="http/);
});

test("math is typeset, and broken or dangerous math does no harm", () => {
  assert.match(renderMarkdown("$M_\\odot$ and\n\n$$E = mc^2$$"), /class="katex/);
  assert.doesNotMatch(renderMarkdown("$\\href{javascript:alert(1)}{x}$"), /href="javascript/);
  assert.doesNotMatch(renderMarkdown("$\\includegraphics{https://evil.example/x.png}$"), /<img/);
  assert.ok(renderMarkdown("$\\frac{1$"));
});

test("a growing answer settles block by block, and no block is cut inside a fence, math or a list", () => {
  const text = "One.\n\n```\na\n\nb\n```\n\n$$\nx\n\n$$\n\n- one\n\n  more\n\n- two\n\nLast";
  const { settled, open } = settledBlocks(text);
  assert.equal([...settled, open].join(""), text);
  assert.ok(settled.includes("One.\n\n"));
  assert.ok(settled.every((block) => (block.match(/```/g)?.length ?? 0) % 2 === 0));
  assert.ok(!settled.some((block) => block.startsWith("  more") || block.startsWith("- two")));
  const grown = settledBlocks(text + " words.\n\nAnd more").settled;
  assert.deepEqual(grown.slice(0, settled.length), settled);
});

test("characters that hide or reorder text are shown", () => {
  assert.equal(visible("rm\u202e fdp.\u200bexe\u0007"), "rm⟨U+202E⟩ fdp.⟨U+200B⟩exe⟨U+0007⟩");
  assert.equal(visible("tag\u{e0041}"), "tag⟨U+E0041⟩");
  assert.equal(visible("a\tb\nñ ☉"), "a\tb\nñ ☉");
});
