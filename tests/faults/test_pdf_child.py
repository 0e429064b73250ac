"""The PDF child dies, hangs or is cancelled: the server lives, the paper gets a reason, no process is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import psutil
import pytest

from astroresearch.errors import DocumentError
from astroresearch.library.parse import PdfLimits, PdfParser
from tests.unit.library.pdfs import draw, lines

TEXT = lines(["A galaxy rotates around its centre, slowly and for a long time."])


async def _stop_child_then_parse(parser: PdfParser, good: Path, path: Path, sent: int) -> DocumentError:
    await parser.parse(good)
    assert parser.pid is not None
    os.kill(parser.pid, sent)
    with pytest.raises(DocumentError) as caught:
        await parser.parse(path)
    return caught.value


async def test_a_crash_is_counted_and_then_quarantined(tmp_path: Path) -> None:
    good, bad = draw(tmp_path / "good.pdf", [TEXT]), draw(tmp_path / "bad.pdf", [TEXT, TEXT])
    parser = PdfParser()
    try:
        for _ in range(3):
            await parser.parse(good)
            child = parser.pid
            assert child is not None
            os.kill(child, signal.SIGSTOP)
            reasons = []

            async def parse(into: list[str] = reasons) -> None:
                with pytest.raises(DocumentError) as caught:
                    await parser.parse(bad)
                into.append(caught.value.reason)

            async with anyio.create_task_group() as group:
                group.start_soon(parse)
                await anyio.wait_all_tasks_blocked()
                os.kill(child, signal.SIGSEGV)
                os.kill(child, signal.SIGCONT)
            assert reasons == ["crashed"]
        with pytest.raises(DocumentError) as caught:
            await parser.parse(bad)
        assert caught.value.reason == "quarantined"
        assert (await parser.parse(good)).pages_count == 1
    finally:
        await parser.aclose()


async def test_a_hang_is_given_up(tmp_path: Path) -> None:
    good = draw(tmp_path / "good.pdf", [TEXT])
    parser = PdfParser(PdfLimits(wall_s=0.3))
    try:
        warm = PdfParser()
        await warm.parse(good)
        warm.limits = parser.limits
        error = await _stop_child_then_parse(warm, good, good, signal.SIGSTOP)
        assert error.reason == "timeout"
        assert warm.pid is None
    finally:
        await parser.aclose()
        await warm.aclose()


async def test_a_cancel_kills_the_child_and_the_next_document_works(tmp_path: Path) -> None:
    good = draw(tmp_path / "good.pdf", [TEXT])
    parser = PdfParser()
    try:
        await parser.parse(good)
        child = parser.pid
        assert child is not None
        os.kill(child, signal.SIGSTOP)
        async with anyio.create_task_group() as group:
            group.start_soon(parser.parse, good)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        assert not psutil.pid_exists(child)
        assert (await parser.parse(good)).pages_count == 1
    finally:
        await parser.aclose()
