"""The default embedder, in a child process."""

from __future__ import annotations

from collections.abc import Sequence


class LocalEmbedder:
    """MiniLM (int8) in a child that starts at the first use. Fits library.index.Embedder."""

    name = "all-MiniLM-L6-v2-int8"
    dim = 384

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[bytes]:
        """Unit vectors of 32-bit floats. Urgent ones (queries) overtake others."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Ends the child."""
