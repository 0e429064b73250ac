"""How tools show papers and text to a model: one wording for all of them."""

from __future__ import annotations

import re

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import Citation

BUDGET = 3_600
"Characters of one result: below `Limits.max_result_chars`, so that a list is not persisted and read again."
PAGE_BUDGET = 12_000
"Characters of one result of the tools that page through text; they set their own `max_result_chars`."


def clip(text: str, limit: int) -> str:
    """The text, or its head with an ellipsis."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def lines_of(text: str) -> list[str]:
    """The lines as an editor counts them: LF, CRLF and CR end one, a form feed does not."""
    lines = re.split(r"\r\n|\n|\r", text)
    return lines if lines[-1] else lines[:-1]


def names_of(ids: Identifiers) -> str:
    """All identifiers of a paper on one line."""
    names = [
        ids.bibcode and f"bibcode {ids.bibcode}",
        ids.doi and f"doi:{ids.doi}",
        ids.arxiv and f"arXiv:{ids.arxiv}",
    ]
    return ", ".join(name for name in names if name)


def by_line(paper: Paper) -> str:
    """`Fabian, Sanders and 3 more (2011)`."""
    last = [author.split(",")[0] for author in paper.authors]
    who = ", ".join(last[:2]) + (f" and {len(last) - 2} more" if len(last) > 2 else "") or "unknown authors"
    return f"{who} ({paper.year})" if paper.year else who


def paper_line(paper: Paper) -> str:
    """A paper on one line: authors, year, title, identifiers, our id, state."""
    parts = [f"{by_line(paper)}: {clip(paper.title, 200)}", names_of(paper.identifiers)]
    if paper.id:
        parts.append(f"paper {paper.id}, {STATES[paper.state]}")
    return " | ".join(part for part in parts if part)


STATES = {
    "known": "metadata only",
    "downloaded": "PDF here, not yet parsed",
    "searchable": "text in the library",
    "failed": "its file can't be used",
}


def paper_record(paper: Paper) -> str:
    """A paper in full, with its abstract."""
    lines = [
        f"Title: {paper.title}",
        f"Authors: {'; '.join(paper.authors[:12])}"
        + (f"; and {len(paper.authors) - 12} more" * (len(paper.authors) > 12)),
        f"Published: {paper.pubdate or paper.year or 'unknown'}" + (f", {paper.journal}" if paper.journal else ""),
        f"Identifiers: {names_of(paper.identifiers) or 'none'}",
    ]
    if paper.id:
        lines.append(f"In the library: paper {paper.id}, {STATES[paper.state]}")
    if paper.state_reason:
        lines.append(f"State: {paper.state_reason}")
    if paper.comment:
        lines.append(f"Comment: {clip(paper.comment, 300)}")
    lines += [f"Warning: {clip(warning, 200)}" for warning in paper.warnings[:3]]
    if paper.abstract:
        lines.append(f"Abstract: {clip(paper.abstract, 2_000)}")
    return "\n".join(lines)


def citation_line(citation: Citation) -> str:
    """A quote with its place, and whether it stands there."""
    who = citation.label or citation.title or citation.paper_id
    mark = "checked" if citation.verified else "NOT FOUND in the text: do not quote it"
    return f"“{citation.quote}” — {who}, paper {citation.paper_id}, p. {citation.page} ({mark})"
