"""Names and parameters of our custom methods; docs/protocol.md is the reference and a test compares the two.

Every request `astroresearch/AREA/VERB` has a twin command `astroresearch.AREA.VERB` for `workspace/executeCommand` with one
JSON argument of the same shape. Parameters are camelCase on the wire. Results are the domain's dataclasses in camelCase
(`lsp.convert.plain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROTOCOL_VERSION = 1
PREFIX = "astroresearch/"


@dataclass(frozen=True, slots=True)
class Method:
    """One custom method: its parameters, what it answers, and whether it is a notification from the client."""

    params: str
    "Name of the class in lsp/params.py."
    result: str
    handler: str
    "`module:function` below lsp/features."
    notification: bool = False


METHODS: Mapping[str, Method] = {
    PREFIX + "chat/send": Method(
        "ChatSend",
        "{sessionId, turnId, answer, citations, usage, stopReason} or {sessionId, queued, position}",
        "chat:send",
    ),
    PREFIX + "chat/cancel": Method("ChatCancel", "", "chat:cancel", notification=True),
    PREFIX + "chat/answer": Method("Answer", "{accepted}", "chat:answer"),
    PREFIX + "session/list": Method("SessionList", "{sessions: [Session]}", "sessions:list_sessions"),
    PREFIX + "session/get": Method("SessionRef", "Session with {messages}", "sessions:get"),
    PREFIX + "session/events": Method("SessionEvents", "{events: [event], nextSeq}", "sessions:events"),
    PREFIX + "session/rename": Method("SessionRename", "Session", "sessions:rename"),
    PREFIX + "session/delete": Method("SessionRef", "{deleted}", "sessions:delete"),
    PREFIX + "session/export": Method("SessionRef", "{markdown}", "sessions:export"),
    PREFIX + "session/audit": Method(
        "SessionRef", "{entries: [{ts, sessionId, agent, kind, payload}]}", "sessions:audit"
    ),
    PREFIX + "permissions/list": Method(
        "Nothing", "{grants: [{rule, scope, agent, sessionId}]}", "permissions:list_grants"
    ),
    PREFIX + "permissions/revoke": Method("PermissionRule", "{revoked}", "permissions:revoke"),
    PREFIX + "models/list": Method("Nothing", "{models: [{name, active, kind, reason}]}", "status:models"),
    PREFIX + "models/choose": Method("ModelChoose", "{active}", "status:choose"),
    PREFIX + "secrets/set": Method("SecretSet", "{accepted}", "status:set_secret"),
    PREFIX + "status": Method(
        "Nothing", "{version, model, ads, keyring, library, embedder, workspace, grants, problems}", "status:status"
    ),
    PREFIX + "papers/search": Method("PapersSearch", "{hits: [SearchHit], notices, fromCache}", "papers:search"),
    PREFIX + "papers/get": Method("PaperRef", "Paper", "papers:get"),
    PREFIX + "papers/list": Method("PapersList", "{papers: [Paper], total}", "papers:list_papers"),
    PREFIX + "papers/download": Method("PapersDownload", "Paper", "papers:download"),
    PREFIX + "papers/import": Method(
        "PapersImport", "{imported: [Paper], failed: [{path, reason, message}]}", "papers:import_files"
    ),
    PREFIX + "papers/text": Method("PapersText", "{paper, pages: [PageText]}", "papers:text"),
    PREFIX + "papers/bibtex": Method("PapersBibtex", "{bibtex}", "papers:bibtex"),
    PREFIX + "papers/remove": Method("PaperRef", "{removed}", "papers:remove"),
    PREFIX + "library/search": Method("LibrarySearch", "{hits: [PassageHit], mode, notice}", "library:search"),
    PREFIX + "library/ask": Method("LibraryAsk", "{answer, citations: [Citation], notice}", "library:ask"),
    PREFIX + "library/status": Method(
        "Nothing", "{papers, pages, passages, vectors, embedder, notes, path}", "library:status"
    ),
    PREFIX + "notes/create": Method("NoteCreate", "Note", "notes:create"),
    PREFIX + "notes/list": Method("NoteList", "{notes: [Note]}", "notes:list_notes"),
    PREFIX + "notes/get": Method("NoteRef", "Note", "notes:get"),
    PREFIX + "notes/update": Method("NoteUpdate", "Note", "notes:update"),
    PREFIX + "notes/delete": Method("NoteRef", "{deleted}", "notes:delete"),
    PREFIX + "notes/search": Method("NoteSearch", "{notes: [Note]}", "notes:search"),
    PREFIX + "notes/export": Method("NoteList", "{markdown}", "notes:export"),
    PREFIX + "targets/resolve": Method("TargetResolve", "Target", "targets:resolve"),
    PREFIX + "bib/insert": Method("BibInsert", "{key, added, file}", "bib:insert"),
    PREFIX + "tools/list": Method(
        "Nothing", "{tools: [{name, description, kind, effect, decision, parameters}]}", "status:tools"
    ),
}

SERVER_REQUESTS: Mapping[str, str] = {
    PREFIX
    + "permission/request": "{id, sessionId, turnId, tool, toolId, agent, title, detail, options, reason} → {id, choice, reason?}",
    PREFIX + "user/ask": "{id, sessionId, turnId, text, choices} → {id, answer} or null",
}
"Requests from the server, only to clients that declare `experimental.astroresearch.permission` / `.askUser`."

SERVER_NOTIFICATIONS: tuple[str, ...] = (
    PREFIX + "didChangeStatus",
    PREFIX + "didChangeLibrary",
    PREFIX + "didChangeNotes",
    PREFIX + "didChangeSessions",
)


EVENT_WORDS: tuple[str, ...] = (
    "session", "thought.delta", "message.delta", "tool.start", "tool.progress", "tool.end", "plan", "permission",
    "question", "subagent.start", "subagent.end", "compaction", "usage", "notice", "error", "done",
)  # fmt: skip
"`engine.events.WIRE` in words, so that `initialize` need not import the engine; a test compares them."


def command_of(method: str) -> str:
    """The executeCommand twin: `astroresearch/notes/list` → `astroresearch.notes.list`."""
    return method.replace("/", ".")
