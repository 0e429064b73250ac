"""Doubles of everything that tools ask for: a real folder as workspace, a small library in memory, and a record of calls."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from astroresearch.domain.note import Note, Place
from astroresearch.domain.paper import Identifiers, Paper, SearchHit, SearchOutcome
from astroresearch.domain.passage import Citation, PageRect, PageText, Passage, PassageHit, Retrieval
from astroresearch.domain.skill import SkillInfo
from astroresearch.domain.target import Target
from astroresearch.engine.tool import ToolContext
from astroresearch.engine.turn import SubagentReport
from astroresearch.errors import Conflict, InvalidInput, NotFound
from astroresearch.tools import sandbox
from astroresearch.tools.ports import FileContent, Progress, ToolServices

PERSEUS = Paper(
    id="2003MNRAS.344L..43F",
    title="A deep Chandra observation of the Perseus cluster: shocks and ripples",
    authors=("Fabian, A. C.", "Sanders, J. S.", "Allen, S. W."),
    year=2003,
    abstract="We present preliminary results from a deep observation of the Perseus galaxy cluster.",
    identifiers=Identifiers(bibcode="2003MNRAS.344L..43F", arxiv="astro-ph/0306036"),
    state="searchable",
    pages_count=2,
)
PAGES = (
    PageText(1, "The Perseus cluster is the brightest in X-rays. Ripples are seen in the gas around NGC 1275."),
    PageText(2, "The ripples are sound waves. Viscous dissipation of their energy may balance radiative cooling."),
)
NGC1275 = Target("NGC 1275", "NGC 1275", 49.950667, 41.511696, "Simbad", object_type="Sy2", redshift=0.017284)


def version_of(text: str) -> str:
    return "disk:" + hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass
class FolderWorkspace:
    """A real folder; `buffers` are open files with unsaved text."""

    folder: Path
    readable: tuple[Path, ...] = ()
    trusted: bool = True
    buffers: dict[Path, str] = field(default_factory=dict)
    writes: list[Path] = field(default_factory=list)

    @property
    def _roots(self) -> sandbox.Roots:
        return sandbox.Roots((self.folder,), self.readable)

    @property
    def roots(self) -> Sequence[Path]:
        return self._roots.canonical

    def resolve(self, path: str, *, write: bool = False) -> Path:
        return sandbox.resolve(path, self._roots, write=write)

    async def read(self, path: Path) -> FileContent:
        writable = sandbox.is_inside(path, [Path(os.path.realpath(self.folder))])
        if path in self.buffers:
            text = self.buffers[path]
            return FileContent(path, text, "buffer:" + version_of(text), True, writable, self.trusted)
        if not path.is_file():
            raise NotFound(f"There is no file {path}.")
        text = path.read_text("utf-8", errors="replace")
        return FileContent(path, text, version_of(text), False, writable, self.trusted)

    async def walk(self, base: Path) -> Sequence[Path]:
        return sorted(p for p in base.rglob("*") if p.is_file() and ".git" not in p.parts)

    async def replace(self, path: Path, *, old: FileContent, new_text: str, label: str) -> FileContent:
        if (await self.read(path)).version != old.version:
            raise Conflict(f"{path.name} has changed.")
        self.writes.append(path)
        if path in self.buffers:
            self.buffers[path] = new_text
        else:
            path.write_text(new_text, "utf-8")
        return await self.read(path)


@dataclass
class FakeLibrary:
    """Catalogue, files, passages, notes and objects of one paper; `texts` replaces its pages."""

    pages: tuple[PageText, ...] = PAGES
    paper: Paper = PERSEUS
    failing: Exception | None = None
    queries: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    async def search(
        self,
        query: str = "",
        *,
        sources: Sequence[str] = (),
        limit: int = 10,
        sort: str = "relevance",
        cite_keys: Sequence[str] = (),
        on_partial: Callable[[SearchOutcome], None] | None = None,
    ) -> SearchOutcome:
        self.queries.append(query)
        self._fail()
        if "nothing" in query:
            return SearchOutcome((), ("ADS: no token is set.",))
        outcome = SearchOutcome((SearchHit(self.paper, in_library=True, cited_here="fabian" in cite_keys),))
        if on_partial is not None:
            on_partial(outcome)
        return outcome

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        self.queries.append(paper)
        self._fail()
        if paper not in (self.paper.id, self.paper.identifiers.bibcode, self.paper.identifiers.arxiv):
            raise NotFound(f"No paper answers to {paper}.")
        return self.paper

    async def download(self, paper: str, *, progress: Progress | None = None) -> Paper:
        if progress is not None:
            progress("1.0 of 2.0 MB", 0.5)
        return dataclasses.replace(await self.get(paper), state="downloaded")

    async def import_file(self, path: Path, *, progress: Progress | None = None) -> Paper:
        raise InvalidInput("not used")

    async def parse(self, paper: str, *, progress: Progress | None = None) -> Paper:
        if progress is not None:
            progress("page 1 of 2", 0.5)
        return await self.get(paper)

    async def text(self, paper: str, *, page: int | None = None) -> Sequence[PageText]:
        await self.get(paper)
        return [p for p in self.pages if page in (None, p.page)]

    async def passages(
        self, query: str, *, limit: int = 8, papers: Sequence[str] = (), per_paper: int = 3
    ) -> Retrieval:
        self.queries.append(query)
        self._fail()
        if "nothing" in query:
            return Retrieval((), "text", "The embedder is still starting.")
        hits = [
            PassageHit(
                Passage(p.page, self.paper.id, p.page - 1, "1 Introduction", p.page, p.page, p.text, 0, 1), 0.03, "both"
            )
            for p in self.pages
        ]
        return Retrieval(tuple(hits[:limit]), "hybrid")

    async def citations(self, query: str, retrieval: Retrieval, *, limit: int = 5) -> Sequence[Citation]:
        return [await self.verify(self.paper.id, hit.passage.text.split(".")[0]) for hit in retrieval.hits[:limit]]

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        await self.get(paper)
        for p in self.pages:
            if quote in p.text and page in (None, p.page):
                rects = (PageRect(p.page, (0.0, 0.0, 10.0, 10.0)),)
                return Citation(self.paper.id, p.page, quote, True, rects=rects, label="Fabian et al. 2003")
        return Citation(self.paper.id, page or 0, quote, False)

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
        note = Note(
            f"n{len(self.notes) + 1}",
            text,
            tuple(tags),
            paper_id=paper,
            page=page,
            quote=quote,
            quote_verified=bool(quote),
            cite_key=cite_key,
            origin=origin,  # type: ignore[arg-type]
            session_id=session_id,
        )
        self.notes.append(note)
        return note

    async def resolve(self, name: str) -> Target:
        self.queries.append(name)
        self._fail()
        if name != "NGC 1275":
            raise NotFound(f"No object answers to {name}: Simbad, NED and VizieR were asked.")
        return NGC1275

    def _fail(self) -> None:
        if self.failing is not None:
            raise self.failing


class FakeNotes:
    """The note book over a `FakeLibrary`, whose own `search` is for papers."""

    def __init__(self, library: FakeLibrary) -> None:
        self.create = library.create
        self._library = library

    async def search(self, query: str, *, limit: int = 20) -> Sequence[Note]:
        return [note for note in self._library.notes if query in note.text][:limit]


@dataclass
class FakeQuestions:
    answer: str | None = "the second one"
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    async def ask(self, text: str, choices: Sequence[str], context: ToolContext[Any]) -> str | None:
        self.asked.append((text, tuple(choices)))
        return self.answer


@dataclass
class FakeTodos:
    lists: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    async def load(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        return self.lists.get(session_id, [])

    async def save(self, session_id: str, items: Sequence[Mapping[str, Any]], context: ToolContext[Any]) -> None:
        self.lists[session_id] = list(items)


@dataclass
class FakeSkills:
    body: str = "Check every cite key."
    trusted: bool = True

    def index(self) -> Sequence[SkillInfo]:
        return [SkillInfo("check-citations", "Checks the citations of a paper.", Path("/skills/check-citations"))]

    async def load(self, name: str) -> tuple[SkillInfo, str]:
        if name != "check-citations":
            raise NotFound(f"There is no skill {name!r}.", hint="There are: check-citations.")
        return dataclasses.replace(self.index()[0], trusted=self.trusted), self.body


DONE = SubagentReport("Two papers agree.", "completed", 3, (("rag_search", "completed"),), "s2", True)


@dataclass
class FakeSpawner:
    report: SubagentReport = field(default_factory=lambda: DONE)
    spawned: list[tuple[str, str, int, bool]] = field(default_factory=list)

    async def spawn(
        self, task: str, *, name: str, max_steps: int, context: ToolContext[Any], read_only: bool = True
    ) -> SubagentReport:
        self.spawned.append((task, name, max_steps, read_only))
        return self.report


def services(workspace: FolderWorkspace, library: FakeLibrary | None = None, **others: Any) -> ToolServices:
    """All of them together; `others` replaces single ones."""
    library = library or FakeLibrary()
    given: dict[str, Any] = {
        "catalogue": library,
        "files": library,
        "passages": library,
        "notes": FakeNotes(library),
        "objects": library,
        "workspace": workspace,
        "questions": FakeQuestions(),
        "todos": FakeTodos(),
        "skills": FakeSkills(),
        "spawner": FakeSpawner(),
    }
    return ToolServices(**{**given, **others})


def context(services: ToolServices, **others: Any) -> ToolContext[ToolServices]:
    """A call's context; `others` sets its fields."""
    given: dict[str, Any] = {"session_id": "s1", "turn_id": "t1", "agent": "main", "call_id": "call00001"}
    return ToolContext(services=services, **{**given, **others})
