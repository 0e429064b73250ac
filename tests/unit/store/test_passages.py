"""Text, full-text index and vectors change together."""

from __future__ import annotations

import dataclasses
import struct

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.errors import InvalidInput
from astroresearch.store.database import Store

SEARCHABLE = Paper(id="", title="t", state="searchable", identifiers=Identifiers(arxiv="2405.00001"))


def vector(*values: float) -> bytes:
    return struct.pack(f"{len(values)}f", *values)


def passages(*texts: str) -> list[Passage]:
    return [Passage(0, "", n, f"Section {n}", n + 1, n + 1, t, n, n + len(t)) for n, t in enumerate(texts)]


async def index(store: Store, arxiv: str, *texts: str) -> list[Passage]:
    paper = dataclasses.replace(SEARCHABLE, identifiers=Identifiers(arxiv=arxiv))
    pages = [PageRecord(n + 1, t, b"words", "hidden") for n, t in enumerate(texts)]
    return await store.passages.replace(paper, pages, passages(*texts))


async def test_text_comes_back(store: Store) -> None:
    out = await index(store, "2405.00001", "The first page.", "Die zweite Seite: Äther \ud800.")
    paper_id = out[0].paper_id
    assert paper_id == "arxiv-2405.00001"
    assert [p.ordinal for p in out] == [0, 1]
    assert out[1].text == "Die zweite Seite: Äther \ufffd."
    assert await store.passages.of_paper(paper_id) == out
    assert await store.passages.get([out[1].id, 999, out[0].id]) == [out[1], out[0]]
    assert [p.page for p in await store.passages.pages(paper_id)] == [1, 2]
    assert await store.passages.pages(paper_id, 1) == [PageRecord(1, "The first page.", b"words", "hidden")]
    assert await store.passages.pages("nothing") == []


async def test_replacing_leaves_nothing_of_the_old_text(store: Store) -> None:
    old = await index(store, "2405.00001", "cooling flows", "feedback")
    await store.passages.add_vectors("m", 2, [(p.id, vector(1, 0)) for p in old])
    new = await index(store, "2405.00001", "turbulence")
    assert {p.id for p in new}.isdisjoint(p.id for p in old)
    assert await store.passages.search_text(["feedback"], limit=9) == []
    assert await store.passages.search_vector(vector(1, 0), model="m", limit=9) == []
    assert await store.passages.pending("m", 9) == [(new[0].id, "turbulence")]
    assert await store.passages.counts() == {"pages": 1, "passages": 1, "vectors": 0, "vectors:m": 0}
    assert await store.check() == []


async def test_words_are_found_by_stem_and_without_diacritics(store: Store) -> None:
    out = await index(store, "2405.00001", "Cooling flows in Perséus", "Dark matter halos", "The flow is cool")
    found = await store.passages.search_text(["perseus", "FLOWS"], limit=9)
    assert [i for i, _, _ in found] == [out[0].id, out[2].id]
    assert found[0][1] < found[1][1] < 0
    assert found[0][2] == "Cooling flows in Perséus"
    assert len(await store.passages.search_text(["flow"], limit=1)) == 1
    assert await store.passages.search_text([], limit=9) == []
    assert await store.passages.search_text(["  "], limit=9) == []


async def test_search_can_be_narrowed_to_papers(store: Store) -> None:
    one = await index(store, "2405.00001", "the flow")
    two = await index(store, "2405.00002", "the flow", "no")
    await store.passages.add_vectors("m", 2, [(p.id, vector(1, n / 9)) for n, p in enumerate([*one, *two])])
    paper = two[0].paper_id
    assert [i for i, _, _ in await store.passages.search_text(["flow"], limit=9, paper_ids=[paper])] == [two[0].id]
    near = await store.passages.search_vector(vector(1, 0), model="m", limit=9, paper_ids=[paper])
    assert [i for i, _ in near] == [two[0].id, two[1].id]
    assert await store.passages.search_text(["flow"], limit=9, paper_ids=["nothing"]) == []
    assert await store.passages.search_vector(vector(1, 0), model="m", limit=9, paper_ids=["nothing"]) == []


@given(terms=st.lists(st.text(max_size=30), max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_terms_may_hold_anything(terms: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    async def run() -> None:
        opened = await Store.open(tmp_path_factory.getbasetemp() / "terms.db")
        try:
            await opened.passages.search_text([*terms, 'a"b', "NEAR(", "*", "\0", "x:y"], limit=5)
            await opened.passages.document_counts(terms)
            await opened.notes.search(" ".join(terms))
        finally:
            await opened.aclose()

    anyio.run(run)


async def test_rare_terms_can_be_told_from_common_ones(store: Store) -> None:
    await index(store, "2405.00001", "cooling flow in NGC 1275", "a flow", "flows")
    counts = await store.passages.document_counts(["Flow", "cooled", "NGC 1275", "absent", "—"])
    assert counts == {"Flow": 3, "cooled": 1, "NGC 1275": 1, "absent": 0, "—": 0}


async def test_nearest_vectors_come_first(store: Store) -> None:
    out = await index(store, "2405.00001", "a", "b", "c")
    assert await store.passages.search_vector(vector(1, 0), model="m", limit=3) == []
    assert [t for _, t in await store.passages.pending("m", 2)] == ["a", "b"]
    assert [t for _, t in await store.passages.pending("m", 9, after=out[1].id)] == ["c"]
    added = await store.passages.add_vectors(
        "m", 2, [(out[0].id, vector(0, 1)), (out[1].id, vector(1, 0)), (out[2].id, vector(0, 0)), (999, vector(1, 1))]
    )
    assert added == 3
    near = await store.passages.search_vector(vector(2, 0.1), model="m", limit=9)
    assert [i for i, _ in near] == [out[1].id, out[0].id]
    assert near[0][1] == pytest.approx(0.0012, abs=1e-3)
    assert await store.passages.add_vectors("m", 2, [(out[0].id, vector(1, 0))]) == 0
    assert await store.passages.pending("m", 9) == []


async def test_models_are_never_mixed(store: Store) -> None:
    out = await index(store, "2405.00001", "a")
    await store.passages.add_vectors("small", 2, [(out[0].id, vector(1, 0))])
    await store.passages.add_vectors("large", 3, [(out[0].id, vector(1, 0, 0))])
    assert len(await store.passages.search_vector(vector(1, 0, 0), model="large", limit=1)) == 1
    with pytest.raises(InvalidInput):
        await store.passages.search_vector(vector(1, 0), model="large", limit=1)
    await store.passages.add_vectors("small", 4, [(out[0].id, vector(1, 0, 0, 0))])
    counts = await store.passages.counts()
    assert (counts["vectors:small"], counts["vectors:large"]) == (1, 1)
    assert await store.check() == []


@pytest.mark.parametrize("bad", [vector(1), vector(1, float("nan")), vector(float("inf"), 0), b"123"])
async def test_bad_vectors_are_refused(store: Store, bad: bytes) -> None:
    out = await index(store, "2405.00001", "a")
    with pytest.raises(InvalidInput):
        await store.passages.add_vectors("m", 2, [(out[0].id, bad)])


async def test_a_failing_index_changes_nothing(store: Store) -> None:
    await index(store, "2405.00001", "the old text")
    twice = [dataclasses.replace(p, ordinal=0) for p in passages("new", "newer")]
    with pytest.raises(Exception, match="UNIQUE"):
        await store.passages.replace(SEARCHABLE, [PageRecord(1, "new", b"")], twice)
    assert [p.text for p in await store.passages.pages("arxiv-2405.00001")] == ["the old text"]
    assert len(await store.passages.search_text(["old"], limit=1)) == 1
    assert await store.check() == []
