"""Notes are never lost, not even to another window."""

from __future__ import annotations

import dataclasses

import pytest

from astroresearch.domain.note import Note, Place
from astroresearch.errors import Conflict, NotFound
from astroresearch.store.database import Store
from astroresearch.store.notes import _later

FULL = Note(
    id="",
    text="The cooling rate of Perséus is lower. " * 10,
    tags=("cooling", "Ärger"),
    color="yellow",
    paper_id="p",
    page=3,
    quote="we find a lower rate",
    quote_verified=True,
    cite_key="Fabian1994",
    place=Place("file:///a.tex", 12, "\\cite{Fabian1994}"),
    origin="agent_tainted",
    session_id="s",
)


async def test_a_note_comes_back_as_it_was_saved(store: Store) -> None:
    saved = await store.notes.create(FULL)
    assert dataclasses.replace(saved, id="", created="", updated="") == FULL
    assert saved.created == saved.updated != ""
    assert await store.notes.get(saved.id) == saved
    assert await store.notes.count() == 1
    with pytest.raises(Conflict):
        await store.notes.create(saved)


async def test_a_megabyte_fits(store: Store) -> None:
    saved = await store.notes.create(Note(id="", text="ä" * 500_000))
    assert await store.notes.get(saved.id) == saved


async def test_filters(store: Store) -> None:
    one = await store.notes.create(FULL)
    two = await store.notes.create(Note(id="", text="x", tags=("cooling",), cite_key="Other"))
    assert await store.notes.list() == [two, one]
    assert await store.notes.list(tag="cooling") == [two, one]
    assert await store.notes.list(tag="cool") == []
    assert await store.notes.list(paper_id="p") == [one]
    assert await store.notes.list(cite_key="Other") == [two]
    assert await store.notes.list(paper_id="p", tag="Ärger", cite_key="Fabian1994") == [one]
    assert await store.notes.list(limit=1, offset=1) == [one]
    assert await store.notes.counts_by_paper(["p", "q"]) == {"p": 1}


async def test_words_are_found_everywhere_in_a_note(store: Store) -> None:
    note = await store.notes.create(FULL)
    for query in ("perseus", "RATES cool", "lower rate", "arger", "Fabian19", '"perseus" OR', "perseus nowhere"):
        assert await store.notes.search(query) == [note], query
    assert await store.notes.search("nowhere") == []
    assert await store.notes.search("  ") == []
    changed = await store.notes.update(dataclasses.replace(note, text="turbulence"), note.updated)
    assert await store.notes.search("perseus") == []
    assert await store.notes.search("turbulent") == [changed]
    await store.notes.delete(note.id)
    assert await store.notes.search("turbulence") == []
    assert await store.check() == []


async def test_an_update_needs_the_version_that_was_edited(store: Store) -> None:
    note = await store.notes.create(Note(id="", text="one"))
    mine = await store.notes.update(dataclasses.replace(note, text="two"), note.updated)
    assert (mine.text, mine.created) == ("two", note.created)
    assert mine.updated > note.updated
    with pytest.raises(Conflict) as conflict:
        await store.notes.update(dataclasses.replace(note, text="three"), note.updated)
    texts = {n.text: n for n in await store.notes.list()}
    assert set(texts) == {"two", "three"}
    assert texts["three"].tags == ("conflict",)
    assert texts["three"].id in conflict.value.hint


async def test_the_same_text_twice_is_no_conflict(store: Store) -> None:
    note = await store.notes.create(Note(id="", text="one"))
    mine = await store.notes.update(dataclasses.replace(note, text="two"), note.updated)
    assert await store.notes.update(dataclasses.replace(note, text="two"), note.updated) == mine
    assert await store.notes.count() == 1


async def test_an_edit_of_a_deleted_note_is_kept(store: Store) -> None:
    note = await store.notes.create(Note(id="", text="one"))
    assert await store.notes.delete(note.id)
    assert not await store.notes.delete(note.id)
    with pytest.raises(Conflict):
        await store.notes.update(dataclasses.replace(note, text="two"), note.updated)
    assert [n.text for n in await store.notes.list()] == ["two"]
    with pytest.raises(NotFound):
        await store.notes.update(Note(id="never", text="x"), "")


@pytest.mark.parametrize("stamp", ["2999-12-31T23:59:59.999999Z", "2999-01-01T00:00:00Z", "not a time, later than any"])
def test_a_clock_that_was_set_back_still_changes_updated(stamp: str) -> None:
    later = _later(stamp)
    assert later != stamp
    assert _later("2000-01-01T00:00:00.000000Z") > "2020"
