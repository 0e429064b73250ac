"""Getting PDFs: in order, checked, whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.errors import NotFound, StoreUnavailable, Unreachable
from astroresearch.library.acquire import Acquirer
from astroresearch.sources.http import Http
from tests.fakes.faulty import Faulty, http

PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"
HTML = b"<!DOCTYPE html><html><body>Are you a robot?</body></html>"
BOTH = Paper("p1", "T", identifiers=Identifiers("2016Natur.535..117H", arxiv="1607.04487", arxiv_version=1))
GATE = "/link_gateway/2016Natur.535..117H"


@pytest.fixture
async def faulty() -> AsyncIterator[Faulty]:
    async with Faulty() as server:
        yield server


@pytest.fixture
async def acquirer(faulty: Faulty, tmp_path: Path) -> AsyncIterator[Acquirer]:
    async with Http([faulty.pair]) as client:
        yield Acquirer(client, tmp_path / "papers", arxiv_url=faulty.base, ads_url=faulty.url("/v1"), max_pdf_mb=1)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_arxiv_comes_first_with_progress(faulty: Faulty, acquirer: Acquirer, tmp_path: Path) -> None:
    faulty.routes["/pdf/1607.04487"] = http(200, PDF, ("Content-Type", "application/pdf"))
    seen: list[tuple[str, float | None]] = []
    path = await acquirer.download_file(BOTH, progress=lambda text, fraction: seen.append((text, fraction)))
    assert path == tmp_path / "papers" / "p1" / "paper.pdf"
    assert path.read_bytes() == PDF
    assert files(tmp_path) == ["papers/p1/paper.pdf"]
    assert seen[-1][1] == 1.0
    assert "MB" in seen[-1][0]
    assert list(faulty.asked) == ["/pdf/1607.04487"]


async def test_the_next_channel_after_a_captcha(faulty: Faulty, acquirer: Acquirer, tmp_path: Path) -> None:
    faulty.routes["/pdf/1607.04487"] = http(200, HTML, ("Content-Type", "application/pdf"))
    faulty.routes[f"{GATE}/PUB_PDF"] = http(200, HTML)
    faulty.routes["/scan"] = http(200, PDF)
    faulty.routes[f"{GATE}/ADS_PDF"] = http(302, b"", ("Location", "/scan"))
    assert (await acquirer.download_file(BOTH)).read_bytes() == PDF
    assert files(tmp_path) == ["papers/p1/paper.pdf"]


async def test_every_channel_says_why_and_leaves_nothing(faulty: Faulty, acquirer: Acquirer, tmp_path: Path) -> None:
    faulty.routes["/pdf/1607.04487"] = http(200, b"")
    faulty.routes[f"{GATE}/PUB_PDF"] = http(302, b"", ("Location", "https://evil.example/paper.pdf"))
    with pytest.raises(NotFound) as caught:
        await acquirer.download_file(BOTH)
    for reason in (
        "arXiv: it sent an empty file",
        "Publisher: ADS link leads to evil.example",
        "ADS scan: it has none",
    ):
        assert reason in caught.value.message
    assert "import" in caught.value.hint
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (http(200, HTML), "a web page (a sign-in or a captcha) instead of a PDF"),
        (http(200, b"x" * 5000), "not a PDF"),
        (http(200, b"%PDF-1.7 " + b"x" * 1_100_000), "larger than 1 MB"),
        (http(403, HTML), "without a subscription"),
        (http(200, b"%PDF-1.4 half", ("Connection", "close"), length=False), "cut short"),
    ],
)
async def test_what_is_no_whole_pdf(
    faulty: Faulty, acquirer: Acquirer, tmp_path: Path, reply: bytes, reason: str
) -> None:
    faulty.routes["/pdf/1607.04487"] = reply
    faulty.close_after.add("/pdf/1607.04487")
    with pytest.raises(NotFound) as caught:
        await acquirer.download_file(Paper("p", "T", identifiers=Identifiers(arxiv="1607.04487")))
    assert reason in caught.value.message
    assert files(tmp_path) == []


async def test_a_good_file_is_not_harmed_by_a_failed_download(
    faulty: Faulty, acquirer: Acquirer, tmp_path: Path
) -> None:
    old = tmp_path / "papers" / "p1" / "paper.pdf"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"%PDF-old")
    with pytest.raises(NotFound):
        await acquirer.download_file(BOTH)
    assert old.read_bytes() == b"%PDF-old"
    assert files(tmp_path) == ["papers/p1/paper.pdf"]


async def test_no_network_is_no_missing_paper(acquirer: Acquirer, faulty: Faulty) -> None:
    faulty.routes["/pdf/1607.04487"] = http(503)
    with pytest.raises(Unreachable):
        await acquirer.download_file(Paper("p", "T", identifiers=Identifiers(arxiv="1607.04487")))


async def test_a_withdrawn_paper_is_said_and_not_fetched(faulty: Faulty, acquirer: Acquirer) -> None:
    gone = Paper(
        "p", "T", identifiers=Identifiers(arxiv="1802.09703", arxiv_version=3), comment="This paper has been withdrawn"
    )
    with pytest.raises(NotFound, match=r"withdrawn in v3; v2 is at https://arxiv\.org/abs/1802\.09703v2"):
        await acquirer.download_file(gone)
    assert not faulty.asked


async def test_a_paper_without_names_says_so(acquirer: Acquirer) -> None:
    with pytest.raises(NotFound, match="neither an arXiv id nor a bibcode"):
        await acquirer.download_file(Paper("p", "T"))


async def test_a_cancel_removes_what_is_partial(faulty: Faulty, acquirer: Acquirer, tmp_path: Path) -> None:
    faulty.routes["/pdf/1607.04487"] = http(302, b"", ("Location", "/drip"))
    async with anyio.create_task_group() as group:
        group.start_soon(acquirer.download_file, BOTH)
        await faulty.until(lambda: faulty.asked["/drip"] > 0)
        group.cancel_scope.cancel()
    assert files(tmp_path) == []


async def test_a_folder_that_cannot_be_written(faulty: Faulty, acquirer: Acquirer, tmp_path: Path) -> None:
    (tmp_path / "papers").write_text("a file where the folder should be")
    with pytest.raises(StoreUnavailable):
        await acquirer.download_file(BOTH)
