"""From a PDF to pages and passages: the server's side of the child process that opens it."""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from astroresearch import crash
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.errors import DocumentError, DocumentReason
from astroresearch.library.sentences import passages
from astroresearch.models.child import Child, ChildGone

Progress = Callable[[str, float | None], None]

MODULE = "astroresearch.library.pdf_child"
RECYCLE_AFTER = 64
"Documents that one child opens: MuPDF's caches and leaks end with it."
RECYCLE_RSS_KB = 700_000
CRASHES = 3
"Crashes by one file until it is not tried again."

SENTENCES: Mapping[str, tuple[str, str]] = {
    "not_pdf": ("{name} is not a PDF.", "Open it in a browser: it may be a web page that was saved under this name."),
    "empty": ("{name} is empty.", "Download it again."),
    "encrypted": ("{name} is locked with a password.", "Save a copy without the password and add that."),
    "damaged": ("{name} is damaged and can't be read{detail}.", "Download it again."),
    "no_text": (
        "{name} has no text layer: its pages are images.",
        "Run a text recogniser such as ocrmypdf on it and add the result.",
    ),
    "too_large": ("{name} is larger than {detail} MB.", "Raise `library.max_pdf_mb` if you want it all the same."),
    "too_many_pages": ("{name} has {detail} pages, more than can be read.", "Split it and add the part you need."),
    "timeout": ("{name} took too long to read and was given up.", "It may be damaged; try another copy of it."),
    "out_of_memory": ("{name} needs more memory than a PDF may use.", "It may be damaged; try another copy of it."),
    "crashed": ("The reader crashed on {name}.", "It may be damaged; try another copy of it."),
    "quarantined": (
        "{name} crashed the reader three times and is not tried again.",
        "Try another copy of it; a restart of the server lifts this.",
    ),
    "unreadable": ("{name} can't be opened: {detail}.", "See whether the file is there and yours to read."),
}


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """What one document may cost."""

    max_bytes: int = 100 * 1024 * 1024
    max_pages: int = 2000
    wall_s: float = 60.0
    cpu_s: int = 30
    memory_mb: int = 1536
    "Address space of the child."


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's text; `passages` have no id and no paper yet."""

    file_hash: str
    "SHA-256, hexadecimal."
    pages_count: int
    pages: tuple[PageRecord, ...]
    passages: tuple[Passage, ...]
    title: str = ""
    "As the file's metadata or the largest text of the first page has it: a guess."
    metadata: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    cpu_s: float = 0.0
    "CPU of the child for this document, the search for hidden text included."
    hidden_s: float = 0.0
    "CPU of the search for hidden text."


def refusal(reason: DocumentReason, path: Path, detail: str = "") -> DocumentError:
    """The error for a reason, in sentences for people."""
    message, hint = SENTENCES[reason]
    if reason == "damaged" and detail:
        detail = f" ({detail})"
    return DocumentError(message.format(name=path.name, detail=detail), reason=reason, hint=hint)


class PdfParser:
    """Parses PDFs in one warm child process, one after the other. One object serves the whole server."""

    def __init__(self, limits: PdfLimits = PdfLimits()) -> None:
        self.limits = limits
        self._child: Child | None = None
        self._done = 0
        self._cpu = 0.0
        self._crashes: Counter[str] = Counter()
        self._lock = anyio.Lock()

    @property
    def pid(self) -> int | None:
        """Process id of the child, if one runs."""
        return self._child.pid if self._child and self._child.alive else None

    async def parse(self, path: Path, *, progress: Progress | None = None) -> ParsedDocument:
        """Text, places and passages of a PDF. A cancel kills the child at once.

        Raises:
            DocumentError: It can't be used; `reason` says why.
        """
        file_hash = await anyio.to_thread.run_sync(_gate, path, self.limits.max_bytes)
        async with self._lock:
            if self._crashes[file_hash] >= CRASHES:
                raise refusal("quarantined", path)
            crash.point("parse.started")
            frames = await self._ask(path, file_hash, progress)
        return await anyio.to_thread.run_sync(_document, path, file_hash, *frames)

    async def aclose(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is not None:
            await child.aclose()

    async def _ask(
        self, path: Path, file_hash: str, progress: Progress | None
    ) -> tuple[list[PageRecord], dict[str, Any]]:
        finished = False
        try:
            with anyio.fail_after(self.limits.wall_s):
                answer = await self._exchange(path, progress)
            finished = True
            return answer
        except TimeoutError:
            raise refusal("timeout", path) from None
        except ChildGone as gone:
            self._crashes[file_hash] += 1
            raise refusal(_reason_of_death(gone.returncode), path) from None
        finally:
            if not finished or self._done >= RECYCLE_AFTER:
                await self.aclose()

    async def _exchange(self, path: Path, progress: Progress | None) -> tuple[list[PageRecord], dict[str, Any]]:
        child = await self._ready()
        file = await anyio.Path(path).absolute()
        request = {"path": str(file), "max_pages": self.limits.max_pages, "cpu_s": self.limits.cpu_s}
        await child.send(json.dumps(request).encode())
        pages: list[PageRecord] = []
        while True:
            head, body = _unpack(await child.receive())
            if head.get("end"):
                self._done += 1
                head["spent"], self._cpu = float(head.get("cpu", 0.0)) - self._cpu, float(head.get("cpu", 0.0))
                if int(head.get("rss", 0)) > RECYCLE_RSS_KB or head.get("reason") == "out_of_memory":
                    self._done = RECYCLE_AFTER
                return pages, head
            pages.append(_page(head, body))
            if progress is not None:
                progress(f"page {pages[-1].page}", None)

    async def _ready(self) -> Child:
        if self._child is None or not self._child.alive:
            await self.aclose()
            self._child = await Child.start(MODULE, {"ASTRORESEARCH_PDF_MEMORY_MB": str(self.limits.memory_mb)})
            self._done = 0
            head, _ = _unpack(await self._child.receive())
            self._cpu = float(head.get("cpu", 0.0))
        return self._child


def _gate(path: Path, max_bytes: int) -> str:
    """Refuses what is no PDF before a child sees it; returns the file's SHA-256."""
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("rb") as file:
            head = file.read(1 << 20)
            if not head:
                raise refusal("empty", path)
            if b"%PDF-" not in head[:1024]:
                raise refusal("not_pdf", path)
            while head:
                size += len(head)
                if size > max_bytes:
                    raise refusal("too_large", path, str(max_bytes >> 20))
                digest.update(head)
                head = file.read(1 << 20)
    except OSError as error:
        raise refusal("unreadable", path, error.strerror or type(error).__name__) from None
    return digest.hexdigest()


def _reason_of_death(returncode: int | None) -> DocumentReason:
    if returncode == -24:  # SIGXCPU
        return "timeout"
    if returncode == -9:
        return "out_of_memory"
    return "crashed"


def _unpack(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """Head and body of a frame. What does not fit is a broken child, as good as a crash."""
    size = int.from_bytes(frame[:4], "big")
    try:
        head = json.loads(frame[4 : 4 + size])
    except (ValueError, RecursionError):
        raise ChildGone("A helper process sent what is no answer.", None) from None
    if not isinstance(head, dict):
        raise ChildGone("A helper process sent what is no answer.", None)
    return head, frame[4 + size :]


def _page(head: Mapping[str, Any], body: bytes) -> PageRecord:
    page, text, count, hidden = head.get("page"), head.get("text"), head.get("words"), head.get("hidden", "")
    if not (isinstance(page, int) and isinstance(text, str) and isinstance(count, int) and isinstance(hidden, str)):
        raise ChildGone("A helper process sent what is no page.", None)
    if len(body) != count * 22:
        raise ChildGone("A helper process sent what is no page.", None)
    return PageRecord(page, text, body, hidden)


def unpack_words(words: bytes) -> tuple[array[int], array[int], array[float]]:
    """Offsets in the page's text, lengths, and boxes (four numbers a word) of `PageRecord.words`."""
    count = len(words) // 22
    starts, lengths, boxes = array("I"), array("H"), array("f")
    starts.frombytes(words[: 4 * count])
    lengths.frombytes(words[4 * count : 6 * count])
    boxes.frombytes(words[6 * count : 22 * count])
    if sys.byteorder != "little":
        for part in (starts, lengths, boxes):
            part.byteswap()
    return starts, lengths, boxes


def _document(path: Path, file_hash: str, pages: list[PageRecord], head: Mapping[str, Any]) -> ParsedDocument:
    if head.get("reason"):
        reason = str(head["reason"])
        raise refusal(reason if reason in SENTENCES else "damaged", path, str(head.get("detail", "")))  # type: ignore[arg-type]
    letters = sum(c.isalpha() for p in pages[:50] for c in p.text[:2000])
    if letters < 20:
        hidden = any(p.hidden for p in pages)
        if hidden:
            raise DocumentError(
                f"All text of {path.name} is hidden from people.", reason="no_text", hint="Nothing of it is used."
            )
        raise refusal("no_text" if not head.get("failed") else "damaged", path)
    metadata = head.get("metadata")
    return ParsedDocument(
        file_hash=file_hash,
        pages_count=int(head.get("pages", len(pages))),
        pages=tuple(pages),
        passages=tuple(passages([p.text for p in pages], [p.page for p in pages])),
        title=str(head.get("title", ""))[:500],
        metadata=tuple((str(k), str(v)[:500]) for k, v in metadata.items()) if isinstance(metadata, dict) else (),
        warnings=_warnings(pages, head),
        cpu_s=float(head.get("spent", 0.0)),
        hidden_s=float(head.get("hidden_s", 0.0)),
    )


def _warnings(pages: list[PageRecord], head: Mapping[str, Any]) -> tuple[str, ...]:
    out = []
    if hidden := [p for p in pages if sum(c.isalpha() for c in p.hidden) >= 8]:
        listed = ", ".join(str(p.page) for p in hidden[:10])
        out.append(f"Hidden text (white, tiny, invisible or off the page) was left out on page {listed}.")
    if failed := head.get("failed"):
        out.append(f"{failed} of {head.get('pages')} pages could not be read.")
    if head.get("repaired"):
        out.append("The file was damaged and has been repaired; parts may be missing.")
    if ocr := head.get("ocr"):
        out.append(f"The text of {ocr} pages comes from a text recogniser and may be wrong.")
    empty = sum(not p.text.strip() for p in pages)
    if empty and empty < len(pages):
        out.append(f"{empty} of {len(pages)} pages hold no text.")
    return tuple(out)
