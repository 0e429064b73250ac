"""Finding papers online: ADS and arXiv at once."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from astroresearch.domain.paper import SearchHit, SearchOutcome
from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Effect, Kind, Rule, Tool, ToolContext, ToolOutput
from astroresearch.tools.leaks import egress_rule, is_short
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import PAGE_BUDGET, clip, paper_line


class SearchPapersArguments(Arguments):
    """The query and how many hits."""

    query: str = Field(
        min_length=1,
        max_length=1_000,
        description='Words, or ADS fields: `author:"Fabian" abs:"cooling flow" year:2000-2010`.',
    )
    limit: int = Field(10, ge=1, le=50, description="Papers at most.")
    sort: Literal["relevance", "date", "citations"] = Field("relevance", description="What comes first.")
    sources: list[Literal["ads", "arxiv"]] = Field([], description="Only these services; all if empty.")


class SearchPapers(Tool[SearchPapersArguments, ToolServices]):
    """Papers that match a query."""

    name = "search_papers"
    description = (
        "Searches ADS (where a token is set) and arXiv and merges what they find, with abstracts; says which papers are in "
        "the library, cited in the manuscript, or have notes. Keep queries short and free of the manuscript's own text."
    )
    kind: ClassVar[Kind] = "search"
    arguments = SearchPapersArguments
    effect: ClassVar[Effect] = "egress"
    reads_untrusted = True
    max_result_chars: ClassVar[int | None] = 2 * PAGE_BUDGET
    default_decision = "allow"

    def title(self, args: SearchPapersArguments) -> str:
        """Names the query."""
        return f"Search papers: {clip(args.query, 80)}"

    def is_concurrency_safe(self, args: SearchPapersArguments) -> bool:
        """Searches never disturb one another."""
        return True

    def rule_value(self, args: SearchPapersArguments) -> str:
        """The query."""
        return args.query

    def taint_exempt(self, args: SearchPapersArguments, context: ToolContext[ToolServices]) -> bool:
        """Short queries to the built-in services; `check_permissions` looks for the manuscript's text."""
        return is_short(args.query)

    async def check_permissions(self, args: SearchPapersArguments, context: ToolContext[ToolServices]) -> Rule | None:
        """Asks where the query carries the manuscript's text after a stranger's was read."""
        return await egress_rule(args.query, context)

    async def describe(self, args: SearchPapersArguments, context: ToolContext[ToolServices]) -> str:
        """The whole query and where it goes."""
        return f"Send this query to {' and '.join(args.sources) or 'ADS and arXiv'}:\n{args.query}"

    async def execute(self, args: SearchPapersArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Asks all sources, reporting what comes first."""

        def partial(outcome: SearchOutcome) -> None:
            context.progress(f"{len(outcome.hits)} papers so far", None)

        outcome = await context.services.catalogue.search(
            args.query,
            sources=args.sources,
            limit=args.limit,
            sort=args.sort,
            cite_keys=tuple(str(key) for key in context.extra.get("citeKeys", ())),
            on_partial=partial,
        )
        return ToolOutput(
            listing(args.query, outcome),
            metadata={"hits": plain(outcome.hits), "notices": list(outcome.notices)},
            tainted=bool(outcome.hits),
            taint_source="abstracts found by a search",
        )


def listing(query: str, outcome: SearchOutcome) -> str:
    """The hits as a numbered list that fits the budget, then the notices."""
    notes = [f"[{notice}]" for notice in outcome.notices]
    if not outcome.hits:
        return "\n".join([f"No paper found for {clip(query, 200)!r}.", *notes])
    room = max((PAGE_BUDGET - sum(map(len, notes))) // len(outcome.hits), 200)
    return "\n".join([*(f"{n}. {_hit(hit, room)}" for n, hit in enumerate(outcome.hits, 1)), *notes])


def _hit(hit: SearchHit, room: int) -> str:
    marks = [
        name
        for name, on in (("in library", hit.in_library), ("cited here", hit.cited_here), ("has notes", hit.has_notes))
        if on
    ]
    head = paper_line(hit.paper) + (f" [{', '.join(marks)}]" if marks else "")
    rest = room - len(head) - 10
    return head + (f"\n   {clip(hit.paper.abstract, rest)}" if rest > 80 and hit.paper.abstract else "")
