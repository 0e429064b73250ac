"""Finding papers: ADS and arXiv at once, merged, marked with what is known here, cached."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Protocol

import anyio

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper, SearchHit, SearchOutcome
from astroresearch.errors import AstroResearchError, InvalidInput, NotFound, ServiceError
from astroresearch.library.merge import join, merge
from astroresearch.library.records import dump_papers, load_papers
from astroresearch.sources.ads import Ads
from astroresearch.sources.arxiv import Arxiv
from astroresearch.sources.arxiv_query import translate

SEARCH_TTL_S = 24 * 3600.0
METADATA_TTL_S = 7 * 24 * 3600.0
MAX_LIMIT = 200
GET_TOKEN = (
    "ADS needs a token: get one at https://ui.adsabs.harvard.edu/user/settings/token "
    "and set it as ADS_API_TOKEN or `ads.token`."
)
NO_TOKEN = f"Only arXiv was asked. {GET_TOKEN}"

Report = Callable[[SearchOutcome], None]


class Papers(Protocol):
    """What the catalogue asks of the store's papers."""

    async def get(self, paper_id: str) -> Paper | None:
        """By our own id."""
        ...

    async def find(self, identifiers: Identifiers) -> list[Paper]:
        """All that share a name."""
        ...


class Cache(Protocol):
    """Answers kept for a while."""

    async def get(self, key: str) -> bytes | None:
        """None when absent or too old."""
        ...

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Kept for so many seconds."""
        ...


class Notes(Protocol):
    """What the catalogue asks of the store's notes."""

    async def counts_by_paper(self, paper_ids: Sequence[str]) -> dict[str, int]:
        """How many notes each paper has."""
        ...


@dataclass(slots=True)
class _Found:
    """What one source gave."""

    papers: list[Paper]
    notices: tuple[str, ...] = ()
    cached: bool = False
    error: AstroResearchError | None = None


class Catalogue:
    """Fits `tools.ports.PaperCatalogue`."""

    def __init__(self, papers: Papers, cache: Cache, ads: Ads | None, arxiv: Arxiv, notes: Notes | None = None) -> None:
        """`ads` is None without a token; then arXiv alone is asked, and each search says so."""
        self._papers = papers
        self._cache = cache
        self.ads = ads
        self._arxiv = arxiv
        self._notes = notes

    async def search(
        self,
        query: str,
        *,
        sources: Sequence[str] = (),
        limit: int = 10,
        sort: str = "relevance",
        cite_keys: Sequence[str] = (),
        on_partial: Report | None = None,
    ) -> SearchOutcome:
        """ADS and arXiv at once, merged; what comes first is reported first.

        Args:
            query: Words or ADS's syntax; an identifier finds its paper.
            sources: `ads`, `arxiv`; empty asks both.
            limit: Hits at most.
            sort: relevance, date, citations.
            cite_keys: What the open manuscript cites: keys that are identifiers, or any identifiers.
            on_partial: Called with the merged hits so far.

        Raises:
            InvalidInput: No query, or one that no source can read.
            ServiceError: No source answered.
        """
        query = " ".join(query.split())
        if not query:
            raise InvalidInput("A search needs at least one word.", field="query")
        limit = max(1, min(limit, MAX_LIMIT))
        found: dict[str, _Found] = {}
        jobs = self._jobs(query, sources, limit, sort)
        marks = cited_names(cite_keys)

        async def ask(name: str, job: Callable[[], Awaitable[_Found]]) -> None:
            try:
                found[name] = await job()
            except (ServiceError, InvalidInput) as error:
                found[name] = _Found([], (f"{_TITLES[name]}: {error}",), error=error)
            if on_partial and found[name].papers and len(found) < len(jobs):
                on_partial(await self._outcome(found, sources, limit, marks))

        async with anyio.create_task_group() as group:
            for name, job in jobs.items():
                group.start_soon(ask, name, job)
        errors = [one.error for name in jobs if (one := found[name]).error]
        if len(errors) == len(jobs):
            raise _together(errors)
        return await self._outcome(found, sources, limit, marks)

    async def get(self, paper: str, *, online: bool = True) -> Paper:
        """By any identifier: our id, bibcode, DOI, arXiv id, URL; the library first, then ADS and arXiv.

        Raises:
            InvalidInput: It is no identifier and no id of ours.
            NotFound: Nobody knows it; says who was asked.
            ServiceError: It is not here, and a source that might know it could not be asked.
        """
        paper = paper.strip()
        ids = identifiers.parse(paper)
        stored = await self._papers.get(paper) if paper else None
        if stored is None and ids is not None:
            stored = next(iter(await self._papers.find(ids)), None)
        if stored is not None:
            return stored
        if ids is None:
            raise InvalidInput(
                identifiers.why_not(paper) or f"`{paper[:80]}` is no paper of the library, and no identifier.",
                hint="Use a bibcode, a DOI, an arXiv id or their URL.",
                field="paper",
            )
        if not online:
            raise NotFound(f"{identifiers.primary(ids)} is not in the library.")
        return await self._online(ids)

    async def _online(self, ids: Identifiers) -> Paper:
        name = identifiers.primary(ids)
        key = f"paper:{name}"
        if cached := await self._cached(key):
            return cached[0]
        failures: list[ServiceError] = []
        found: list[Paper] = []
        asked = []
        if self.ads is not None:
            asked.append("ADS")
            try:
                if record := await self.ads.get(ids):
                    found.append(record)
            except ServiceError as error:
                failures.append(error)
        if ids.arxiv and not found:
            asked.append("arXiv")
            try:
                found += await self._arxiv.get([ids])
            except ServiceError as error:
                failures.append(error)
        if found:
            if not failures:
                await self._cache.put(key, dump_papers(found[:1]), METADATA_TTL_S)
            return found[0]
        if failures:
            raise failures[0]
        if not asked:
            raise NotFound(f"{name} is not in the library, and arXiv does not know such names.", hint=GET_TOKEN)
        raise NotFound(f"{' and '.join(asked)} know{'s' * (len(asked) == 1)} no paper {name}.")

    def _jobs(
        self, query: str, sources: Sequence[str], limit: int, sort: str
    ) -> dict[str, Callable[[], Awaitable[_Found]]]:
        wanted = [name for name in ("ads", "arxiv") if not sources or name in sources]
        if unknown := set(sources) - {"ads", "arxiv"}:
            raise InvalidInput(f"There is no source {', '.join(sorted(unknown))}; use ads, arxiv.", field="sources")
        if self.ads is None and wanted == ["ads"]:
            raise InvalidInput(GET_TOKEN, field="sources")
        jobs: dict[str, Callable[[], Awaitable[_Found]]] = {}
        ids = identifiers.parse(query)
        if self.ads is not None and "ads" in wanted:
            jobs["ads"] = lambda: self._ask_ads(query, ids, limit, sort)
        if "arxiv" in wanted:
            jobs["arxiv"] = lambda: self._ask_arxiv(query, ids, limit, sort)
        return jobs

    async def _ask_ads(self, query: str, ids: Identifiers | None, limit: int, sort: str) -> _Found:
        ads = self.ads
        assert ads is not None
        key = _key("ads", query, limit, sort)
        if (cached := await self._cached(key)) is not None:
            return _Found(cached, cached=True)
        if ids is not None:
            record = await ads.get(ids)
            papers = [record] if record else []
        else:
            papers = await ads.search(query, rows=limit, sort=sort)
        await self._cache.put(key, dump_papers(papers), SEARCH_TTL_S)
        return _Found(papers)

    async def _ask_arxiv(self, query: str, ids: Identifiers | None, limit: int, sort: str) -> _Found:
        if ids is not None and not ids.arxiv:
            alone = self.ads is None
            return _Found([], ("arXiv is searched by its own ids only, not by DOI or bibcode.",) if alone else ())
        asked = translate(query)
        lost = (
            f"arXiv can't search for {_listed(asked.lost)}; its hits don't take that into account."
            if asked.lost
            else ""
        )
        if ids is None and not asked.query:
            return _Found([], (f"arXiv was not asked: it can't search for {_listed(asked.lost) or 'this'}.",))
        notices = (lost,) if lost and ids is None else ()
        key = _key("arxiv", query, limit, sort)
        if (cached := await self._cached(key)) is not None:
            return _Found(cached, notices, cached=True)
        if ids is not None:
            papers = await self._arxiv.get([ids])
        else:
            papers = await self._arxiv.search(asked.query, rows=limit, sort=sort)
        await self._cache.put(key, dump_papers(papers), SEARCH_TTL_S)
        return _Found(papers, notices)

    async def _cached(self, key: str) -> list[Paper] | None:
        data = await self._cache.get(key)
        return load_papers(data) if data else None

    async def _outcome(
        self, found: dict[str, _Found], sources: Sequence[str], limit: int, cited: frozenset[str]
    ) -> SearchOutcome:
        ordered = [found[name] for name in ("ads", "arxiv") if name in found]
        columns = zip_longest(*(one.papers for one in ordered))
        papers = merge(paper for row in columns for paper in row if paper is not None)[:limit]
        notices = [notice for one in ordered for notice in one.notices]
        if self.ads is None and not sources:
            notices.insert(0, NO_TOKEN)
        hits = await self._marked(papers, cited)
        return SearchOutcome(hits, tuple(notices), bool(ordered) and all(one.cached for one in ordered))

    async def _marked(self, papers: Sequence[Paper], cited: frozenset[str]) -> tuple[SearchHit, ...]:
        known: list[Paper] = []
        for paper in papers:
            stored = next(iter(await self._papers.find(paper.identifiers)), None)
            known.append(join(stored, paper) if stored is not None else paper)
        ids = [paper.id for paper in known if paper.id]
        noted = await self._notes.counts_by_paper(ids) if self._notes and ids else {}
        return tuple(
            SearchHit(
                paper,
                in_library=bool(paper.id),
                cited_here=bool(identifiers.names(paper.identifiers) & cited),
                has_notes=noted.get(paper.id, 0) > 0,
            )
            for paper in known
        )


_TITLES = {"ads": "ADS", "arxiv": "arXiv"}


def _together(errors: Sequence[AstroResearchError]) -> AstroResearchError:
    """The first of several failures, with the sentences of all."""
    first = errors[0]
    if len(errors) > 1:
        first.message, first.hint = " ".join(dict.fromkeys(str(error) for error in errors)), ""
    return first


def cited_names(cite_keys: Iterable[str]) -> frozenset[str]:
    """The names of papers in what a manuscript cites; keys that are no identifiers say nothing for sure and are left out."""
    return frozenset(name for key in cite_keys if (ids := identifiers.parse(key)) for name in identifiers.names(ids))


def mark_cited(outcome: SearchOutcome, cite_keys: Iterable[str]) -> SearchOutcome:
    """The same hits, marked anew with what another manuscript cites."""
    cited = cited_names(cite_keys)
    hits = (replace(hit, cited_here=bool(identifiers.names(hit.paper.identifiers) & cited)) for hit in outcome.hits)
    return replace(outcome, hits=tuple(hits))


def _key(source: str, query: str, limit: int, sort: str) -> str:
    return f"search:{source}:{sort}:{limit}:{hashlib.sha256(query.encode('utf-8', 'replace')).hexdigest()}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)
