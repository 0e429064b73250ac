"""Saving a note of the user's library."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from astroresearch.domain.plain import plain
from astroresearch.engine.tool import Arguments, Effect, Kind, Tool, ToolContext, ToolOutput
from astroresearch.errors import InvalidInput, NotFound
from astroresearch.tools.ports import ToolServices
from astroresearch.tools.words import clip

MAX_TEXT = 50_000


class SaveNoteArguments(Arguments):
    """The note and what it hangs on."""

    text: str = Field(min_length=1, max_length=MAX_TEXT, description="The note, Markdown.")
    paper: str = Field(
        "",
        max_length=500,
        description="Paper of the library that it is about (any identifier); leave it out if there is none.",
    )
    page: int = Field(0, ge=0, description="Page of the quote, from 1; 0 lets it be found.")
    quote: str = Field(
        "", max_length=5_000, description="Words of the paper, exactly as they stand there; they are checked."
    )
    cite_key: str = Field("", max_length=200, description="Cite key in the manuscript, if any.")
    tags: list[str] = Field([], max_length=20, description="Tags.")


class SaveNote(Tool[SaveNoteArguments, ToolServices]):
    """A note, durable once this returns."""

    name = "save_note"
    description = (
        "Saves a note in the user's library, on a paper's page and quote or on a cite key. A quote is checked against the "
        "paper first."
    )
    kind: ClassVar[Kind] = "edit"
    arguments = SaveNoteArguments
    interrupt_behavior: ClassVar[Literal["cancel", "block"]] = "block"
    effect: ClassVar[Effect] = "library_write"
    default_decision = "allow"

    def title(self, args: SaveNoteArguments) -> str:
        """The note's beginning."""
        return f"Save a note: {clip(' '.join(args.text.split()), 70)}"

    def resources(self, args: SaveNoteArguments) -> frozenset[str]:
        """Notes keep their order among themselves and disturb nothing else."""
        return frozenset({"notes"})

    def rule_value(self, args: SaveNoteArguments) -> str:
        """The paper."""
        return args.paper

    async def execute(self, args: SaveNoteArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Checks the quote, then saves."""
        if args.quote and not args.paper:
            raise InvalidInput("A quote needs the paper it is from.", field="paper")
        page = await self._page_of_quote(args, context) if args.quote else args.page
        note = await context.services.notes.create(
            args.text,
            paper=args.paper,
            page=page,
            quote=args.quote,
            cite_key=args.cite_key,
            tags=args.tags,
            origin="agent_tainted" if context.tainted else "agent",
            session_id=context.session_id,
        )
        where = f" on {clip(args.paper, 80)}" + (f", p. {note.page}" if note.page else "") if args.paper else ""
        checked = " The quote was found there." if note.quote_verified else ""
        return ToolOutput(f"Saved note {note.id}{where}.{checked}", metadata={"note": plain(note)})

    async def _page_of_quote(self, args: SaveNoteArguments, context: ToolContext[ToolServices]) -> int:
        found = await context.services.passages.verify(args.paper, args.quote, page=args.page or None)
        if not found.verified and args.page:
            found = await context.services.passages.verify(args.paper, args.quote)
        if not found.verified:
            raise NotFound(
                f"The quote does not stand in {clip(args.paper, 80)}; the note was not saved.",
                hint="Copy it exactly from rag_search or get_paper_content, or save the note without a quote.",
            )
        return found.page
