"""Searching ADS and arXiv at once, with whatever one of them does, marked by what is known here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from astroresearch.config import Secret
from astroresearch.demo.standin import TOKEN, Standin
from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper, SearchOutcome
from astroresearch.errors import InvalidInput, NotFound, ServiceError
from astroresearch.library.search import Catalogue, mark_cited
from astroresearch.library.targets import Targets
from astroresearch.sources.ads import Ads
from astroresearch.sources.arxiv import Arxiv
from astroresearch.sources.cds import Cds
from astroresearch.sources.guard import loopback_pairs
from astroresearch.sources.http import Http
from tests.fakes.faulty import Faulty, http


class MemoryPapers:
    def __init__(self, *papers: Paper) -> None:
        self.papers = papers

    async def get(self, paper_id: str) -> Paper | None:
        return next((paper for paper in self.papers if paper.id == paper_id), None)

    async def find(self, identifiers_: Identifiers) -> list[Paper]:
        return [p for p in self.papers if identifiers.names(p.identifiers) & identifiers.names(identifiers_)]


class MemoryCache:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.ttl: dict[str, float] = {}

    async def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        self.kept[key], self.ttl[key] = value, ttl_s


class MemoryNotes:
    async def counts_by_paper(self, paper_ids: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(paper_ids, 2)


@pytest.fixture
async def world() -> AsyncIterator[tuple[Http, Standin, Faulty]]:
    async with (
        Standin() as standin,
        Faulty() as faulty,
        Http([*loopback_pairs(standin.urls.values()), faulty.pair]) as client,
    ):
        yield client, standin, faulty


World = tuple[Http, Standin, Faulty]


def catalogue(
    world: World, *stored: Paper, ads: bool = True, broken: str = "", cache: MemoryCache | None = None
) -> Catalogue:
    client, standin, faulty = world
    base = {name: standin.urls[f"ASTRORESEARCH_{name.upper()}_URL"] for name in ("ads", "arxiv")}
    if broken:
        base[broken] = faulty.url("/broken")
    return Catalogue(
        MemoryPapers(*stored),
        cache or MemoryCache(),
        Ads(client, base["ads"], Secret(TOKEN)) if ads else None,
        Arxiv(client, base["arxiv"]),
        MemoryNotes(),
    )


async def test_both_sources_are_merged_and_marked(world: World) -> None:
    stored = Paper(
        "mine", "Observational Evidence …", identifiers=Identifiers(arxiv="1204.4114"), state="searchable", year=2012
    )
    partial: list[SearchOutcome] = []
    outcome = await catalogue(world, stored).search(
        "AGN feedback", cite_keys=["fabian12", "2007ARA&A..45..117M"], on_partial=partial.append
    )
    by_code = {hit.paper.identifiers.bibcode: hit for hit in outcome.hits}
    assert len(by_code) == len(outcome.hits)
    fabian = by_code["2012ARA&A..50..455F"]
    assert (fabian.paper.id, fabian.paper.state, fabian.in_library, fabian.has_notes) == (
        "mine",
        "searchable",
        True,
        True,
    )
    assert set(fabian.paper.sources) >= {"ads", "arxiv"}
    assert by_code["2007ARA&A..45..117M"].cited_here
    assert not fabian.cited_here
    assert outcome.notices == ()
    assert len(partial) == 1
    assert partial[0].hits
    again = mark_cited(outcome, ["arXiv:1204.4114"])
    assert [hit.paper.id for hit in again.hits if hit.cited_here] == ["mine"]


async def test_a_second_search_asks_nobody(world: World) -> None:
    cache = MemoryCache()
    first = await catalogue(world, cache=cache).search("perseus")
    assert not first.from_cache
    assert set(cache.ttl.values()) == {24 * 3600.0}
    client, _, faulty = world
    offline = Catalogue(
        MemoryPapers(), cache, Ads(client, faulty.url("/x"), Secret("x")), Arxiv(client, faulty.url("/x"))
    )
    again = await offline.search("perseus")
    assert again == replace(first, from_cache=True)
    assert not faulty.asked


@pytest.mark.parametrize(("broken", "name"), [("ads", "ADS"), ("arxiv", "arXiv")])
async def test_a_failing_source_is_named_and_the_other_answers(world: World, broken: str, name: str) -> None:
    world[2].routes["/broken/search/query"] = world[2].routes["/broken/api/query"] = http(200, b"<html>busy</html>")
    outcome = await catalogue(world, broken=broken).search("perseus cluster")
    assert outcome.hits
    assert any(notice.startswith(f"{name}: ") for notice in outcome.notices)


async def test_when_all_fail_it_is_an_error(world: World) -> None:
    world[2].routes["/broken/api/query"] = http(200, b"<html>busy</html>")
    with pytest.raises(ServiceError):
        await catalogue(world, ads=False, broken="arxiv").search("perseus")


async def test_without_a_token_arxiv_answers_and_says_how_to_get_one(world: World) -> None:
    outcome = await catalogue(world, ads=False).search("perseus property:refereed")
    assert outcome.hits
    assert "ui.adsabs.harvard.edu/user/settings/token" in outcome.notices[0]
    assert "`property:`" in outcome.notices[1]


async def test_an_identifier_finds_its_paper(world: World) -> None:
    outcome = await catalogue(world).search("https://doi.org/10.1038/nature18627")
    assert [hit.paper.identifiers.bibcode for hit in outcome.hits] == ["2016Natur.535..117H"]


@pytest.mark.parametrize("query", ["", "   "])
async def test_an_empty_query_is_refused(world: World, query: str) -> None:
    with pytest.raises(InvalidInput):
        await catalogue(world).search(query)
    with pytest.raises(InvalidInput):
        await catalogue(world).search("x", sources=["scholar"])


async def test_get_looks_here_first_then_online(world: World) -> None:
    stored = Paper("mine", "T", identifiers=Identifiers("2016Natur.535..117H"))
    cache = MemoryCache()
    books = catalogue(world, stored, cache=cache)
    assert await books.get("mine") is stored
    assert await books.get("https://ui.adsabs.harvard.edu/abs/2016Natur.535..117H/abstract") is stored
    found = await books.get("arXiv:1204.4114")
    assert found.identifiers.bibcode == "2012ARA&A..50..455F"
    assert await books.get("1204.4114") == found
    assert set(cache.ttl.values()) == {7 * 24 * 3600.0}
    with pytest.raises(NotFound, match="not in the library"):
        await books.get("astro-ph/0108019", online=False)
    with pytest.raises(NotFound, match="ADS"):
        await books.get("2020ApJ...999..999Z")
    with pytest.raises(InvalidInput, match="archive"):
        await books.get("0112019")
    with pytest.raises(InvalidInput):
        await books.get("no such thing")


async def test_get_with_a_broken_source_is_no_not_found(world: World) -> None:
    world[2].routes["/broken/search/query"] = http(401, b'{"error": "Unauthorized"}')
    with pytest.raises(ServiceError, match="token"):
        await catalogue(world, broken="ads").get("2020ApJ...999..999Z")


async def test_objects_are_kept_for_thirty_days(world: World) -> None:
    client, standin, _ = world
    cache = MemoryCache()
    cds = Cds(client, standin.urls["ASTRORESEARCH_SESAME_URL"], standin.urls["ASTRORESEARCH_SIMBAD_URL"])
    first = await Targets(cache, cds).resolve("M  31")
    assert not first.cached
    assert set(cache.ttl.values()) == {30 * 24 * 3600.0}
    again = await Targets(cache, Cds(client, "http://127.0.0.1:9", "http://127.0.0.1:9")).resolve("m 31")
    assert again == replace(first, query="m 31", cached=True)
    cache.kept = dict.fromkeys(cache.kept, b"{damaged")
    assert (await Targets(cache, cds).resolve("M 31")).name == "M 31"
    with pytest.raises(NotFound, match="NED"):
        await Targets(cache, cds).resolve("Nowhere 7")


async def test_the_standin_is_on_loopback_only(world: World) -> None:
    assert {urlsplit(url).hostname for url in world[1].urls.values()} == {"127.0.0.1"}
