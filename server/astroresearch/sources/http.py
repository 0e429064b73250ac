"""One HTTP client for every service: total deadline, size cap, retries, rate limits, guarded addresses, typed errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self


class Http:
    """Shared by all sources; open it as an async context manager, or call `aclose`."""

    def __init__(
        self,
        loopback: Collection[tuple[str, int]] = (),
        *,
        user_agent: str = "",
        intervals: Mapping[str, float] | None = None,
    ) -> None:
        """`loopback`: see `guard.loopback_pairs`. `intervals`: least seconds between requests by source, default arXiv 3."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
