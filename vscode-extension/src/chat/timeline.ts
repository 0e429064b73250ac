// The timeline as a pure fold over events, live or replayed. Objects that did not change keep their identity, so that a
// front end redraws only what did: compare references.

import type { Citation, Option, PermissionRequest, PlanItem, StopReason, TimelineEvent, ToolStatus, UserQuestion } from "../protocol";

interface Base {
  /** Stable within its turn, also when earlier events are folded in later. */
  key: string;
  agent: string;
}
export interface TextItem extends Base {
  kind: "thought" | "message";
  text: string;
}
export interface ToolItem extends Base {
  kind: "tool";
  id: string;
  name: string;
  icon: string;
  title: string;
  arguments: Record<string, unknown>;
  status: "running" | ToolStatus;
  progress: string;
  fraction?: number;
  preview: string;
  citations: Citation[];
  durationMs: number;
}
export interface PlanBlock extends Base {
  kind: "plan";
  items: PlanItem[];
}
export interface PermissionItem extends Base {
  kind: "permission";
  id: string;
  title: string;
  detail: string;
  reason: string;
  rule: string;
  options: Option[];
  /** What was chosen; empty while open. */
  resolved: string;
}
export interface QuestionItem extends Base {
  kind: "question";
  id: string;
  text: string;
  choices: string[];
  resolved: string;
}
export interface SubagentItem extends Base {
  kind: "subagent";
  id: string;
  name: string;
  task: string;
  status: "running" | ToolStatus;
  summary: string;
}
export interface NoteItem extends Base {
  kind: "notice" | "error";
  level: "info" | "warning" | "error";
  text: string;
  hint: string;
}
export type Item =
  | TextItem
  | ToolItem
  | PlanBlock
  | PermissionItem
  | QuestionItem
  | SubagentItem
  | NoteItem;

export interface Usage {
  input: number;
  output: number;
  cached: number;
  estimated: boolean;
  cost?: number;
}

export interface Turn {
  id: string;
  question: string;
  items: readonly Item[];
  status: "running" | StopReason;
  citations: readonly Citation[];
  usage?: Usage;
}

export interface Timeline {
  sessionId: string;
  title: string;
  turns: readonly Turn[];
  /** The last event folded in; -1 before the first. */
  seq: number;
  /** Events are missing between `seq` and what came next: fetch them. */
  gap: boolean;
}

export const EMPTY: Timeline = { sessionId: "", title: "", turns: [], seq: -1, gap: false };
const MAIN = "main";

/** Folds one event in. Events that were seen already change nothing; one that comes too early only marks the gap. */
export function fold(timeline: Timeline, event: TimelineEvent): Timeline {
  if (event.seq <= timeline.seq) return timeline;
  if (timeline.seq >= 0 && event.seq > timeline.seq + 1) return timeline.gap ? timeline : { ...timeline, gap: true };
  const index = timeline.turns.findLastIndex((turn) => turn.id === event.turnId);
  const before: Turn = timeline.turns[index] ?? {
    id: event.turnId,
    question: "",
    items: [],
    status: "running",
    citations: [],
  };
  const after = foldTurn(before, event);
  const turns = index < 0 ? [...timeline.turns, after] : after === before ? timeline.turns : timeline.turns.with(index, after);
  const named = event.type === "session" ? { sessionId: event.sessionId, title: event.title } : {};
  return { ...timeline, ...named, turns, seq: event.seq, gap: false };
}

/** Folds many in, in order. */
export function foldAll(timeline: Timeline, events: readonly TimelineEvent[]): Timeline {
  return events.reduce(fold, timeline);
}

/** A question of the server's came as a request: shows its card, unless its event did so already. */
export function ask(timeline: Timeline, asked: PermissionRequest | UserQuestion): Timeline {
  const index = timeline.turns.findLastIndex((turn) => turn.id === asked.turnId);
  const turn = timeline.turns[index];
  if (!turn) return timeline;
  const key = `ask-${asked.id}`;
  const item: Item =
    "options" in asked
      ? {
          kind: "permission",
          key,
          agent: asked.agent,
          id: asked.id,
          title: asked.title,
          detail: asked.detail,
          reason: asked.reason ?? "",
          rule: asked.rule ?? "",
          options: asked.options,
          resolved: "",
        }
      : { kind: "question", key, agent: MAIN, id: asked.id, text: asked.text, choices: asked.choices ?? [], resolved: "" };
  const place = turn.items.findIndex((one) => one.key === key);
  const items = place < 0 ? [...turn.items, item] : turn.items.with(place, item);
  return { ...timeline, turns: timeline.turns.with(index, { ...turn, items }) };
}

/** The newest turn that still runs. */
export function running(timeline: Timeline): Turn | undefined {
  return timeline.turns.findLast((turn) => turn.status === "running");
}

/** The server is gone: nothing runs any more. */
export function interrupt(timeline: Timeline): Timeline {
  if (!running(timeline)) return timeline;
  return {
    ...timeline,
    turns: timeline.turns.map((turn) => (turn.status === "running" ? close(turn, "interrupted") : turn)),
  };
}

function foldTurn(turn: Turn, event: TimelineEvent): Turn {
  const base = { key: String(event.seq), agent: event.agent };
  switch (event.type) {
    case "session":
      return { ...turn, question: event.question ?? turn.question };
    case "thought.delta":
      return delta(turn, "thought", event.text, base);
    case "message.delta":
      return delta(turn, "message", event.text, base);
    case "tool.start":
    case "tool.progress":
    case "tool.end":
      return foldTool(turn, event);
    case "plan": {
      const item: PlanBlock = { ...base, key: `plan-${event.agent}`, kind: "plan", items: event.items };
      return put(turn, item);
    }
    case "permission": {
      const item: PermissionItem = {
        ...base,
        key: `ask-${event.id}`,
        kind: "permission",
        id: event.id,
        title: event.title,
        detail: event.detail,
        ...onlyAsked(turn, event.id),
        options: event.options,
        resolved: event.resolved ?? "",
      };
      return put(turn, item);
    }
    case "question": {
      const { id, text, choices = [], resolved = "" } = event;
      return put(turn, { ...base, key: `ask-${id}`, kind: "question", id, text, choices, resolved });
    }
    case "subagent.start":
      return put(turn, {
        ...base,
        key: `sub-${event.id}`,
        kind: "subagent",
        id: event.id,
        name: event.name,
        task: event.task,
        status: "running",
        summary: "",
      });
    case "subagent.end":
      return change(turn, `sub-${event.id}`, (item) => ({ ...item, status: event.status, summary: event.summary }) as Item);
    case "compaction":
      return note(turn, base, "info", `Earlier messages were summarised (${event.before} → ${event.after} tokens).`);
    case "usage":
      return {
        ...turn,
        usage: {
          input: event.input,
          output: event.output,
          cached: event.cached,
          estimated: event.estimated,
          ...(event.cost === undefined ? {} : { cost: event.cost }),
        },
      };
    case "notice":
      return note(turn, base, event.level, event.text);
    case "error":
      return note(turn, base, "error", event.message, event.hint);
    case "done":
      return close(turn, event.stopReason);
    default:
      return turn; // a newer server's event
  }
}

type ToolEvent = Extract<TimelineEvent, { type: "tool.start" | "tool.progress" | "tool.end" }>;

function foldTool(turn: Turn, event: ToolEvent): Turn {
  const key = `tool-${event.id}`;
  const known = turn.items.find((item): item is ToolItem => item.key === key);
  const tool: ToolItem = known ?? {
    kind: "tool",
    key,
    agent: event.agent,
    id: event.id,
    name: "tool",
    icon: "other",
    title: "",
    arguments: {},
    status: "running",
    progress: "",
    preview: "",
    citations: [],
    durationMs: 0,
  };
  if (event.type === "tool.start") {
    const { name, kind: icon, arguments: args } = event;
    return put(turn, { ...tool, name, icon, title: event.title || name, arguments: args });
  }
  if (event.type === "tool.progress") {
    const { fraction, ...rest } = tool;
    return put(turn, { ...rest, progress: event.text, ...(event.fraction === undefined ? {} : { fraction: event.fraction }) });
  }
  const citations = citationsOf(event.metadata);
  const { fraction: _, ...rest } = tool;
  const done: ToolItem = {
    ...rest,
    status: event.status,
    preview: event.preview,
    progress: "",
    citations,
    durationMs: event.durationMs,
  };
  const next = put(turn, done);
  return citations.length ? { ...next, citations: joined(turn.citations, citations) } : next;
}

function delta(turn: Turn, kind: TextItem["kind"], text: string, base: Base): Turn {
  const last = turn.items.at(-1);
  if (last && last.kind === kind && last.agent === base.agent) {
    return { ...turn, items: turn.items.with(-1, { ...last, text: last.text + text }) };
  }
  return { ...turn, items: [...turn.items, { ...base, kind, text }] };
}

function note(turn: Turn, base: Base, level: NoteItem["level"], text: string, hint = ""): Turn {
  const kind = level === "error" ? "error" : "notice";
  return { ...turn, items: [...turn.items, { ...base, kind, level, text, hint }] };
}

/** Replaces the item of that key, or appends it. */
function put(turn: Turn, item: Item): Turn {
  const place = turn.items.findIndex((one) => one.key === item.key);
  return { ...turn, items: place < 0 ? [...turn.items, item] : turn.items.with(place, item) };
}

function change(turn: Turn, key: string, how: (item: Item) => Item): Turn {
  const place = turn.items.findIndex((one) => one.key === key);
  const item = turn.items[place];
  return item ? { ...turn, items: turn.items.with(place, how(item)) } : turn;
}

/** Ends a turn: what still runs in it was interrupted, what was still asked was not answered. */
function close(turn: Turn, status: StopReason): Turn {
  const items = turn.items.map((item): Item => {
    if ((item.kind === "tool" || item.kind === "subagent") && item.status === "running") return { ...item, status: "interrupted" };
    if ((item.kind === "permission" || item.kind === "question") && !item.resolved) return { ...item, resolved: "cancelled" };
    return item;
  });
  return { ...turn, status, items };
}

/** What only the request says, not its event. */
function onlyAsked(turn: Turn, id: string): Pick<PermissionItem, "reason" | "rule"> {
  const known = turn.items.find((item) => item.key === `ask-${id}`);
  return known?.kind === "permission" ? { reason: known.reason, rule: known.rule } : { reason: "", rule: "" };
}

function citationsOf(metadata: Record<string, unknown> | undefined): Citation[] {
  const list = metadata?.["citations"];
  return Array.isArray(list) ? list.filter((one): one is Citation => typeof one?.quote === "string") : [];
}

function joined(old: readonly Citation[], more: readonly Citation[]): Citation[] {
  const name = (c: Citation) => `${c.paperId}\n${c.page}\n${c.quote}`;
  const seen = new Set(old.map(name));
  return [...old, ...more.filter((c) => !seen.has(name(c)) && seen.add(name(c)))];
}
