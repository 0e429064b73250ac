// How each item of the timeline looks.

import type { Item, PermissionItem, PlanBlock, QuestionItem, SubagentItem, TextItem, ToolItem } from "../src/chat/timeline";
import type { Citation } from "../src/protocol";
import { h } from "./dom";
import { renderMarkdown, settledBlocks, visible } from "./markdown";

export interface Actions {
  answer(id: string, choice: string, text: string): void;
  quote(citation: Citation): void;
  cite(paperId: string): void;
}

/** For how long a card that asks takes no answer, so that a key meant for something else decides nothing. */
const GRACE_MS = 500;

export function drawItem(item: Item, old: HTMLElement | undefined, actions: Actions): HTMLElement {
  const node = draw(item, old, actions);
  node.dataset["key"] = item.key;
  node.classList.toggle("of-subagent", item.agent !== "main");
  return node;
}

function draw(item: Item, old: HTMLElement | undefined, actions: Actions): HTMLElement {
  switch (item.kind) {
    case "thought":
      return drawThought(item, old);
    case "message":
      return drawMessage(item, old);
    case "tool":
      return drawTool(item, old, actions);
    case "plan":
      return drawPlan(item);
    case "permission":
      return drawPermission(item, old, actions);
    case "question":
      return drawQuestion(item, old, actions);
    case "subagent":
      return drawSubagent(item);
    case "notice":
    case "error":
      return h(`div.note.${item.level}`, { role: item.level === "error" ? "alert" : "note" }, h("p", {}, visible(item.text)), item.hint && h("p.hint", {}, visible(item.hint)));
  }
}

function drawThought(item: TextItem, old: HTMLElement | undefined): HTMLElement {
  const node = old ?? h("div.thought", {}, h("span"));
  (node.firstChild as HTMLElement).textContent = visible(item.text.trim());
  return node;
}

/** What is settled in a growing answer is rendered once; only the open end is rendered again with each delta. */
function drawMessage(item: TextItem, old: HTMLElement | undefined): HTMLElement {
  const node = old ?? h("div.message");
  const { settled, open } = settledBlocks(item.text);
  const blocks = [...settled, open];
  for (const [place, source] of blocks.entries()) {
    const box = (node.children[place] as HTMLElement | undefined) ?? node.appendChild(h("div"));
    if (sources.get(box) === source) continue;
    sources.set(box, source);
    box.innerHTML = renderMarkdown(source);
  }
  while (node.children.length > blocks.length) node.lastChild?.remove();
  return node;
}
const sources = new WeakMap<HTMLElement, string>();

const SAYS: Record<ToolItem["status"], [mark: string, text: string]> = {
  running: ["", "running"],
  completed: ["✓", "done"],
  failed: ["✗", "failed"],
  cancelled: ["■", "cancelled"],
  denied: ["⊘", "not allowed"],
  interrupted: ["■", "interrupted"],
};

function drawTool(item: ToolItem, old: HTMLElement | undefined, actions: Actions): HTMLElement {
  const [mark, text] = SAYS[item.status];
  const detail = h("div.tool-detail", {}, h("pre.arguments", {}, argumentsOf(item)), item.preview && h("pre.preview", {}, visible(item.preview)));
  for (const citation of item.citations) detail.append(drawCitation(citation, actions));
  const summary = h(
    "summary",
    {},
    h("span.mark", { "aria-label": text, role: "img", title: text }, mark),
    h("span.tool-title", { title: item.name }, visible(item.title || item.name)),
    h("span.time", {}, item.status === "running" ? item.progress : item.status === "completed" ? seconds(item.durationMs) : text),
  );
  const bar = item.fraction !== undefined && h("progress", { max: 1, value: item.fraction, "aria-label": item.progress });
  const node = h(`details.tool.${item.status}`, { open: (old as HTMLDetailsElement | undefined)?.open ?? false, "data-tool": item.name }, summary, bar || undefined, detail);
  return node;
}

function argumentsOf(item: ToolItem): string {
  const lines = Object.entries(item.arguments).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return visible([item.name, ...lines].join("\n"));
}

function seconds(ms: number): string {
  return ms < 100 ? "" : `${(ms / 1000).toFixed(1)} s`;
}

/** A quote with where it stands. Clicking shows the page. */
export function drawCitation(citation: Citation, actions: Actions): HTMLElement {
  const { verified, page } = citation;
  const name = citation.label || citation.title || citation.bibcode || citation.paperId;
  const check = h("span.check", {}, verified ? "✓ verified" : "not found on the page");
  const open = h(
    "button.quote",
    { type: "button", onclick: () => actions.quote(citation), title: "Show the page's text", "aria-label": `${name}, page ${page}: ${citation.quote}` },
    h("blockquote", {}, visible(citation.quote)),
  );
  const cite = h("button.plain", { type: "button", onclick: () => actions.cite(citation.paperId), title: "Insert a citation where the cursor is in the manuscript" }, "Cite");
  const foot = h("div.source", {}, h("span.name", { title: citation.title ?? "" }, `${name}, p. ${page}`), check, cite);
  return h(`div.card.citation.${verified ? "verified" : "unverified"}`, {}, open, foot);
}

function drawPlan(item: PlanBlock): HTMLElement {
  const marks: Record<string, string> = { completed: "☑", in_progress: "▸", pending: "☐", cancelled: "☒" };
  const rows = item.items.map((one) => h("li", { "data-status": one.status }, h("span.mark", { "aria-label": one.status, role: "img" }, marks[one.status] ?? "☐"), visible(one.content)));
  return h("div.card.plan", { role: "group", "aria-label": "Plan" }, h("ul", {}, ...rows));
}

function drawSubagent(item: SubagentItem): HTMLElement {
  const [mark, text] = SAYS[item.status];
  return h(
    `div.subagent.${item.status}`,
    {},
    h("span.mark", { "aria-label": text, role: "img", title: text }, mark),
    h("span", {}, h("b", {}, visible(item.name)), ` ${visible(item.task)}`),
    item.summary && h("pre.preview", {}, visible(item.summary)),
  );
}

function drawPermission(item: PermissionItem, old: HTMLElement | undefined, actions: Actions): HTMLElement {
  if (item.resolved) return h("div.resolved", {}, `${visible(item.title)} — ${chosen(item)}`);
  if (old?.classList.contains("asks")) return old; // it has been shown: its time of grace and what was typed stay
  const reason = h("input.reason", { type: "text", placeholder: "If you deny: why", "aria-label": "Reason" });
  const buttons = item.options.map(({ id, label }) => {
    const allow = !id.startsWith("deny");
    const lasting = id === "session" || id === "workspace";
    const title = lasting && item.rule ? `Allows ${item.rule} without asking` : "";
    return h(`button.${allow ? "allow" : "deny"}`, { type: "button", "data-choice": id, title, onclick: () => actions.answer(item.id, id, allow ? "" : reason.value) }, label);
  });
  return asking(
    h(
      "div.card.asks.permission",
      { role: "alertdialog", "aria-label": `Permission: ${item.title}` },
      h("h3", {}, visible(item.title)),
      item.reason && h("p.hint", {}, visible(item.reason)),
      h("pre.detail", { tabIndex: 0 }, visible(item.detail)),
      reason,
      h("div.buttons", {}, ...buttons),
    ),
  );
}

function chosen(item: PermissionItem): string {
  if (item.resolved === "cancelled") return "not answered";
  return item.options.find(({ id }) => id === item.resolved)?.label ?? item.resolved;
}

function drawQuestion(item: QuestionItem, old: HTMLElement | undefined, actions: Actions): HTMLElement {
  if (item.resolved) {
    const answer = item.resolved === "cancelled" ? "not answered" : item.resolved;
    return h("div.resolved", {}, `${visible(item.text)} — ${visible(answer)}`);
  }
  if (old?.classList.contains("asks")) return old;
  const other = h("input.reason", { type: "text", placeholder: item.choices.length ? "Another answer" : "Your answer", "aria-label": "Your answer" });
  const say = () => other.value.trim() && actions.answer(item.id, "", other.value.trim());
  other.onkeydown = (event) => {
    if (event.key === "Enter" && !event.isComposing) say();
  };
  const buttons = item.choices.map((choice) => h("button.choice", { type: "button", "data-choice": choice, onclick: () => actions.answer(item.id, choice, "") }, visible(choice)));
  return asking(
    h(
      "div.card.asks.question",
      { role: "alertdialog", "aria-label": "Question" },
      h("h3", {}, visible(item.text)),
      h("div.buttons", {}, ...buttons),
      h("div.line", {}, other, h("button.choice", { type: "button", onclick: say }, "Answer")),
    ),
  );
}

/** A card that asks: nothing is preselected, and for a moment nothing can be chosen. */
function asking(card: HTMLElement): HTMLElement {
  const controls = [...card.querySelectorAll<HTMLButtonElement | HTMLInputElement>("button, input")];
  for (const control of controls) control.disabled = true;
  setTimeout(() => {
    for (const control of controls) control.disabled = false;
  }, GRACE_MS);
  return card;
}
