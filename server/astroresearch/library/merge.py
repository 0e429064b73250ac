"""When two records are one paper, and what their union is."""

from __future__ import annotations

from collections.abc import Iterable

from astroresearch.domain.paper import Paper


def same_work(a: Paper, b: Paper) -> bool:
    """Whether two records are one paper: a shared identifier, else title, first author and year, with care."""
    raise NotImplementedError


def join(a: Paper, b: Paper) -> Paper:
    """The union of two records of one paper; the published and the stored one's fields win."""
    raise NotImplementedError


def merge(papers: Iterable[Paper]) -> list[Paper]:
    """Records of the same paper joined, order of first appearance kept."""
    raise NotImplementedError
