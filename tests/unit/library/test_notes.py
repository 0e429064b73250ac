"""The notebook: anchors, quotes that are checked, limits, export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from astroresearch.domain.note import Place
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import Citation
from astroresearch.errors import Conflict, InvalidInput, NotFound, Unreachable
from astroresearch.library.notes import MAX_BYTES, Notes
from astroresearch.store.database import Store

PAPER = Paper(
    id="",
    title="Cooling  Flows\nin Clusters",
    authors=("Fabian, A. C.", "Other, B."),
    year=1994,
    identifiers=Identifiers(bibcode="1994ARA&A..32..277F"),
)
TEXT = "The gas cools radiatively."


class Finder:
    """The library, and one paper that is known online only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        if found := await self._store.papers.get(paper):
            return found
        if here := await self._store.papers.find(Identifiers(bibcode=paper)):
            return here[0]
        if online and paper == "2001online":
            return replace(PAPER, title="Online", identifiers=Identifiers(bibcode=paper))
        if online and paper == "unreachable":
            raise Unreachable("ADS cannot be reached.", source="ads")
        raise NotFound(f"Nothing is known of `{paper}`.")


class Checker:
    """Knows one sentence, on page 7."""

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        if paper == "2001online":
            raise NotFound("Its text is not here.")
        return Citation(paper, page or 7, quote, quote in TEXT and page in (None, 7))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "library.db")
    yield opened
    await opened.aclose()


@pytest.fixture
async def notes(store: Store) -> Notes:
    await store.papers.upsert(PAPER)
    return Notes(store, Finder(store), Checker())


async def test_a_note_is_anchored_to_the_paper_and_its_page(notes: Notes) -> None:
    note = await notes.create(
        "Important.", paper="1994ARA&A..32..277F", quote="gas cools", tags=["#cooling", " x ", ""]
    )
    assert (note.paper_id, note.page, note.quote_verified) == ("1994ARA_A..32..277F", 7, True)
    assert note.tags == ("cooling", "x")
    assert await notes.get(note.id) == note
    assert list(await notes.list(paper="1994ARA&A..32..277F")) == [note]
    assert list(await notes.list(paper="unknown")) == []
    assert list(await notes.search("important cools")) == [note]


@pytest.mark.parametrize(
    ("quote", "page", "expected"), [("gas heats", 0, (False, 0)), ("gas cools", 3, (False, 3)), ("", 2, (False, 2))]
)
async def test_a_quote_that_is_not_there_is_marked_and_saved(
    notes: Notes, quote: str, page: int, expected: tuple[bool, int]
) -> None:
    note = await notes.create("x", paper="1994ARA&A..32..277F", quote=quote, page=page)
    assert (note.quote_verified, note.page) == expected


async def test_a_paper_found_online_is_kept_so_that_the_note_has_an_anchor(notes: Notes, store: Store) -> None:
    note = await notes.create("x", paper="2001online", quote="unchecked", page=2)
    assert (note.paper_id, note.quote_verified, note.page) == ("2001online", False, 2)
    assert await store.papers.get("2001online")


@pytest.mark.parametrize("paper", ["nothing", "unreachable"])
async def test_an_unknown_paper_is_an_error_that_says_so(notes: Notes, store: Store, paper: str) -> None:
    with pytest.raises((NotFound, Unreachable)):
        await notes.create("x", paper=paper)
    assert await store.notes.count() == 0


async def test_a_megabyte_is_saved_and_more_is_refused_plainly(notes: Notes, store: Store) -> None:
    note = await notes.create("ä" * (MAX_BYTES // 2))
    assert len((await notes.get(note.id)).text) == MAX_BYTES // 2
    with pytest.raises(InvalidInput, match="1,048,577 bytes") as error:
        await notes.create("a" * (MAX_BYTES + 1))
    assert "split" in error.value.hint
    with pytest.raises(InvalidInput):
        await notes.create("x", quote="q" * (MAX_BYTES + 1))
    assert await store.notes.count() == 1


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nothing_is_not_a_note(notes: Notes, text: str) -> None:
    with pytest.raises(InvalidInput):
        await notes.create(text)
    await notes.create(text, quote="a highlight alone is one")


async def test_an_unknown_origin_is_refused(notes: Notes) -> None:
    with pytest.raises(InvalidInput):
        await notes.create("x", origin="somebody")


async def test_updates_change_what_is_given(notes: Notes) -> None:
    note = await notes.create("one", tags=["a"], color="red", cite_key="K")
    changed = await notes.update(note.id, expected_updated=note.updated, text="two")
    assert (changed.text, changed.tags, changed.color, changed.cite_key) == ("two", ("a",), "red", "K")
    moved = await notes.update(
        note.id, expected_updated=changed.updated, tags=[], color="", place=Place("file:///a.tex", 3)
    )
    assert (moved.text, moved.tags, moved.color, moved.place) == ("two", (), "", Place("file:///a.tex", 3))
    with pytest.raises(InvalidInput):
        await notes.update(note.id, expected_updated=moved.updated, text="")


async def test_a_conflict_keeps_both_texts(notes: Notes) -> None:
    note = await notes.create("one")
    await notes.update(note.id, expected_updated=note.updated, text="theirs")
    with pytest.raises(Conflict, match="Both texts are kept"):
        await notes.update(note.id, expected_updated=note.updated, text="mine")
    assert {n.text for n in await notes.list()} == {"theirs", "mine"}
    assert [n.text for n in await notes.list(tag="conflict")] == ["mine"]


async def test_deleting(notes: Notes) -> None:
    note = await notes.create("one")
    assert await notes.delete(note.id)
    assert not await notes.delete(note.id)
    with pytest.raises(NotFound):
        await notes.get(note.id)
    with pytest.raises(NotFound):
        await notes.update(note.id, expected_updated=note.updated, tags=["x"])
    with pytest.raises(Conflict):
        await notes.update(note.id, expected_updated=note.updated, text="written meanwhile")
    assert [n.text for n in await notes.list()] == ["written meanwhile"]


async def test_export(notes: Notes) -> None:
    await notes.create(
        "First.", paper="1994ARA&A..32..277F", quote="gas cools\nradiatively", cite_key="Fabian94", tags=["a"]
    )
    await notes.create("By the agent.", paper="1994ARA&A..32..277F", quote="gas heats", origin="agent")
    await notes.create("On a place.", place=Place("file:///a.tex", 4))
    await notes.create("On a key.", cite_key="Key99")
    text = await notes.export()
    day = (await notes.list())[0].created[:10]
    assert text == (
        "# Notes\n\n## Cooling Flows in Clusters\n\nFabian et al., 1994, 1994ARA&A..32..277F\n\n"
        "> gas cools\n> radiatively — *not found in the paper's text*\n\nFirst.\n\n"
        f"*{day} · `Fabian94` · #a*\n\n"
        "> gas heats — *not found in the paper's text*\n\nBy the agent.\n\n"
        f"*{day} · written by the assistant*\n\n"
        f"## Without a paper\n\nOn a place.\n\n*{day} · file:///a.tex, line 5*\n\n"
        f"## `Key99`\n\nOn a key.\n\n*{day}*\n"
    )
    assert "On a key" not in await notes.export(paper="1994ARA&A..32..277F")
    assert await notes.export(tag="nothing") == "# Notes\n"
