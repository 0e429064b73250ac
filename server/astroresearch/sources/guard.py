"""The address guard: no connection but to public addresses, checked and pinned at the moment of connecting."""

from __future__ import annotations

from collections.abc import Iterable


def loopback_pairs(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """The (host, port) of each base URL that names this machine; pass the user's settings, never a workspace's."""
    raise NotImplementedError
