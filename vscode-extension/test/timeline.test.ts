import assert from "node:assert/strict";
import { test } from "node:test";

import { ask, EMPTY, fold, foldAll, interrupt, running, type ToolItem } from "../src/chat/timeline";
import type { EventBodies, EventType, TimelineEvent } from "../src/protocol";

function events(...bodies: { [T in EventType]: { type: T; turnId?: string; agent?: string } & EventBodies[T] }[EventType][]): TimelineEvent[] {
  return bodies.map((body, seq) => ({ v: 1, seq, turnId: "t1", agent: "main", ts: "2026-01-01T00:00:00Z", ...body }) as TimelineEvent);
}

const citation = { paperId: "p1", page: 3, quote: "the gas cools", verified: true };
const OPEN = { type: "session", sessionId: "s1", title: "Cooling", question: "Does it cool?" } as const;
const START = { type: "tool.start", id: "c1", name: "rag_search", kind: "search", arguments: { query: "cooling" }, step: 1 } as const;
const END = { type: "tool.end", id: "c1", status: "completed", preview: "2 passages", isError: false, metadata: { citations: [citation] }, durationMs: 40 } as const;

test("a turn: thoughts, a tool, an answer, its end", () => {
  const stream = events(
    OPEN,
    { type: "thought.delta", text: "I look " },
    { type: "thought.delta", text: "first." },
    START,
    { type: "tool.progress", id: "c1", text: "reading", fraction: 0.5 },
    END,
    { type: "message.delta", text: "It " },
    { type: "message.delta", text: "does." },
    { type: "usage", input: 10, output: 2, cached: 0, estimated: true },
    { type: "done", stopReason: "end_turn" },
  );
  const timeline = foldAll(EMPTY, stream);
  const [turn] = timeline.turns;
  assert.equal(timeline.title, "Cooling");
  assert.equal(turn?.question, "Does it cool?");
  assert.deepEqual(turn?.items.map((item) => item.kind), ["thought", "tool", "message"]);
  const [thought, tool, message] = turn?.items ?? [];
  assert.equal(thought?.kind === "thought" && thought.text, "I look first.");
  assert.equal(message?.kind === "message" && message.text, "It does.");
  assert.equal(tool?.kind === "tool" && tool.status, "completed");
  assert.deepEqual(turn?.citations, [citation]);
  assert.equal(turn?.status, "end_turn");
  assert.equal(turn?.usage?.input, 10);
  assert.equal(running(timeline), undefined);
});

test("folding live equals folding a replay, and what was seen changes nothing", () => {
  const stream = events(OPEN, START, END, { type: "message.delta", text: "Yes." }, { type: "done", stopReason: "end_turn" });
  const live = stream.reduce(fold, EMPTY);
  assert.deepEqual(live, foldAll(EMPTY, stream));
  assert.equal(foldAll(live, stream), live);
});

test("objects that did not change keep their identity", () => {
  const before = foldAll(EMPTY, events(OPEN, START, { type: "message.delta", text: "a" }));
  const after = fold(before, { ...events(OPEN, OPEN, OPEN, { type: "message.delta", text: "b" })[3]! });
  assert.equal(after.turns[0]?.items[0], before.turns[0]?.items[0]);
  assert.notEqual(after.turns[0]?.items[1], before.turns[0]?.items[1]);
});

test("a gap is noticed and closed by the missing events", () => {
  const stream = events(OPEN, { type: "message.delta", text: "a" }, { type: "message.delta", text: "b" }, { type: "message.delta", text: "c" });
  const gapped = [stream[0]!, stream[2]!, stream[3]!].reduce(fold, EMPTY);
  assert.equal(gapped.gap, true);
  assert.equal(gapped.seq, 0);
  const mended = foldAll(gapped, stream.slice(1));
  assert.equal(mended.gap, false);
  const item = mended.turns[0]?.items[0];
  assert.equal(item?.kind === "message" && item.text, "abc");
});

test("the tail of a timeline may begin in the middle of a turn", () => {
  const tail = foldAll(EMPTY, events(OPEN, START, END).slice(2));
  assert.equal((tail.turns[0]?.items[0] as ToolItem).status, "completed");
});

test("three tools side by side keep their own states", () => {
  const start = (id: string) => ({ ...START, id });
  const stream = events(OPEN, start("a"), start("b"), start("c"), { ...END, id: "b" }, { ...END, id: "a", status: "failed" as const });
  const items = foldAll(EMPTY, stream).turns[0]?.items as ToolItem[];
  assert.deepEqual(items.map(({ id, status }) => [id, status]), [["a", "failed"], ["b", "completed"], ["c", "running"]]);
  assert.equal(foldAll(EMPTY, stream).turns[0]?.citations.length, 1);
});

test("what still runs when a turn ends was interrupted; what was asked was not answered", () => {
  const asked = { type: "permission" as const, id: "q1", toolId: "c1", title: "Edit a.tex", detail: "-a\n+b", options: [{ id: "once", label: "Allow once" }] };
  const timeline = foldAll(EMPTY, events(OPEN, START, asked, { type: "done", stopReason: "cancelled" }));
  const [tool, card] = timeline.turns[0]?.items ?? [];
  assert.equal(tool?.kind === "tool" && tool.status, "interrupted");
  assert.equal(card?.kind === "permission" && card.resolved, "cancelled");
});

test("a server that dies interrupts its turn", () => {
  const timeline = interrupt(foldAll(EMPTY, events(OPEN, START)));
  assert.equal(timeline.turns[0]?.status, "interrupted");
  assert.equal(interrupt(timeline), timeline);
});

test("a permission comes as a request and as an event: one card, whichever is first", () => {
  const options = [{ id: "once", label: "Allow once" }];
  const request = { id: "q1", sessionId: "s1", turnId: "t1", tool: "file_edit", toolId: "c1", agent: "main", title: "Edit", detail: "diff", options, reason: "edits ask" };
  const event = { type: "permission" as const, id: "q1", toolId: "c1", title: "Edit", detail: "diff", options };
  const stream = events(OPEN, event, { ...event, resolved: "once" });
  const requestFirst = fold(ask(foldAll(EMPTY, stream.slice(0, 1)), request), stream[1]!);
  const eventFirst = ask(foldAll(EMPTY, stream.slice(0, 2)), request);
  for (const timeline of [requestFirst, eventFirst]) {
    assert.equal(timeline.turns[0]?.items.length, 1);
    const card = timeline.turns[0]?.items[0];
    assert.equal(card?.kind === "permission" && card.reason, "edits ask");
    const done = fold(timeline, stream[2]!).turns[0]?.items[0];
    assert.equal(done?.kind === "permission" && done.resolved, "once");
  }
});

test("a subagent's text is not mixed with the main agent's", () => {
  const stream = events(
    OPEN,
    { type: "subagent.start", id: "x", name: "reader", task: "read" },
    { type: "message.delta", text: "main" },
    { type: "message.delta", text: "sub", agent: "reader" },
    { type: "subagent.end", id: "x", status: "completed", summary: "read it" },
  );
  const items = foldAll(EMPTY, stream).turns[0]?.items ?? [];
  assert.deepEqual(items.map((item) => [item.kind, item.agent]), [["subagent", "main"], ["message", "main"], ["message", "reader"]]);
  assert.equal(items[0]?.kind === "subagent" && items[0].summary, "read it");
});

test("a newer server's event is passed over", () => {
  const odd = { ...events(OPEN, OPEN)[1], type: "hologram" } as unknown as TimelineEvent;
  const timeline = foldAll(EMPTY, [events(OPEN)[0]!, odd]);
  assert.equal(timeline.seq, 1);
  assert.deepEqual(timeline.turns[0]?.items, []);
});
