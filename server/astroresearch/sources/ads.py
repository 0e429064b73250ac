"""The ADS API."""

from __future__ import annotations

from astroresearch.config import Secret
from astroresearch.sources.http import Http


class Ads:
    """Client of the ADS API."""

    def __init__(self, http: Http, base_url: str, token: Secret) -> None: ...
