"""Answers that can be checked: sentences of the library's own text, each looked up again on its page."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import anyio.to_thread

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import Citation, Passage, Retrieval
from astroresearch.errors import InvalidInput, NotFound
from astroresearch.library.quotes import PaperText
from astroresearch.library.retrieve import Retriever
from astroresearch.library.sentences import sentences
from astroresearch.library.words import stem, terms, words
from astroresearch.store.papers import PaperStore
from astroresearch.store.passages import PassageStore

SHORTEST, LONGEST = 40, 600
"Characters of a sentence that may be quoted."


def label(paper: Paper) -> str:
    """Author and year for people: `Fabian 2012`, `Lam & Wong 2023`, `Fabian et al. 2011`; the title where no author is known."""
    names = [a.split(",")[0].strip() for a in paper.authors if a.strip()]
    if not names:
        who = paper.title[:60] or paper.id
    elif len(names) == 2:
        who = f"{names[0]} & {names[1]}"
    else:
        who = names[0] if len(names) == 1 else f"{names[0]} et al."
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


@dataclass(frozen=True, slots=True)
class _Candidate:
    score: float
    passage: Passage
    text: str
    start: int
    "Offset in the paper's text."


class Answerer:
    """Fits `tools.ports.PassageSearch`."""

    def __init__(self, retriever: Retriever, papers: PaperStore, passages: PassageStore) -> None:
        self._retriever = retriever
        self._papers = papers
        self._passages = passages

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

    async def citations(self, query: str, retrieval: Retrieval, *, limit: int = 5) -> Sequence[Citation]:
        """The sentences of these passages that share most with the query, verbatim, each checked against its page."""
        chosen = choose(query, [hit.passage for hit in retrieval.hits], limit)
        texts: dict[str, PaperText] = {}
        records: dict[str, Paper] = {}
        out: list[Citation] = []
        for candidate in chosen:
            paper_id = candidate.passage.paper_id
            if paper_id not in texts:
                paper = await self._papers.get(paper_id)
                if paper is None:  # removed meanwhile
                    continue
                records[paper_id] = paper
                texts[paper_id] = PaperText(await self._passages.pages(paper_id))
            plain = cite(
                records[paper_id], candidate.text, page=candidate.passage.page, section=candidate.passage.section
            )
            out.append(await anyio.to_thread.run_sync(check, plain, texts[paper_id]))
        return out

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
        return await anyio.to_thread.run_sync(check, cite(record, quote, page=page or 0), PaperText(pages))

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


def choose(query: str, passages: Sequence[Passage], limit: int) -> list[_Candidate]:
    """The best sentences of passages, best first: by the rarity of the query's words in them and the rank of their passage."""
    wanted = {stem(w) for w in terms(query)}
    candidates = [
        (rank, passage, passage.text[span.start : span.end], span.start)
        for rank, passage in enumerate(passages)
        for span in sentences(passage.text)
        if SHORTEST <= span.end - span.start <= LONGEST and _is_prose(passage.text[span.start : span.end])
    ]
    bags = [{stem(w) for w in words(text)} for _, _, text, _ in candidates]
    weight = _weights(wanted, bags)
    scored = [
        _Candidate(
            sum(weight[w] for w in wanted & bag) / (1 + 0.15 * rank) / math.sqrt(1 + len(bag) / 40),
            p,
            text,
            at + p.start,
        )
        for (rank, p, text, at), bag in zip(candidates, bags, strict=True)
    ]
    scored.sort(key=lambda c: -c.score)
    out: list[_Candidate] = []
    per_passage: Counter[int] = Counter()
    for candidate in scored:
        fresh = all(candidate.text != other.text for other in out)
        if candidate.score > 0 and fresh and per_passage[candidate.passage.id] < 2:
            per_passage[candidate.passage.id] += 1
            out.append(candidate)
    return out[:limit]


def _weights(wanted: Iterable[str], bags: Sequence[set[str]]) -> dict[str, float]:
    counts = Counter(w for bag in bags for w in bag)
    return {w: math.log(1 + (len(bags) + 1) / (counts[w] + 0.5)) for w in wanted}


def _is_prose(text: str) -> bool:
    """No table row, list of names or equation: mostly letters, and begun and ended like a sentence."""
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return letters > 0.75 * len(text) and re.match(r"[A-Z0-9\"'“‘(\[]", text) is not None and text[-1] in '.!?"”’)'
