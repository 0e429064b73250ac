"""The arXiv API."""

from __future__ import annotations

from astroresearch.sources.http import Http


class Arxiv:
    """Client of the arXiv API."""

    def __init__(self, http: Http, base_url: str) -> None: ...
