// What the extension and its webview say to one another. Plain JSON only.

import type { PermissionRequest, TimelineEvent, UserQuestion } from "../protocol";

/** What the chat shows beside the timeline. */
export interface ChatState {
  server: "starting" | "running" | "stopped" | "missing";
  /** For people: the model, or that there is none. */
  model: string;
  /** The open document and selection that goes with the next question; empty for none. */
  context: string;
  /** Questions that wait for their turn. */
  queued: string[];
}

export type ToWebview =
  /** Forgets everything and shows this session's events. `earlier`: there are older ones. */
  | { type: "session"; sessionId: string; title: string; events: TimelineEvent[]; earlier: boolean }
  | { type: "events"; events: TimelineEvent[] }
  | { type: "ask"; asked: PermissionRequest | UserQuestion }
  | { type: "withdrawn"; id: string }
  | { type: "interrupted" }
  /** A send could not be handed over: the text goes back to the input. */
  | { type: "refused"; text: string; message: string; hint: string }
  | { type: "sent" }
  | { type: "focus"; text?: string }
  | { type: "state"; state: ChatState };

export type FromWebview =
  | { type: "ready" }
  | { type: "send"; text: string; mode: "agent" | "plan"; withContext: boolean; steer?: boolean }
  | { type: "stop" }
  | { type: "earlier" }
  | { type: "gap"; seq: number }
  | { type: "answer"; id: string; choice: string; text: string }
  | { type: "quote"; paperId: string; page: number; quote: string }
  | { type: "cite"; paperId: string }
  | { type: "link"; url: string }
  | { type: "copy"; text: string }
  | { type: "command"; command: "searchPapers" | "addPapers" | "chooseModel" | "restart" | "showLog" | "createEnvironment" | "newSession" | "sessions" };
