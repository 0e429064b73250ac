"""A hybrid query over 20,000 synthetic passages, its vector included."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from astroresearch.domain.paper import Paper
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.library.retrieve import Retriever
from astroresearch.store.database import Store

PASSAGES, PER_PAPER, QUERIES, DIM = 20_000, 50, 100, 384


class Synthetic:
    """An embedder of random unit vectors: what is measured is the search."""

    name, dim, problem = "synthetic", DIM, ""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(1)

    async def wanted(self) -> None:
        await anyio.sleep_forever()

    async def warm(self) -> None:
        return None

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[bytes]:
        found = self._chance.standard_normal((len(texts), DIM)).astype(np.float32)
        return [(v / np.linalg.norm(v)).tobytes() for v in found]


async def _run(home: Path) -> list[float]:
    chance = random.Random(1)
    vocabulary = [f"word{i}" for i in range(8_000)]
    weights = [1 / (i + 2) for i in range(8_000)]
    store, embedder = await Store.open(home / "library.db"), Synthetic()
    try:
        for number in range(PASSAGES // PER_PAPER):
            texts = [" ".join(chance.choices(vocabulary, weights, k=180)) for _ in range(PER_PAPER)]
            passages = [Passage(0, "", i, "", 1, 1, t, 0, len(t)) for i, t in enumerate(texts)]
            paper = Paper(f"bench-{number}", f"Paper {number}", state="searchable")
            stored = await store.passages.replace(paper, [PageRecord(1, "text", b"")], passages)
            vectors = await embedder.embed(texts)
            pairs = [(p.id, v) for p, v in zip(stored, vectors, strict=True)]
            await store.passages.add_vectors(embedder.name, DIM, pairs)
        retriever = Retriever(store.passages, embedder)
        times = []
        for _ in range(QUERIES):
            query = " ".join(chance.choices(vocabulary, weights, k=8))
            began = time.perf_counter()
            found = await retriever.search(query)
            times.append(time.perf_counter() - began)
            assert found.mode == "hybrid"
        return sorted(times)
    finally:
        await store.aclose()


def measure() -> list[dict[str, Any]]:
    """p95 in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        times = anyio.run(_run, Path(name))
    p95 = times[int(0.95 * len(times)) - 1] * 1e3
    row = {"name": f"hybrid query over {PASSAGES} passages, p95", "ours": p95, "reference": None, "ratio": None}
    return [{**row, "goal": "≤ 100 ms", "ok": p95 <= 100, "unit": "ms"}]
