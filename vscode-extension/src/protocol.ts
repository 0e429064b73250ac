// What goes over the wire, mirrored from the server's lsp/protocol.py and engine/events.py; a test compares them.

export const PROTOCOL_VERSION = 1;

/** Requests and notifications that we send. */
export const METHODS = [
  "astroresearch/chat/send",
  "astroresearch/chat/cancel",
  "astroresearch/chat/answer",
  "astroresearch/session/list",
  "astroresearch/session/get",
  "astroresearch/session/events",
  "astroresearch/session/rename",
  "astroresearch/session/delete",
  "astroresearch/session/export",
  "astroresearch/session/audit",
  "astroresearch/permissions/list",
  "astroresearch/permissions/revoke",
  "astroresearch/models/list",
  "astroresearch/models/choose",
  "astroresearch/secrets/set",
  "astroresearch/status",
  "astroresearch/papers/search",
  "astroresearch/papers/get",
  "astroresearch/papers/list",
  "astroresearch/papers/download",
  "astroresearch/papers/import",
  "astroresearch/papers/text",
  "astroresearch/papers/bibtex",
  "astroresearch/papers/remove",
  "astroresearch/library/search",
  "astroresearch/library/ask",
  "astroresearch/library/status",
  "astroresearch/notes/create",
  "astroresearch/notes/list",
  "astroresearch/notes/get",
  "astroresearch/notes/update",
  "astroresearch/notes/delete",
  "astroresearch/notes/search",
  "astroresearch/notes/export",
  "astroresearch/targets/resolve",
  "astroresearch/bib/insert",
  "astroresearch/tools/list",
] as const;
export type Method = (typeof METHODS)[number];

/** Requests that the server sends to us. */
export const SERVER_REQUESTS = ["astroresearch/permission/request", "astroresearch/user/ask"] as const;

export const SERVER_NOTIFICATIONS = [
  "astroresearch/didChangeStatus",
  "astroresearch/didChangeLibrary",
  "astroresearch/didChangeNotes",
  "astroresearch/didChangeSessions",
] as const;

export type ToolStatus = "completed" | "failed" | "cancelled" | "denied" | "interrupted";
export type StopReason =
  | "end_turn"
  | "max_steps"
  | "budget"
  | "loop"
  | "interrupted"
  | "refusal"
  | "cancelled"
  | "error";

export interface PlanItem {
  id: string;
  content: string;
  status: string;
  blockedBy?: string[];
}

export interface Option {
  id: string;
  label: string;
}

export interface Citation {
  paperId: string;
  page: number;
  quote: string;
  verified: boolean;
  section?: string;
  bibcode?: string;
  doi?: string;
  arxiv?: string;
  key?: string;
  title?: string;
  label?: string;
}

interface Stamp {
  v: number;
  seq: number;
  turnId: string;
  agent: string;
  ts: string;
}

/** The fields of each type of event, beside the stamp. */
export interface EventBodies {
  session: { sessionId: string; title: string; question?: string };
  "thought.delta": { text: string };
  "message.delta": { text: string };
  "tool.start": {
    id: string;
    name: string;
    kind: string;
    arguments: Record<string, unknown>;
    step: number;
    title?: string;
  };
  "tool.progress": { id: string; text: string; fraction?: number };
  "tool.end": {
    id: string;
    status: ToolStatus;
    preview: string;
    isError: boolean;
    metadata: Record<string, unknown>;
    durationMs: number;
  };
  plan: { items: PlanItem[] };
  permission: { id: string; toolId: string; title: string; detail: string; options: Option[]; resolved?: string };
  question: { id: string; text: string; choices?: string[]; resolved?: string };
  "subagent.start": { id: string; name: string; task: string };
  "subagent.end": { id: string; status: ToolStatus; summary: string };
  compaction: { before: number; after: number; kind: string };
  usage: { input: number; output: number; cached: number; estimated: boolean; cost?: number };
  notice: { level: "info" | "warning"; text: string };
  error: { code: string; message: string; hint?: string };
  done: { stopReason: StopReason };
}
export type EventType = keyof EventBodies;
export type TimelineEvent = { [T in EventType]: Stamp & { type: T } & EventBodies[T] }[EventType];

/** Names of the types, as a value: `Record` makes the compiler find a missing one. */
const NAMES: Record<EventType, true> = {
  session: true,
  "thought.delta": true,
  "message.delta": true,
  "tool.start": true,
  "tool.progress": true,
  "tool.end": true,
  plan: true,
  permission: true,
  question: true,
  "subagent.start": true,
  "subagent.end": true,
  compaction: true,
  usage: true,
  notice: true,
  error: true,
  done: true,
};
export const EVENT_TYPES = Object.keys(NAMES) as EventType[];

export interface PermissionRequest {
  id: string;
  sessionId: string;
  turnId: string;
  tool: string;
  toolId: string;
  agent: string;
  title: string;
  detail: string;
  options: Option[];
  reason?: string;
  /** What an answer for longer than once would allow. */
  rule?: string;
}

export interface UserQuestion {
  id: string;
  sessionId: string;
  turnId: string;
  text: string;
  choices: string[];
}

export interface SessionRecord {
  id: string;
  title: string;
  created: string;
  updated: string;
  turnCount: number;
  parent?: string;
}

export interface SendResult {
  sessionId: string;
  turnId?: string;
  answer?: string;
  citations?: Citation[];
  stopReason?: StopReason;
  queued?: boolean;
  position?: number;
}

export interface Paper {
  id: string;
  title: string;
  authors: string[];
  year: number;
  journal: string;
  abstract: string;
  identifiers: { bibcode: string; doi: string; arxiv: string };
  state: "known" | "downloaded" | "searchable" | "failed";
  stateReason: string;
  pagesCount: number;
}

export interface SearchHit {
  paper: Paper;
  inLibrary: boolean;
  citedHere: boolean;
  hasNotes: boolean;
}

export interface PageText {
  page: number;
  text: string;
}

/** One part of `astroresearch/status`: whether it can be used, a sentence, and how to mend it. */
export interface Part {
  ok: boolean;
  text: string;
  hint: string;
  name?: string;
}

export interface ServerStatus {
  version?: string;
  model?: Part;
  ads?: Part;
  library?: Part;
  embedder?: Part;
  workspace?: Part;
  problems?: (string | { where?: string; message: string })[];
}
