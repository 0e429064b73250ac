"""A note: the user's words, anchored to a paper's page and quote, to a cite key, or to a place in the manuscript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the manuscript: the file, the line when it was made, and the line's text to find it again."""

    uri: str
    line: int
    "From 0."
    context: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """One note."""

    id: str
    text: str
    tags: tuple[str, ...] = ()
    color: str = ""
    paper_id: str = ""
    page: int = 0
    "From 1; 0 for none."
    quote: str = ""
    quote_verified: bool = False
    cite_key: str = ""
    place: Place | None = None
    origin: Literal["user", "agent", "agent_tainted"] = "user"
    "`agent_tainted`: written by the agent after it had read a stranger's text."
    session_id: str = ""
    created: str = ""
    "ISO 8601 in UTC."
    updated: str = ""
