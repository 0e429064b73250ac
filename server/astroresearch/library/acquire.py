"""Getting a paper's PDF: channels in order, each with its reason when it fails.

Only built-in hosts are asked, and redirects stay among them; never around a paywall. A file appears under its name only when
it is complete and a PDF; what is partial is removed, whatever ends the download.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urlsplit

import anyio

from astroresearch import crash
from astroresearch.config import ADS_URL, ARXIV_URL
from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.errors import (
    AstroResearchError,
    BadAnswer,
    NotFound,
    RateLimited,
    ServiceError,
    StoreUnavailable,
    TimedOut,
    Unreachable,
)
from astroresearch.sources.arxiv import withdrawn_in
from astroresearch.sources.http import Http, Request, looks_like_html

Progress = Callable[[str, float | None], None]

PDF_DEADLINE_S = 120.0
MAGIC = b"%PDF-"
MAGIC_WITHIN = 1_024
END = b"%%EOF"
END_WITHIN = 65_536

ARXIV_HOSTS = frozenset({"arxiv.org"})
PDF_HOSTS = frozenset(
    {
        "arxiv.org", "adsabs.harvard.edu", "scixplorer.org", "doi.org", "aanda.org", "academic.oup.com", "aip.org",
        "annualreviews.org", "aps.org", "ascelibrary.org", "cambridge.org", "edpsciences.org", "iop.org", "mdpi.com",
        "nature.com", "pnas.org", "science.org", "sciencedirect.com", "elsevier.com", "springer.com", "springeropen.com",
        "wiley.com", "worldscientific.com", "sissa.it", "spiedigitallibrary.org", "frontiersin.org", "zenodo.org",
        "astroj.org", "theoj.org", "jstage.jst.go.jp", "oup.com", "royalsocietypublishing.org", "tandfonline.com",
    }
)  # fmt: skip
"Where ADS's link gateway may lead, subdomains included."


@dataclass(frozen=True, slots=True)
class _Channel:
    label: str
    request: Request


class Acquirer:
    """Downloads PDFs from the built-in hosts into the papers folder."""

    def __init__(
        self,
        http: Http,
        folder: Path,
        *,
        arxiv_url: str = ARXIV_URL,
        ads_url: str = ADS_URL,
        max_pdf_mb: int = 100,
    ) -> None:
        self._http = http
        self._folder = folder
        self._arxiv = arxiv_url.rstrip("/")
        self._gateway = _gateway(ads_url)
        self._max_bytes = max_pdf_mb * 1_000_000

    async def download_file(self, paper: Paper, *, progress: Progress | None = None) -> Path:
        """`<folder>/<paper id>/paper.pdf`, complete and checked.

        Raises:
            NotFound: No channel has it; the message says what each answered, the hint what to do.
            ServiceError: No channel could be asked (network, limits).
            StoreUnavailable: The papers folder can't be written.
        """
        name = paper.id or identifiers.safe_name(paper.identifiers)
        shown = identifiers.primary(paper.identifiers) or paper.title
        reasons: list[str] = []
        failures: list[AstroResearchError] = []
        if gone := withdrawn_in(paper) if paper.identifiers.arxiv else "":
            reasons.append(_withdrawn(paper, gone))
        for channel in self._channels(paper.identifiers, withdrawn=bool(gone)):
            try:
                return await self._fetch(channel, self._folder / name, progress)
            except ServiceError as error:
                failures.append(error)
                reasons.append(f"{channel.label}: {_reason(error)}")
        if failures and not gone and all(isinstance(error, (Unreachable, TimedOut, RateLimited)) for error in failures):
            raise failures[0]
        raise NotFound(
            f"No PDF of {shown} could be had. {' '.join(reasons) or 'It has neither an arXiv id nor a bibcode.'}",
            hint="Download it in your browser, where you may have access, and import the file.",
        )

    def _channels(self, ids: Identifiers, *, withdrawn: bool) -> list[_Channel]:
        out = []
        if ids.arxiv and not withdrawn:
            out.append(_Channel("arXiv", self._request(f"{self._arxiv}/pdf/{ids.arxiv}", "arxiv", ARXIV_HOSTS)))
        if ids.bibcode:
            for kind, label in (("EPRINT_PDF", "Preprint"), ("PUB_PDF", "Publisher"), ("ADS_PDF", "ADS scan")):
                if kind != "EPRINT_PDF" or not ids.arxiv:
                    url = f"{self._gateway}/{quote(ids.bibcode, safe='')}/{kind}"
                    out.append(_Channel(label, self._request(url, "ADS link", PDF_HOSTS)))
        return out

    def _request(self, url: str, source: str, hosts: frozenset[str]) -> Request:
        granted = {host for host, _ in self._http.guard.loopback}
        return Request(
            url,
            source,
            headers={"Accept": "application/pdf"},
            deadline_s=PDF_DEADLINE_S,
            max_bytes=self._max_bytes,
            attempts=2,
            hosts=hosts | granted,
        )

    async def _fetch(self, channel: _Channel, folder: Path, progress: Progress | None) -> Path:
        try:
            part, file = await anyio.to_thread.run_sync(_open_part, folder)
            try:
                with file:
                    received = _Received(file, channel.request.source)
                    answer = await self._http.stream(
                        channel.request, received.take, received.restart, _reporter(channel.label, progress)
                    )
                    received.finish(whole="content-length" in answer.headers)
                    await anyio.to_thread.run_sync(_flush, file)
                crash.point("download.before_rename")
                return await anyio.to_thread.run_sync(_promote, part, folder / "paper.pdf")
            finally:
                _discard(part)
        except OSError as error:
            raise StoreUnavailable(
                f"The PDF can't be saved: {error.strerror or error}.",
                path=str(folder),
                hint="Check the space and the permissions of the data folder.",
            ) from error


class _Received:
    """The bytes as they come: refused as soon as they can't be a PDF."""

    def __init__(self, file: BinaryIO, source: str) -> None:
        self._file = file
        self._source = source
        self._head = b""
        self._tail = b""
        self._known = False

    def restart(self) -> None:
        self._head, self._tail, self._known = b"", b"", False
        self._file.seek(0)
        self._file.truncate()

    def take(self, piece: bytes) -> None:
        if not self._known:
            self._head += piece[:MAGIC_WITHIN]
            self._known = MAGIC in self._head[:MAGIC_WITHIN]
            if not self._known and len(self._head) >= MAGIC_WITHIN:
                raise self._refused()
        self._tail = (self._tail + piece)[-END_WITHIN:]
        self._file.write(piece)

    def finish(self, *, whole: bool) -> None:
        """`whole`: the service said how long the file is, so HTTP has checked that nothing is missing."""
        if not self._known:
            raise self._refused()
        if not whole and END not in self._tail:
            raise BadAnswer("the file is cut short.", source=self._source)

    def _refused(self) -> BadAnswer:
        if not self._head:
            return BadAnswer("it sent an empty file.", source=self._source)
        if looks_like_html(self._head):
            return BadAnswer("it sent a web page (a sign-in or a captcha) instead of a PDF.", source=self._source)
        return BadAnswer("what it sent is not a PDF.", source=self._source)


def _gateway(ads_url: str) -> str:
    """The link gateway stands beside ADS's API, under another name; a stand-in has both under one."""
    if ads_url.rstrip("/") == ADS_URL:
        return "https://ui.adsabs.harvard.edu/link_gateway"
    parts = urlsplit(ads_url)
    return f"{parts.scheme}://{parts.netloc}/link_gateway"


def _reporter(label: str, progress: Progress | None) -> Callable[[int, int | None], None] | None:
    if progress is None:
        return None

    def report(done: int, total: int | None) -> None:
        of = f" of {total / 1e6:.1f}" if total else ""
        progress(f"{label}: {done / 1e6:.1f}{of} MB", done / total if total else None)

    return report


def _reason(error: ServiceError) -> str:
    if error.status == 404:
        return "it has none."
    if error.status in (401, 403):
        return "it does not give it without a subscription."
    return str(error)


def _withdrawn(paper: Paper, version: str) -> str:
    number = int(version[1:])
    older = f"; v{number - 1} is at https://arxiv.org/abs/{paper.identifiers.arxiv}v{number - 1}" if number > 1 else ""
    return f"arXiv: withdrawn in {version}{older}."


def _open_part(folder: Path) -> tuple[Path, BinaryIO]:
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".paper-", suffix=".part", dir=folder)
    return Path(name), os.fdopen(handle, "w+b")


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _promote(part: Path, target: Path) -> Path:
    part.replace(target)
    with contextlib.suppress(OSError):  # folders can't be opened everywhere
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    return target


def _discard(part: Path) -> None:
    """The partial file, and its folder if nothing else is in it."""
    part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        part.parent.rmdir()
