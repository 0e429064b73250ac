"""Hybrid search over passages: full text and vectors, joined by reciprocal rank fusion."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from operator import mul

import anyio

from astroresearch.domain.passage import Passage, PassageHit, Retrieval
from astroresearch.errors import AstroResearchError
from astroresearch.library.index import Embedder
from astroresearch.library.words import terms
from astroresearch.store.passages import PassageStore

K = 60
"The constant of reciprocal rank fusion."
DEPTH = 50
"Passages that each of the two searches contributes."
COMMON = 3_000
"A word in more passages than this is left out while rarer ones are left: it costs much and tells little."
CACHED = 512
"Vectors of sentences and queries that are kept."
TEXT_ALONE = "{why} Full text alone answered."


class Retriever:
    """Finds passages. A query never waits longer than `vector_wait_s` for its vector: full text answers alone then."""

    def __init__(self, passages: PassageStore, embedder: Embedder | None, *, vector_wait_s: float = 0.15) -> None:
        self._passages = passages
        self._embedder = embedder
        self._wait = vector_wait_s
        self._vectors: dict[str, array[float]] = {}

    async def search(
        self, query: str, *, limit: int = 8, paper_ids: Sequence[str] = (), per_paper: int = 3
    ) -> Retrieval:
        """The best passages.

        Args:
            query: A question or words; whatever it holds, it is no query syntax.
            limit: Passages at most.
            paper_ids: Only of these papers (our ids); none narrows nothing.
            per_paper: Passages of one paper at most, while others are left. Not applied to a search in one paper.
        """
        by_text: list[tuple[int, float, str]] = []
        vector: list[bytes] = []
        why: list[str] = []

        async def look_up() -> None:
            by_text.extend(await self._by_text(query, paper_ids))

        async def embed() -> None:
            why.append(await self._embed(query, vector))

        async with anyio.create_task_group() as group:
            group.start_soon(embed)
            group.start_soon(look_up)
        nearest: list[tuple[int, float]] = []
        if vector and self._embedder is not None:
            nearest = await self._passages.search_vector(
                vector[0], model=self._embedder.name, limit=DEPTH, paper_ids=paper_ids
            )
        scores = _fuse([n for n, _, _ in by_text], [n for n, _ in nearest])
        snippets = {number: snippet for number, _, snippet in by_text}
        found = await self._passages.get(sorted(scores, key=lambda n: (-scores[n], n)))
        ranks_of = (set(snippets), {n for n, _ in nearest})
        hits = [_hit(p, scores[p.id], *ranks_of, snippets.get(p.id, "")) for p in found]
        notice = TEXT_ALONE.format(why=why[0]) if why and why[0] else ""
        chosen = _diverse(hits, limit, limit if len(paper_ids) == 1 else per_paper)
        return Retrieval(tuple(chosen), "hybrid" if nearest else "text", notice)

    async def similarities(self, query: str, texts: Sequence[str], *, budget_s: float) -> list[float]:
        """Cosines of the query with the first texts, as many as the time allows; none where the embedder is not ready."""
        out: list[float] = []
        if self._embedder is None or not texts:
            return out
        try:
            with anyio.move_on_after(budget_s):
                wanted = await self._vector(query)
                for text in texts:
                    out.append(sum(map(mul, wanted, await self._vector(text))))
        except AstroResearchError:
            return out
        return out

    async def _vector(self, text: str) -> array[float]:
        assert self._embedder is not None
        if (kept := self._vectors.pop(text, None)) is None:
            kept = array("f")
            kept.frombytes((await self._embedder.embed([text], urgent=True))[0])
        self._vectors[text] = kept
        if len(self._vectors) > CACHED:
            del self._vectors[next(iter(self._vectors))]
        return kept

    async def _embed(self, query: str, out: list[bytes]) -> str:
        """Adds the query's vector to `out`, or says why there is none."""
        if self._embedder is None:
            return ""
        try:
            with anyio.move_on_after(self._wait):
                out += await self._embedder.embed([query], urgent=True)
                return ""
        except AstroResearchError as error:
            return error.message
        return "Search by meaning was not ready in time."

    async def _by_text(self, query: str, paper_ids: Sequence[str]) -> list[tuple[int, float, str]]:
        wanted = terms(query)
        if not wanted:
            return []
        if not paper_ids and len(wanted) > 1:
            counts = await self._passages.document_counts(wanted)
            wanted = _rare(wanted, counts)
        return await self._passages.search_text(wanted, limit=DEPTH, paper_ids=paper_ids)


def _rare(wanted: Sequence[str], counts: dict[str, int]) -> list[str]:
    """The terms whose passages are few enough to be ranked quickly; at least the two rarest that occur."""
    present = sorted((t for t in wanted if counts.get(t, 0)), key=lambda t: counts[t])
    kept: list[str] = []
    total = 0
    for term in present:
        total += counts[term]
        if len(kept) >= 2 and total > COMMON:
            break
        kept.append(term)
    return kept or list(wanted)


def _fuse(*rankings: Sequence[int]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1.0 / (K + rank)
    return scores


def _hit(passage: Passage, score: float, text: set[int], vectors: set[int], snippet: str) -> PassageHit:
    via = "both" if passage.id in text and passage.id in vectors else "text" if passage.id in text else "vector"
    return PassageHit(passage, score, via, snippet)  # type: ignore[arg-type]


def _diverse(hits: Sequence[PassageHit], limit: int, per_paper: int) -> list[PassageHit]:
    """The best ones, at most `per_paper` of a paper; those that were held back fill what room is left."""
    taken: Counter[str] = Counter()
    first: list[PassageHit] = []
    held: list[PassageHit] = []
    for hit in hits:
        if taken[hit.passage.paper_id] < per_paper:
            taken[hit.passage.paper_id] += 1
            first.append(hit)
        else:
            held.append(hit)
    return (first + held)[:limit]
