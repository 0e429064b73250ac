"""The tools of this product, one line each."""

from __future__ import annotations

from astroresearch.engine.tool import Registry


def standard() -> Registry:
    """Every tool that the main agent is offered."""
    return Registry([])
