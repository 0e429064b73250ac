"""The user's notebook: notes anchored to a paper's page and quote, to a cite key, or to a place in the manuscript."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, Protocol, cast, get_args

from astroresearch.domain.note import Note, Place
from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import Citation
from astroresearch.errors import AstroResearchError, InvalidInput, NotFound
from astroresearch.store.database import Store

MAX_BYTES = 1_048_576
"Text of one note at most, in UTF-8."

Origin = Literal["user", "agent", "agent_tainted"]
_EXPORT_PAGE = 500


class PaperFinder(Protocol):
    """Finds a paper by any identifier, in the library first."""

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        """Raises `NotFound`, `InvalidInput`, `ServiceError`."""
        ...


class QuoteChecker(Protocol):
    """Looks a quote up in a paper's own text."""

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        """Raises `NotFound` where the paper's text is not here."""
        ...


class Notes:
    """Notes as the tools and the editor use them (fits `tools.ports.NoteBook`)."""

    def __init__(self, store: Store, papers: PaperFinder, quotes: QuoteChecker) -> None:
        self._store = store
        self._papers = papers
        self._quotes = quotes

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
        """Saves a note; it is on the disk when this returns.

        Args:
            text: The user's words, Markdown. May be empty where there is a quote.
            paper: Any identifier of the paper that it is about.
            page: The page of the quote, from 1; 0 lets the quote find it.
            quote: Words of the paper; whether they stand there is checked, the note is saved either way.
            cite_key: Key in the manuscript's bibliography.
            place: A place in the manuscript.
            tags: Words to find it by.
            color: Of the highlight.
            origin: `user`, `agent`, or `agent_tainted`.
            session_id: The conversation in which it was made.

        Raises:
            InvalidInput: There is nothing to save, or the text is too long.
            NotFound: No paper answers to this identifier.
            StoreError: It could not be saved.
        """
        _check(text, quote)
        if origin not in get_args(Origin):
            raise InvalidInput(f"`{origin}` is no origin of a note.", field="origin")
        about = await self._paper(paper) if paper.strip() else None
        verified, found_page = await self._verified(about, quote, page)
        note = Note(
            id="",
            text=text,
            tags=_tags(tags),
            color=color,
            paper_id=about.id if about else "",
            page=found_page,
            quote=quote,
            quote_verified=verified,
            cite_key=cite_key.strip(),
            place=place,
            origin=cast(Origin, origin),
            session_id=session_id,
        )
        return await self._store.notes.create(note)

    async def get(self, note_id: str) -> Note:
        """One note.

        Raises:
            NotFound: There is none of this id.
        """
        if (note := await self._store.notes.get(note_id)) is None:
            raise NotFound(f"There is no note `{note_id}`.", hint="It may have been deleted in another window.")
        return note

    async def update(
        self,
        note_id: str,
        *,
        expected_updated: str,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        color: str | None = None,
        place: Place | None = None,
    ) -> Note:
        """Changes what is given and leaves the rest.

        Args:
            note_id: The note.
            expected_updated: `updated` of the note as it was when the user began to edit.
            text: New text.
            tags: New tags.
            color: New colour.
            place: Where it stands in the manuscript now.

        Raises:
            Conflict: It was changed or deleted meanwhile; this version is kept as a second note, which the hint names.
            NotFound, InvalidInput, StoreError: As for `create`.
        """
        old = await self._store.notes.get(note_id)
        if old is None and text is None:
            raise NotFound(f"There is no note `{note_id}`.", hint="It may have been deleted in another window.")
        base = old or Note(id=note_id, text="")
        changed = dataclasses.replace(
            base,
            text=base.text if text is None else text,
            tags=base.tags if tags is None else _tags(tags),
            color=base.color if color is None else color,
            place=place or base.place,
        )
        _check(changed.text, changed.quote)
        return await self._store.notes.update(changed, expected_updated)

    async def delete(self, note_id: str) -> bool:
        """Deletes a note. False if it was gone already."""
        return await self._store.notes.delete(note_id)

    async def search(self, query: str, *, limit: int = 20) -> Sequence[Note]:
        """Full-text search over text, quotes, tags and cite keys."""
        return await self._store.notes.search(query, limit)

    async def export(self, *, paper: str = "", tag: str = "") -> str:
        """All notes, or those of one paper or tag, as Markdown: a section a paper, oldest note first."""
        notes: list[Note] = []
        while batch := await self.list(paper=paper, tag=tag, limit=_EXPORT_PAGE, offset=len(notes)):
            notes += batch
        groups: dict[str, list[Note]] = {}
        for note in sorted(notes, key=lambda n: (n.created, n.id)):
            groups.setdefault(note.paper_id or note.cite_key, []).append(note)
        parts = ["# Notes"]
        for key, group in groups.items():
            parts.append(await self._heading(key, group[0]))
            parts += [_markdown(note) for note in group]
        return "\n\n".join(parts) + "\n"

    async def _paper(self, identifier: str) -> Paper:
        paper = await self._papers.get(identifier)
        return paper if paper.id else await self._store.papers.upsert(paper)

    async def _verified(self, paper: Paper | None, quote: str, page: int) -> tuple[bool, int]:
        if paper is None or not quote.strip():
            return False, page
        try:
            found = await self._quotes.verify(paper.id, quote, page=page or None)
        except AstroResearchError:  # no text of it here: that must not keep a note from being saved
            return False, page
        return found.verified, (page or found.page) if found.verified else page

    async def _heading(self, key: str, note: Note) -> str:
        if not key:
            return "## Without a paper"
        paper = await self._store.papers.get(note.paper_id) if note.paper_id else None
        if paper is None:
            return f"## `{key}`"
        authors = (
            paper.authors[0].split(",")[0] + (" et al." if len(paper.authors) > 1 else "") if paper.authors else ""
        )
        names = paper.identifiers
        facts = [authors, str(paper.year or ""), names.bibcode or names.arxiv or names.doi or paper.id]
        return f"## {' '.join(paper.title.split())}\n\n{', '.join(f for f in facts if f)}"

    async def list(
        self, *, paper: str = "", cite_key: str = "", tag: str = "", limit: int = 100, offset: int = 0
    ) -> Sequence[Note]:
        """Notes that fit every filter given, newest change first. `paper` is any identifier of a paper in the library."""
        paper_id = ""
        if paper.strip():
            try:
                paper_id = (await self._papers.get(paper, online=False)).id
            except NotFound:
                paper_id = paper.strip()  # notes outlive their paper
        return await self._store.notes.list(paper_id, cite_key, tag, limit, offset)


def _check(text: str, quote: str) -> None:
    if not text.strip() and not quote.strip():
        raise InvalidInput("The note is empty.", field="text")
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise InvalidInput(
            f"The note has {size:,} bytes; {MAX_BYTES:,} fit into one.",
            hint="Nothing was saved: split it into several notes.",
            field="text",
        )
    if len(quote.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidInput("The quote is too long.", hint="Quote less.", field="quote")


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for tag in tags if (t := tag.strip().lstrip("#"))))


def _markdown(note: Note) -> str:
    parts: list[str] = []
    if note.quote:
        lines = note.quote.strip().splitlines() or [""]
        where = f" (p. {note.page})" if note.page else ""
        doubt = "" if note.quote_verified else " — *not found in the paper's text*" if note.paper_id else ""
        lines[-1] += where + doubt
        parts.append("\n".join(f"> {line}" for line in lines))
    if note.text.strip():
        parts.append(note.text.strip())
    facts: list[str] = [note.created[:10]]
    if note.cite_key and note.paper_id:
        facts.append(f"`{note.cite_key}`")
    if note.place:
        facts.append(f"{note.place.uri}, line {note.place.line + 1}")
    if note.origin != "user":
        facts.append("written by the assistant")
    facts += [f"#{tag}" for tag in note.tags]
    parts.append(f"*{' · '.join(f for f in facts if f)}*")
    return "\n\n".join(parts)
