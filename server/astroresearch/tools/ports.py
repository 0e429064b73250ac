"""What tools ask for, as Protocols; library/ and agents/ fit these shapes and app.py joins them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from astroresearch.domain.note import Note, Place
from astroresearch.domain.paper import Paper, SearchOutcome
from astroresearch.domain.passage import Citation, PageText, Retrieval
from astroresearch.domain.skill import SkillInfo
from astroresearch.domain.target import Target
from astroresearch.engine.tool import ToolContext
from astroresearch.engine.turn import SubagentReport

Progress = Callable[[str, float | None], None]


class PaperCatalogue(Protocol):
    """Finding papers and their records. Raises `ServiceError`, `InvalidInput`, `NotFound`."""

    async def search(
        self,
        query: str,
        *,
        sources: Sequence[str] = (),
        limit: int = 10,
        sort: str = "relevance",
        cite_keys: Sequence[str] = (),
        on_partial: Callable[[SearchOutcome], None] | None = None,
    ) -> SearchOutcome:
        """ADS and arXiv at once, merged."""
        ...

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        """By any identifier: our id, bibcode, DOI, arXiv id, URL; the library first, then ADS and arXiv."""
        ...


class PaperFiles(Protocol):
    """Getting papers and reading them into the library. Raises `ServiceError`, `DocumentError`, `NotFound`."""

    async def download(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Fetches the PDF from the built-in hosts; `state` is then `downloaded` (or `searchable` if it was)."""
        ...

    async def import_file(self, path: Path, *, progress: Progress | None = None) -> Paper:
        """Copies a file of the user's into the library and parses it."""
        ...

    async def parse(self, paper: str, *, progress: Progress | None = None) -> Paper:
        """Text, passages and full-text index; vectors follow in the background."""
        ...

    async def text(self, paper: str, *, page: int | None = None) -> Sequence[PageText]:
        """The text of all pages, or of one."""
        ...


class PassageSearch(Protocol):
    """The library's text."""

    async def passages(
        self, query: str, *, limit: int = 8, papers: Sequence[str] = (), per_paper: int = 3
    ) -> Retrieval:
        """Hybrid search; `papers` narrows it to these (any identifiers)."""
        ...

    async def citations(self, query: str, retrieval: Retrieval, *, limit: int = 3) -> Sequence[Citation]:
        """The sentences of these passages that answer best, each checked against its page."""
        ...

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        """Looks a quote up in the paper's own text; `verified` and `rects` say what was found."""
        ...


class NoteBook(Protocol):
    """The user's notes."""

    async def create(
        self,
        text: str,
        *,
        paper: str = "",
        page: int = 0,
        quote: str = "",
        cite_key: str = "",
        place: Place | None = None,
        tags: Sequence[str] = (),
        color: str = "",
        origin: str = "user",
        session_id: str = "",
    ) -> Note:
        """Saved durably before it returns."""
        ...

    async def search(self, query: str, *, limit: int = 20) -> Sequence[Note]:
        """Full-text search over notes."""
        ...


class Objects(Protocol):
    """Name resolution."""

    async def resolve(self, name: str) -> Target:
        """Sesame, cached for 30 days. Raises `NotFound` naming the services that were asked."""
        ...


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as the user sees it: the unsaved buffer where it is open."""

    path: Path
    text: str
    version: str
    "Changes with every change: `buffer:12`, `disk:<hash>`."
    is_buffer: bool
    writable: bool = True
    trusted: bool = True
    "False in a workspace that the user has not trusted: the text is then a stranger's."


class Workspace(Protocol):
    """The files that tools may see. Every path is tested on its canonical form; raises `NotAllowed`, `NotFound`, `Conflict`."""

    @property
    def roots(self) -> Sequence[Path]:
        """Workspace folders first, then the library's and the skills' folders; canonical."""
        ...

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """The canonical path of a name given by a model, absolute or relative to the first root."""
        ...

    async def read(self, path: Path) -> FileContent:
        """The buffer if the file is open, else the disk (UTF-8, falling back to Latin-1)."""
        ...

    async def walk(self, base: Path) -> Sequence[Path]:
        """All files below, without `.git`, caches and what is not readable; sorted; at most 20,000."""
        ...

    async def replace(self, path: Path, *, old: FileContent, new_text: str, label: str) -> FileContent:
        """Writes the change: `workspace/applyEdit` with the buffer's version in an editor, atomically on disk without one.

        Raises `Conflict` if the file is no longer `old`.
        """
        ...


class Questions(Protocol):
    """Asking the user."""

    async def ask(self, text: str, choices: Sequence[str], context: ToolContext[Any]) -> str | None:
        """The answer, or None when none came in time. Emits the question event and withdraws it on a cancel."""
        ...


class TodoList(Protocol):
    """The session's plan, stored."""

    async def load(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Items {id, content, status, blockedBy}."""
        ...

    async def save(self, session_id: str, items: Sequence[Mapping[str, Any]], context: ToolContext[Any]) -> None:
        """Stores them whole and emits the `plan` event."""
        ...


class Skills(Protocol):
    """Skills that can be loaded."""

    def index(self) -> Sequence[SkillInfo]:
        """All of them, sorted by name."""
        ...

    async def load(self, name: str) -> tuple[SkillInfo, str]:
        """A skill and its body. Raises `NotFound` naming those that exist."""
        ...


class Spawner(Protocol):
    """Runs a subagent on the one engine."""

    async def spawn(
        self, task: str, *, name: str, max_steps: int, context: ToolContext[Any], read_only: bool = True
    ) -> SubagentReport:
        """Own context and child session; permissions at most the parent's; `read_only` leaves tools that write out."""
        ...


@dataclass
class ToolServices:
    """Everything that tools may use, joined by app.py."""

    catalogue: PaperCatalogue
    files: PaperFiles
    passages: PassageSearch
    notes: NoteBook
    objects: Objects
    workspace: Workspace
    questions: Questions
    todos: TodoList
    skills: Skills
    spawner: Spawner
