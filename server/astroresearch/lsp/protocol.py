"""Names and parameters of our custom methods; docs/protocol.md is the reference and a test compares the two.

Every request `astroresearch/AREA/VERB` has a twin command `astroresearch.AREA.VERB` for `workspace/executeCommand` with one
JSON argument of the same shape. Parameters are camelCase on the wire. Results are the domain's dataclasses in camelCase
(`lsp.convert.plain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

PROTOCOL_VERSION = 1
PREFIX = "astroresearch/"


class Params(BaseModel):
    """Base of all parameters; unknown fields are ignored, so that newer clients work with older servers."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True, defer_build=True
    )


class Nothing(Params):
    """No parameters."""


class TextDocumentRef(Params):
    """A document by URI."""

    uri: str


class ChatContext(Params):
    """What the editor shows when a question is sent."""

    text_document: TextDocumentRef | None = None
    version: int | None = None
    range: dict[str, Any] | None = None
    "An LSP range: the selection."
    cite_keys: list[str] = []


class ChatSend(Params):
    """Asks; `steer` hands the text to the turn that runs."""

    text: str = Field(min_length=1)
    session_id: str | None = None
    mode: Literal["agent", "plan", "coordinator"] = "agent"
    model: str | None = None
    thinking: bool = False
    steer: bool = False
    context: ChatContext | None = None
    work_done_token: str | int | None = None
    partial_result_token: str | int | None = None


class ChatCancel(Params):
    """Stops the session's running turn and drops its queue."""

    session_id: str


class SessionRef(Params):
    """A session by id."""

    session_id: str


class SessionList(Params):
    """Newest first."""

    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0)


class SessionEvents(Params):
    """Replays the timeline from `from_seq` (inclusive)."""

    session_id: str
    from_seq: int = Field(0, ge=0)
    limit: int = Field(5_000, ge=1, le=20_000)
    last: bool = False
    "The newest `limit` events instead of the first ones."


class SessionRename(Params):
    """Gives a session a title."""

    session_id: str
    title: str = Field(min_length=1, max_length=200)


class PapersSearch(Params):
    """ADS and arXiv at once, merged."""

    query: str = Field(min_length=1)
    sources: list[Literal["ads", "arxiv"]] = []
    limit: int = Field(10, ge=1, le=100)
    sort: Literal["relevance", "date", "citations"] = "relevance"
    text_document: TextDocumentRef | None = None
    partial_result_token: str | int | None = None
    work_done_token: str | int | None = None


class PaperRef(Params):
    """A paper by any identifier."""

    paper: str = Field(min_length=1)


class PapersDownload(Params):
    """Downloads and parses."""

    paper: str = Field(min_length=1)
    work_done_token: str | int | None = None


class PapersImport(Params):
    """Copies PDFs of the user's into the library."""

    paths: list[str] = Field(min_length=1)
    "Files or folders."
    work_done_token: str | int | None = None


class PapersText(Params):
    """A paper's text, whole or one page."""

    paper: str = Field(min_length=1)
    page: int | None = Field(None, ge=1)


class PapersBibtex(Params):
    """BibTeX of papers, as ADS writes it."""

    papers: list[str] = []
    "Empty: the whole library."
    key_format: str = "bibcode"


class PapersList(Params):
    """What is in the library, newest first."""

    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0)


class LibrarySearch(Params):
    """Passages of the library."""

    query: str = Field(min_length=1)
    limit: int = Field(8, ge=1, le=50)
    papers: list[str] = []


class LibraryAsk(Params):
    """Quotes of the library that answer a question, each checked."""

    question: str = Field(min_length=1)
    limit: int = Field(5, ge=1, le=20)
    papers: list[str] = []


class NoteCreate(Params):
    """A note; anchored to a page and quote, a cite key, or a place in the manuscript."""

    text: str
    paper: str = ""
    page: int = Field(0, ge=0)
    quote: str = ""
    cite_key: str = ""
    uri: str = ""
    line: int = 0
    context: str = ""
    tags: list[str] = []
    color: str = ""


class NoteList(Params):
    """Notes, newest first; narrowed by paper or cite key."""

    paper: str = ""
    cite_key: str = ""
    tag: str = ""
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0)


class NoteRef(Params):
    """A note by id."""

    id: str


class NoteUpdate(Params):
    """Changes what is given; `updated` of the note as it was read makes a conflict visible."""

    id: str
    text: str | None = None
    tags: list[str] | None = None
    color: str | None = None
    updated: str | None = None


class NoteSearch(Params):
    """Full-text search over notes."""

    query: str = Field(min_length=1)
    limit: int = Field(20, ge=1, le=200)


class TargetResolve(Params):
    """An object's name."""

    name: str = Field(min_length=1, max_length=200)


class BibInsert(Params):
    """Adds a paper's BibTeX to the right .bib of this manuscript (unless it is there) as a versioned edit."""

    paper: str = Field(min_length=1)
    text_document: TextDocumentRef
    position: dict[str, Any] | None = None
    "Where to insert `\\citep{key}`; None inserts the entry only."


class Answer(Params):
    """The answer to a question that came as an event, for front ends that show it in the timeline."""

    id: str
    choice: str = ""
    text: str = ""


class SecretSet(Params):
    """Hands a secret of the editor's store over; it is kept in memory only."""

    key: Literal["model.api_key", "ads.token"]
    value: str


class ModelChoose(Params):
    """Chooses the model for this window."""

    name: str


@dataclass(frozen=True, slots=True)
class Method:
    """One custom method: its parameters, what it answers, and whether it is a notification from the client."""

    params: type[Params]
    result: str
    handler: str
    "`module:function` below lsp/features."
    notification: bool = False


METHODS: Mapping[str, Method] = {
    PREFIX + "chat/send": Method(
        ChatSend,
        "{sessionId, turnId, answer, citations, usage, stopReason} or {sessionId, queued, position}",
        "chat:send",
    ),
    PREFIX + "chat/cancel": Method(ChatCancel, "", "chat:cancel", notification=True),
    PREFIX + "chat/answer": Method(Answer, "{accepted}", "chat:answer"),
    PREFIX + "session/list": Method(SessionList, "{sessions: [Session]}", "sessions:list_sessions"),
    PREFIX + "session/get": Method(SessionRef, "Session with {messages}", "sessions:get"),
    PREFIX + "session/events": Method(SessionEvents, "{events: [event], nextSeq}", "sessions:events"),
    PREFIX + "session/rename": Method(SessionRename, "Session", "sessions:rename"),
    PREFIX + "session/delete": Method(SessionRef, "{deleted}", "sessions:delete"),
    PREFIX + "session/export": Method(SessionRef, "{markdown}", "sessions:export"),
    PREFIX + "models/list": Method(Nothing, "{models: [{name, active, reason}]}", "status:models"),
    PREFIX + "models/choose": Method(ModelChoose, "{active}", "status:choose"),
    PREFIX + "secrets/set": Method(SecretSet, "{accepted}", "status:set_secret"),
    PREFIX + "status": Method(Nothing, "{version, model, ads, library, workspace, problems}", "status:status"),
    PREFIX + "papers/search": Method(PapersSearch, "{hits: [SearchHit], notices, fromCache}", "papers:search"),
    PREFIX + "papers/get": Method(PaperRef, "Paper", "papers:get"),
    PREFIX + "papers/list": Method(PapersList, "{papers: [Paper], total}", "papers:list_papers"),
    PREFIX + "papers/download": Method(PapersDownload, "Paper", "papers:download"),
    PREFIX + "papers/import": Method(
        PapersImport, "{imported: [Paper], failed: [{path, reason, message}]}", "papers:import_files"
    ),
    PREFIX + "papers/text": Method(PapersText, "{paper, pages: [PageText]}", "papers:text"),
    PREFIX + "papers/bibtex": Method(PapersBibtex, "{bibtex}", "papers:bibtex"),
    PREFIX + "papers/remove": Method(PaperRef, "{removed}", "papers:remove"),
    PREFIX + "library/search": Method(LibrarySearch, "{hits: [PassageHit], mode, notice}", "library:search"),
    PREFIX + "library/ask": Method(LibraryAsk, "{answer, citations: [Citation], notice}", "library:ask"),
    PREFIX + "library/status": Method(
        Nothing, "{papers, searchable, passages, vectors, embedder, notes, path}", "library:status"
    ),
    PREFIX + "notes/create": Method(NoteCreate, "Note", "notes:create"),
    PREFIX + "notes/list": Method(NoteList, "{notes: [Note]}", "notes:list_notes"),
    PREFIX + "notes/get": Method(NoteRef, "Note", "notes:get"),
    PREFIX + "notes/update": Method(NoteUpdate, "Note", "notes:update"),
    PREFIX + "notes/delete": Method(NoteRef, "{deleted}", "notes:delete"),
    PREFIX + "notes/search": Method(NoteSearch, "{notes: [Note]}", "notes:search"),
    PREFIX + "notes/export": Method(NoteList, "{markdown}", "notes:export"),
    PREFIX + "targets/resolve": Method(TargetResolve, "Target", "targets:resolve"),
    PREFIX + "bib/insert": Method(BibInsert, "{key, added, file}", "bib:insert"),
    PREFIX + "tools/list": Method(Nothing, "{tools: [{name, description, kind, effect, parameters}]}", "status:tools"),
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
