"""Answers that can be checked: sentences of the library's own text, each looked up again on its page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import anyio.to_thread

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import Citation, Retrieval
from astroresearch.errors import InvalidInput, NotFound
from astroresearch.library.quotes import PaperText
from astroresearch.library.rank import MEANING, Candidate, candidates, choose, content, score
from astroresearch.library.retrieve import Retriever
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore

MEANT, MEANING_S = 30, 1.0
"Sentences that are compared with the question by meaning at most, and for how many seconds."
KEPT = 8
"Papers whose folded text is kept."


def label(paper: Paper) -> str:
    """Author and year for people: `Fabian 2012`, `Lam & Wong 2023`, `Fabian et al. 2011`; the title where no author is known."""
    names = [a.split(",")[0].strip() for a in paper.authors if a.strip()]
    if not names:
        return paper.title or paper.id
    who = " & ".join(names) if len(names) <= 2 else f"{names[0]} et al."
    return f"{who} {paper.year}" if paper.year else who


def cite(paper: Paper, quote: str, *, page: int = 0, section: str = "") -> Citation:
    """An unverified citation of a paper."""
    ids = paper.identifiers
    return Citation(
        paper_id=paper.id,
        page=page,
        quote=quote,
        verified=False,
        section=section,
        bibcode=ids.bibcode,
        doi=ids.doi,
        arxiv=ids.arxiv,
        title=paper.title,
        label=label(paper),
    )


class Answerer:
    """Fits `tools.ports.PassageSearch`."""

    def __init__(self, retriever: Retriever, papers: PaperStore, passages: PassageStore) -> None:
        self._retriever = retriever
        self._papers = papers
        self._passages = passages
        self._kept: dict[str, tuple[int, PaperText]] = {}

    async def passages(
        self, query: str, *, limit: int = 8, papers: Sequence[str] = (), per_paper: int = 3
    ) -> Retrieval:
        """Hybrid search; `papers` narrows it to these (any identifiers).

        Raises:
            NotFound: None of `papers` is in the library.
        """
        found = [p.id for name in papers if (p := await self._find(name)) is not None]
        if papers and not found:
            raise NotFound(f"Not in the library: {', '.join(papers)}.", hint="Download or import it first.")
        return await self._retriever.search(query, limit=limit, paper_ids=found, per_paper=per_paper)

    async def citations(self, query: str, retrieval: Retrieval, *, limit: int = 3) -> Sequence[Citation]:
        """The sentences of these passages that answer best, verbatim, each checked against its page."""
        found: list[Candidate] = []
        records: dict[str, Paper] = {}
        for rank, hit in enumerate(retrieval.hits):
            paper_id = hit.passage.paper_id
            if paper_id not in records:
                paper = await self._papers.get(paper_id)
                if paper is None:  # removed meanwhile
                    continue
                records[paper_id] = paper
            text = await self._text(paper_id)
            found += await anyio.to_thread.run_sync(candidates, hit.passage, rank, text.joined)
        await self._score(query, found)
        out: list[Citation] = []
        for chosen in choose(found, limit):
            passage = chosen.passage
            plain = cite(records[passage.paper_id], chosen.text, page=passage.page, section=passage.section)
            out.append(await anyio.to_thread.run_sync(check, plain, await self._text(passage.paper_id)))
        return out

    async def _score(self, query: str, found: list[Candidate]) -> None:
        asked = content(query)
        counts = await self._passages.document_counts(asked)
        total = (await self._passages.counts())["passages"]
        rarity = {w: math.log(1 + (total + 1) / (counts.get(w, 0) + 0.5)) for w in asked}
        await anyio.to_thread.run_sync(score, query, found, rarity)
        best = sorted((c for c in found if c.score > 0), key=lambda c: -c.score)[:MEANT]
        near = await self._retriever.similarities(query, [c.text for c in best], budget_s=MEANING_S)
        for candidate, similar in zip(best, near, strict=False):
            candidate.score += MEANING * max(0.0, similar)
        if near:  # those whose turn did not come are not compared with the others
            mean = MEANING * sum(near) / len(near)
            for candidate in best[len(near) :]:
                candidate.score += mean / 2

    async def _text(self, paper_id: str) -> PaperText:
        """The paper's pages, folded once; a few papers are kept while a question is answered and for the next one."""
        pages = await self._passages.pages(paper_id)
        key = hash(tuple((p.page, p.text) for p in pages))
        kept = self._kept.pop(paper_id, None)
        text = kept[1] if kept is not None and kept[0] == key else PaperText(pages)
        self._kept[paper_id] = (key, text)
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return text

    async def verify(self, paper: str, quote: str, *, page: int | None = None) -> Citation:
        """Looks a quote up in the paper's own text; `verified` and `rects` say what was found.

        Raises:
            NotFound: The paper is not in the library, or its text is not.
            InvalidInput: There is nothing to look for.
        """
        if not quote.strip():
            raise InvalidInput("The quote is empty.", field="quote")
        record = await self._find(paper)
        if record is None:
            raise NotFound(f"`{paper}` is not in the library.", hint="Download or import it first.")
        pages = await self._passages.pages(record.id)
        if not pages:
            raise NotFound(f"The text of {label(record)} is not in the library.", hint="Download and parse it first.")
        return await anyio.to_thread.run_sync(check, cite(record, quote, page=page or 0), await self._text(record.id))

    async def _find(self, name: str) -> Paper | None:
        if (paper := await self._papers.get(name)) is not None:
            return paper
        parsed = identifiers.parse(name)
        found = await self._papers.find(parsed) if parsed is not None else []
        return found[0] if found else None


def check(citation: Citation, text: PaperText) -> Citation:
    """The citation with the outcome of the check: its page and rectangles, or `verified=False` as it was."""
    found = text.find(citation.quote, citation.page or None)
    if found is None:
        return citation
    page, rects = found
    return dataclasses.replace(citation, page=page, rects=rects, verified=True)
