"""What a call that leaves this machine may carry once a stranger's text is in the context."""

from __future__ import annotations

import re

from astroresearch.domain import identifiers
from astroresearch.engine.tool import Rule, ToolContext
from astroresearch.errors import AstroResearchError
from astroresearch.tools.paths import is_own
from astroresearch.tools.ports import ToolServices, Workspace

MAX_QUERY = 200
"Characters of a query that is too short to leak anything that matters."
RUN = 40
"A run of that many characters of the manuscript in a query counts as a leak."
_MAX_FILES = 400
_MANUSCRIPT = frozenset({".tex", ".ltx", ".md", ".txt"})


def is_short(query: str) -> bool:
    """Whether a query is short enough to need no question because of a stranger's text."""
    return len(query) <= MAX_QUERY


def is_identifier(paper: str) -> bool:
    """Whether the text names a paper and nothing more: our own id, a bibcode, a DOI, an arXiv id."""
    text = paper.strip()
    return is_short(text) and (
        re.fullmatch(r"[A-Za-z0-9._-]{1,64}", text) is not None or identifiers.parse(text) is not None
    )


async def egress_rule(query: str, context: ToolContext[ToolServices]) -> Rule | None:
    """Asks before a query that holds a piece of the manuscript leaves, once the turn is tainted; else None."""
    if not context.tainted or len(query) < RUN:
        return None
    name = await shared_run(query, context.services.workspace)
    if not name:
        return None
    return Rule("ask", f"The query holds text of {name}, and the agent has read {_source(context)}.")


def _source(context: ToolContext[ToolServices]) -> str:
    return context.taint_sources[0] if context.taint_sources else "a stranger's text"


async def shared_run(query: str, workspace: Workspace) -> str:
    """The name of a manuscript file that shares a run of `RUN` characters with the query; empty if there is none."""
    needle = _folded(query)
    runs = {needle[i : i + RUN] for i in range(len(needle) - RUN + 1)}
    seen = 0
    for root in workspace.roots:
        for path in await workspace.walk(root):
            if path.suffix.lower() not in _MANUSCRIPT or not is_own(path, workspace):
                continue
            seen += 1
            if seen > _MAX_FILES:
                return ""
            try:
                file = await workspace.read(path)
            except AstroResearchError:
                continue
            if any(run in _folded(file.text) for run in runs):
                return path.name
    return ""


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()
