"""Parameters of our custom methods, validated: lsp/protocol.py names them, docs/protocol.md is the reference.

They are in a module of their own since `initialize` answers before pydantic is imported.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_MAX_COUNT = 2**53 - 1

Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
"A number that SQLite and JavaScript can hold."


def _readable(value: Any) -> Any:
    """The same JSON with U+FFFD for lone surrogates, which editors send when a cut splits a pair and UTF-8 can't hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    return value


class Params(BaseModel):
    """Base of all parameters; unknown fields are ignored, so that newer clients work with older servers."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _text_is_unicode(cls, values: Any) -> Any:
        return _readable(values)


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
    offset: Count = 0


class SessionEvents(Params):
    """Replays the timeline from `from_seq` (inclusive)."""

    session_id: str
    from_seq: Count = 0
    limit: int = Field(5_000, ge=1, le=20_000)
    last: bool = False
    "The newest `limit` events instead of the first ones."


class SessionRename(Params):
    """Gives a session a title."""

    session_id: str
    title: str = Field(min_length=1, max_length=200)


class PermissionRule(Params):
    """A rule as `permissions/list` shows it."""

    rule: str = Field(min_length=1)


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
    page: int | None = Field(None, ge=1, le=_MAX_COUNT)


class PapersBibtex(Params):
    """BibTeX of papers, as ADS writes it."""

    papers: list[str] = []
    "Empty: the whole library."
    key_format: str = "bibcode"


class PapersList(Params):
    """What is in the library, newest first."""

    limit: int = Field(100, ge=1, le=1000)
    offset: Count = 0


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
    page: Count = 0
    quote: str = ""
    cite_key: str = ""
    uri: str = ""
    line: Count = 0
    context: str = ""
    tags: list[str] = []
    color: str = ""


class NoteList(Params):
    """Notes, newest first; narrowed by paper or cite key."""

    paper: str = ""
    cite_key: str = ""
    tag: str = ""
    limit: int = Field(100, ge=1, le=1000)
    offset: Count = 0


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
    key: str = ""
    "The key of a new entry; empty: the entry's own."


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
