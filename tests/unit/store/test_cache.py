"""Cached answers live as long as they should."""

from __future__ import annotations

import pytest

from astroresearch.store import cache
from astroresearch.store.connection import connect, scalar
from astroresearch.store.database import Store


async def test_values_come_back_until_their_time_is_over(store: Store) -> None:
    await store.cache.put("k", b"\0value", 60)
    assert await store.cache.get("k") == b"\0value"
    assert await store.cache.get("other") is None
    await store.cache.put("k", b"new", 60)
    assert await store.cache.get("k") == b"new"
    await store.cache.put("k", b"old", 0)
    assert await store.cache.get("k") is None


async def test_a_value_from_the_future_is_not_believed(store: Store) -> None:
    await store.cache.put("k", b"v", 3600)
    connect(store.path).execute("update cache set stored = stored + 600")
    assert await store.cache.get("k") is None


async def test_old_answers_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 1000)
    monkeypatch.setattr(cache, "_PRUNE_EVERY", 2)
    for n in range(9):
        await store.cache.put(f"k{n}", b"x" * 200, 60)
    assert await store.cache.get("k8") is not None
    assert await store.cache.get("k0") is None
    assert scalar(connect(store.path), "select sum(length(value)) from cache") <= 1200
    await store.cache.clear()
    assert await store.cache.get("k8") is None


async def test_the_audit_log_keeps_its_order(store: Store) -> None:
    for n in range(5):
        await store.audit.add("s", "main", "permission", {"n": n})
    await store.audit.add("other", "main", "hook", {})
    assert [e.payload["n"] for e in await store.audit.list("s", limit=3)] == [2, 3, 4]
    assert len(await store.audit.list()) == 6
