"""One paper is one record, whatever it is called."""

from __future__ import annotations

import dataclasses

import pytest

from astroresearch.domain.note import Note
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.errors import NotFound
from astroresearch.store.database import Store
from astroresearch.store.papers import paper_id_for

FABIAN = Paper(
    id="",
    title="Cooling Flows in Clusters of Galaxies",
    authors=("Fabian, A. C.",),
    year=1994,
    identifiers=Identifiers(bibcode="1994ARA&A..32..277F", doi="10.1146/annurev.aa.32.090194.001425"),
    sources=("ads",),
    raw={"bibcode": "1994ARA&A..32..277F", "nested": {"a": [1, 2]}},
)


def passage(text: str, ordinal: int = 0) -> Passage:
    return Passage(0, "", ordinal, "Intro", 1, 1, text, 0, len(text))


async def make_searchable(store: Store, paper: Paper, text: str) -> Paper:
    record = dataclasses.replace(paper, state="searchable", pages_count=1, file="papers/x/x.pdf")
    out = await store.passages.replace(record, [PageRecord(1, text, b"\1")], [passage(text)])
    stored = await store.papers.get(out[0].paper_id)
    assert stored
    return stored


async def test_a_paper_comes_back_as_it_was_stored(store: Store) -> None:
    stored = await store.papers.upsert(FABIAN)
    assert stored.id == "1994ARA_A..32..277F"
    assert stored.added
    assert await store.papers.get(stored.id) == stored
    assert dataclasses.replace(stored, id="", added="") == FABIAN
    assert await store.papers.count() == 1


async def test_text_that_utf8_cannot_hold_is_stored(store: Store) -> None:
    stored = await store.papers.upsert(Paper(id="", title="A \ud800 surrogate and a \0 zero", abstract="\udfff"))
    assert await store.papers.get(stored.id) == stored


@pytest.mark.parametrize(
    "names",
    [
        Identifiers(bibcode="1994ARA&A..32..277F"),
        Identifiers(doi="10.1146/ANNUREV.aa.32.090194.001425"),
        Identifiers(bibcode="1994xxxx", alternates=("1994ARA&A..32..277F",)),
    ],
)
async def test_any_shared_name_leads_to_the_same_record(store: Store, names: Identifiers) -> None:
    first = await store.papers.upsert(FABIAN)
    second = await store.papers.upsert(Paper(id="", title="Cooling flows", abstract="New.", identifiers=names))
    assert second.id == first.id
    assert await store.papers.count() == 1
    assert (second.title, second.abstract, second.year) == ("Cooling flows", "New.", 1994)
    assert second.raw == FABIAN.raw
    assert [p.id for p in await store.papers.find(names)] == [first.id]


async def test_a_paper_that_joins_two_records_makes_them_one(store: Store) -> None:
    preprint = await store.papers.upsert(Paper(id="", title="P", identifiers=Identifiers(arxiv="2405.01234")))
    preprint = await make_searchable(store, preprint, "the preprint's text")
    published = await store.papers.upsert(Paper(id="", title="P", identifiers=Identifiers(bibcode="2024ApJ...1....1A")))
    note = await store.notes.create(Note(id="", text="about the preprint", paper_id=preprint.id))
    both = await store.papers.upsert(
        Paper(id="", title="P", identifiers=Identifiers(bibcode="2024ApJ...1....1A", arxiv="2405.01234"))
    )
    assert await store.papers.count() == 1
    assert both.id == published.id
    assert both.state == "searchable"
    assert [p.text for p in await store.passages.of_paper(both.id)] == ["the preprint's text"]
    moved = await store.notes.get(note.id)
    assert moved
    assert moved.paper_id == both.id
    assert await store.papers.get(preprint.id) == both
    assert [p.text for p in await store.passages.of_paper(preprint.id)] == ["the preprint's text"]
    assert await store.check() == []


async def test_metadata_never_takes_a_paper_back(store: Store) -> None:
    paper = await make_searchable(store, await store.papers.upsert(FABIAN), "text")
    again = await store.papers.upsert(dataclasses.replace(FABIAN, id=paper.id, citation_count=7))
    assert (again.state, again.file, again.pages_count, again.citation_count) == ("searchable", "papers/x/x.pdf", 1, 7)
    assert (await store.papers.upsert(dataclasses.replace(again, state="downloaded"))).state == "searchable"


async def test_a_failure_is_recorded_and_can_be_overcome(store: Store) -> None:
    paper = await store.papers.upsert(FABIAN)
    failed = await store.papers.upsert(dataclasses.replace(paper, state="failed", state_reason="It is a web page."))
    assert (failed.state, failed.state_reason) == ("failed", "It is a web page.")
    assert (await store.papers.upsert(FABIAN)).state == "failed"
    mended = await store.papers.upsert(dataclasses.replace(failed, state="downloaded", state_reason="", file="f.pdf"))
    assert (mended.state, mended.state_reason, mended.file) == ("downloaded", "", "f.pdf")


async def test_removing_a_paper_removes_its_text_and_keeps_its_notes(store: Store) -> None:
    paper = await make_searchable(store, await store.papers.upsert(FABIAN), "a text about flows")
    await store.passages.add_vectors(
        "m", 2, [(p.id, b"\0\0\x80?\0\0\0\0") for p in await store.passages.of_paper(paper.id)]
    )
    note = await store.notes.create(Note(id="", text="mine", paper_id=paper.id))
    assert await store.papers.remove(paper.id)
    assert not await store.papers.remove(paper.id)
    assert await store.papers.get(paper.id) is None
    assert await store.papers.find(FABIAN.identifiers) == []
    assert await store.passages.search_text(["flows"], limit=5) == []
    assert (await store.passages.counts())["vectors"] == 0
    assert await store.check() == []
    assert await store.notes.list(paper_id=paper.id) == [note]
    assert (await store.papers.upsert(FABIAN)).id == paper.id


async def test_merging_by_hand(store: Store) -> None:
    one = await store.papers.upsert(Paper(id="", title="Same", year=2001))
    two = await make_searchable(store, await store.papers.upsert(Paper(id="", title="Same", abstract="a")), "hello")
    merged = await store.papers.merge(one.id, two.id)
    assert (merged.id, merged.year, merged.abstract, merged.state) == (one.id, 2001, "a", "searchable")
    assert await store.papers.get(two.id) == merged
    assert await store.papers.merge(one.id, two.id) == merged
    with pytest.raises(NotFound):
        await store.papers.merge(one.id, "nothing")


async def test_papers_without_names_are_told_apart(store: Store) -> None:
    first = await store.papers.upsert(Paper(id="", title="Erratum"))
    second = await store.papers.upsert(Paper(id="", title="Erratum"))
    assert first.id != second.id
    assert [p.id for p in await store.papers.list()] == [second.id, first.id]
    assert len(await store.papers.list(limit=1, offset=1)) == 1


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        (FABIAN, "1994ARA_A..32..277F"),
        (Paper(id="", title="t", identifiers=Identifiers(arxiv="astro-ph/0601001")), "arxiv-astro-ph_0601001"),
        (Paper(id="", title="t", identifiers=Identifiers(doi="10.1/A(b)<c>")), "doi-10.1_a_b__c_"),
        (Paper(id="", title="t", identifiers=Identifiers(file_hash="ab" * 32)), "file-abababababab"),
    ],
)
def test_ids_are_names_of_files(paper: Paper, expected: str) -> None:
    assert paper_id_for(paper) == expected


def test_long_names_make_short_ids() -> None:
    long = [paper_id_for(Paper(id="", title="", identifiers=Identifiers(doi="10.1/" + "x" * n))) for n in (300, 301)]
    assert all(len(i) <= 60 for i in long)
    assert long[0] != long[1]
