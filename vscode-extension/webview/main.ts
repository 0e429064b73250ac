// The chat's page: folds events into the timeline and redraws what changed, at most once a frame.

import "katex/dist/katex.min.css";
import "./chat.css";

import type { ChatState, FromWebview, ToWebview } from "../src/chat/messages";
import { ask, EMPTY, fold, foldAll, interrupt, running, type Timeline, type Turn } from "../src/chat/timeline";
import type { Citation } from "../src/protocol";
import { h, Keyed } from "./dom";
import { drawCitation, drawItem, type Actions } from "./items";

const vscode = acquireVsCodeApi<{ draft: string }>();
const post = (message: FromWebview): void => vscode.postMessage(message);

let timeline: Timeline = EMPTY;
let state: ChatState = { server: "starting", model: "", context: "", queued: [] };
let earlier = false;
let withContext = true;
let sending = false;

const actions: Actions = {
  answer: (id, choice, text) => post({ type: "answer", id, choice, text }),
  quote: ({ paperId, page, quote }: Citation) => post({ type: "quote", paperId, page, quote }),
  cite: (paperId) => post({ type: "cite", paperId }),
};

// --- the page ------------------------------------------------------------------------------------------------------

const log = h("main.timeline", { tabIndex: 0, role: "log", "aria-live": "polite", "aria-label": "Conversation" });
const older = h("button.plain.older", { type: "button", onclick: () => post({ type: "earlier" }) }, "Show earlier messages");
const welcome = h("div.welcome");
const turnsBox = h("div.turns");
const waiting = h("ol.queued", { "aria-label": "Waiting questions" });
log.append(older, welcome, turnsBox, waiting);

const input = h("textarea", { rows: 3, "aria-label": "Your question", placeholder: "Ask about your manuscript and your papers" });
const chip = h("button.chip", { type: "button", onclick: toggleContext });
const mode = h("select", { title: "Plan: only reads and searches, changes nothing", "aria-label": "Mode" }, h("option", { value: "agent" }, "Agent"), h("option", { value: "plan" }, "Plan"));
const model = h("button.plain.model", { type: "button", title: "Choose the model", onclick: () => post({ type: "command", command: "chooseModel" }) });
const send = h("button.primary.send", { type: "button", title: "Send (Enter)", onclick: submit }, "Send");
const stop = h("button.stop", { type: "button", title: "Stop (Escape)", onclick: () => post({ type: "stop" }) }, "Stop");
const problem = h("div.problem", { role: "alert" });
const form = h("footer", {}, problem, h("div.chips", {}, chip), input, h("div.line", {}, mode, model, h("span.grow"), stop, send));
document.getElementById("app")?.append(log, form);

input.value = vscode.getState()?.draft ?? "";
input.oninput = () => vscode.setState({ draft: input.value });
input.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running(timeline)) post({ type: "stop" });
});
document.addEventListener("click", (event) => {
  const link = (event.target as HTMLElement).closest<HTMLElement>("a.link");
  if (!link) return;
  event.preventDefault();
  follow(link.dataset["url"] ?? "");
});

/** `astroresearch-paper:PAPER?page=3` shows that page; everything else is for the browser. */
function follow(url: string): void {
  const paper = /^astroresearch-paper:\/*([^?#]+)(?:\?page=(\d+))?/i.exec(url);
  if (paper) post({ type: "quote", paperId: decodeURIComponent(paper[1] ?? ""), page: Number(paper[2] ?? 0), quote: "" });
  else post({ type: "link", url });
}

function submit(): void {
  const text = input.value.trim();
  if (!text || sending) return;
  sending = true;
  problem.textContent = "";
  post({ type: "send", text, mode: mode.value as "agent" | "plan", withContext: withContext && state.context !== "" });
}

function toggleContext(): void {
  withContext = !withContext;
  drawForm();
}

// --- drawing -------------------------------------------------------------------------------------------------------

interface TurnParts {
  node: HTMLElement;
  question: HTMLElement;
  items: Keyed<Turn["items"][number]>;
  quotes: HTMLElement;
  end: HTMLElement;
  shown: Turn | undefined;
}
const parts = new Map<string, TurnParts>();
const turns = new Keyed<Turn>(turnsBox, (turn) => turn.id, drawTurn);

function drawTurn(turn: Turn): HTMLElement {
  const known = parts.get(turn.id) ?? newTurn(turn.id);
  const { shown } = known;
  known.shown = turn;
  known.node.dataset["status"] = turn.status;
  known.question.textContent = turn.question;
  known.question.hidden = !turn.question;
  known.items.update(turn.items);
  if (turn.status !== shown?.status || turn.citations !== shown.citations) drawQuotes(known.quotes, turn);
  drawEnd(known.end, turn);
  return known.node;
}

function newTurn(id: string): TurnParts {
  const question = h("div.user");
  const list = h("div.items");
  const quotes = h("div.quotes");
  const end = h("div.end");
  const node = h("section.turn", { "data-turn": id }, question, list, quotes, end);
  const items = new Keyed<Turn["items"][number]>(list, (item) => item.key, (item, old) => drawItem(item, old, actions));
  const made = { node, question, items, quotes, end, shown: undefined };
  parts.set(id, made);
  return made;
}

/** The quotes of all tools, below the answer when it is complete. */
function drawQuotes(box: HTMLElement, turn: Turn): void {
  const show = turn.status !== "running" && turn.citations.length > 0;
  box.replaceChildren(...(show ? [h("h4", {}, "Quotes"), ...turn.citations.map((one) => drawCitation(one, actions))] : []));
}

const ENDS: Partial<Record<Turn["status"], string>> = {
  running: "Working…",
  max_steps: "Stopped: the limit of steps was reached.",
  budget: "Stopped: the limit of tokens was reached.",
  loop: "Stopped: the agent was going in circles.",
  interrupted: "The answer broke off; what came is kept.",
  refusal: "The model refused to answer.",
  cancelled: "Stopped.",
};

function drawEnd(box: HTMLElement, turn: Turn): void {
  const { usage } = turn;
  const tokens = usage && usage.input + usage.output > 0 ? `${usage.estimated ? "about " : ""}${(usage.input + usage.output).toLocaleString()} tokens` : "";
  const cost = usage?.cost === undefined ? "" : `cost ${usage.cost.toFixed(3)}`;
  box.textContent = [ENDS[turn.status] ?? "", turn.status === "running" ? "" : tokens, turn.status === "running" ? "" : cost].filter(Boolean).join(" · ");
}

function drawForm(): void {
  const busy = running(timeline) !== undefined;
  stop.hidden = !busy;
  send.textContent = busy ? "Queue" : "Send";
  send.disabled = state.server !== "running";
  model.textContent = state.model;
  model.hidden = !state.model;
  chip.hidden = !state.context;
  chip.textContent = `${withContext ? "✓" : "○"} ${state.context}`;
  chip.title = withContext ? "Goes with your question; click to leave it out" : "Left out; click to let it go with your question";
  chip.setAttribute("aria-pressed", String(withContext));
  waiting.replaceChildren(...state.queued.map((text) => h("li", {}, h("span.hint", {}, "waits: "), text)));
  older.hidden = !earlier;
  drawWelcome();
}

function drawWelcome(): void {
  welcome.hidden = timeline.turns.length > 0;
  if (welcome.hidden) return;
  const button = (text: string, command: Extract<FromWebview, { type: "command" }>["command"]) => h("button.plain", { type: "button", onclick: () => post({ type: "command", command }) }, text);
  const byState: Record<ChatState["server"], (Node | string)[]> = {
    starting: [h("p", {}, "The server is starting…")],
    stopped: [h("p", {}, "The server does not run."), button("Restart it", "restart"), button("Show the log", "showLog")],
    missing: [h("p", {}, "No Python with the package astroresearch was found."), button("Create an environment for it", "createEnvironment"), button("Show the log", "showLog")],
    running: [
      h("p", {}, "Ask about your manuscript, your papers, or the sky. Each quote comes with its page and is checked against it."),
      button("Add PDFs to the library", "addPapers"),
      button("Search ADS and arXiv", "searchPapers"),
      button("Open an earlier session", "sessions"),
    ],
  };
  welcome.replaceChildren(...byState[state.server]);
}

let frame = 0;
function redraw(): void {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    turns.update(timeline.turns);
    drawForm();
    if (atEnd) log.scrollTop = log.scrollHeight;
  });
}

// --- what the extension says ---------------------------------------------------------------------------------------

function take(message: ToWebview): void {
  switch (message.type) {
    case "session": {
      if (message.sessionId !== timeline.sessionId) {
        parts.clear();
        turns.clear();
      }
      timeline = foldAll({ ...EMPTY, sessionId: message.sessionId, title: message.title }, message.events);
      earlier = message.earlier;
      if (state.server !== "running") timeline = interrupt(timeline);
      log.scrollTop = log.scrollHeight;
      return redraw();
    }
    case "events":
      timeline = message.events.reduce(fold, timeline);
      if (timeline.gap) post({ type: "gap", seq: timeline.seq });
      return redraw();
    case "ask":
      timeline = ask(timeline, message.asked);
      return redraw();
    case "withdrawn":
      timeline = withdrawn(timeline, message.id);
      return redraw();
    case "interrupted":
      sending = false;
      timeline = interrupt(timeline);
      return redraw();
    case "sent":
      sending = false;
      input.value = "";
      vscode.setState({ draft: "" });
      log.scrollTop = log.scrollHeight;
      return;
    case "refused":
      sending = false;
      input.value ||= message.text;
      problem.textContent = [message.message, message.hint].filter(Boolean).join(" ");
      return;
    case "focus":
      if (message.text !== undefined) input.value = message.text + input.value;
      return input.focus();
    case "state":
      state = message.state;
      return redraw();
  }
}

/** The server took a question back, or its time is over. */
function withdrawn(before: Timeline, id: string): Timeline {
  const turns = before.turns.map((turn) => {
    const place = turn.items.findIndex((item) => item.key === `ask-${id}`);
    const item = turn.items[place];
    if (!item || !("resolved" in item) || item.resolved) return turn;
    return { ...turn, items: turn.items.with(place, { ...item, resolved: "cancelled" }) };
  });
  return { ...before, turns };
}

window.addEventListener("message", (event: MessageEvent<ToWebview>) => take(event.data));
drawForm();
post({ type: "ready" });
