"""Searching the text of the library: passages with pages, and quotes that were checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from astroresearch.domain.passage import Citation, Retrieval
from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import PAGE_BUDGET, citation_line, clip


class RagSearchArguments(Arguments):
    """The question and where to look."""

    query: str = Field(min_length=1, max_length=1_000, description="A question or key words, in plain words.")
    limit: int = Field(6, ge=1, le=20, description="Passages at most.")
    papers: list[str] = Field(
        [], max_length=50, description="Only these papers (any identifiers); the whole library if empty."
    )


class RagSearch(Tool[RagSearchArguments, ToolServices]):
    """Passages of the library that fit, and their best sentences as quotes."""

    name = "rag_search"
    description = (
        "Searches the full text of the library's papers by words and by meaning. Gives quotes that were checked against their "
        "page, then the passages around them, each with paper and page. Quote only what it shows, with its page."
    )
    kind: ClassVar[Kind] = "search"
    arguments = RagSearchArguments
    reads_untrusted = True
    max_result_chars: ClassVar[int | None] = 2 * PAGE_BUDGET
    default_decision = "allow"

    def title(self, args: RagSearchArguments) -> str:
        """Names the query."""
        return f"Search the library for “{clip(args.query, 80)}”"

    def is_concurrency_safe(self, args: RagSearchArguments) -> bool:
        """Searches never disturb one another."""
        return True

    def rule_value(self, args: RagSearchArguments) -> str:
        """The query."""
        return args.query

    async def execute(self, args: RagSearchArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Finds passages, then their quotes."""
        search = context.services.passages
        found = await search.passages(args.query, limit=args.limit, papers=args.papers)
        quotes = await search.citations(args.query, found, limit=min(args.limit, 5)) if found.hits else ()
        papers = {hit.passage.paper_id for hit in found.hits}
        return ToolOutput(
            listing(args.query, found, quotes),
            metadata={"citations": plain(tuple(quotes)), "mode": found.mode, "notice": found.notice},
            tainted=bool(found.hits),
            taint_source=f"text of {len(papers)} papers in the library"
            if len(papers) != 1
            else f"text of paper {papers.pop()}",
        )


def listing(query: str, found: Retrieval, quotes: Sequence[Citation]) -> str:
    """Quotes first, then passages, within the budget."""
    notice = [f"[{found.notice}]"] if found.notice else []
    if not found.hits:
        return "\n".join(
            [f"Nothing in the library fits {clip(query, 200)!r}. Try other words, or search_papers.", *notice]
        )
    lines = ["Quotes:", *(f"- {citation_line(quote)}" for quote in quotes)] if quotes else []
    lines.append("Passages:")
    room = max((PAGE_BUDGET - sum(map(len, lines))) // len(found.hits) - 60, 120)
    for number, hit in enumerate(found.hits, 1):
        passage = hit.passage
        pages = f"p. {passage.page}" if passage.page_end <= passage.page else f"pp. {passage.page}-{passage.page_end}"
        section = f", {clip(passage.section, 60)}" if passage.section else ""
        lines.append(f"{number}. paper {passage.paper_id}, {pages}{section}: {clip(passage.text, room)}")
    return "\n".join([*lines, *notice])
