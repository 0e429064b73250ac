"""What the PDF child does with one document. MuPDF comes in as an argument: only pdf_child imports it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from astroresearch.library.layout import CleanPage, RawPage, Word, clean_pages, join_hidden

Emit = Callable[[dict[str, Any], bytes], None]

WINDOW = 200
"Pages that are cleaned together."
_FLAGS = 1 | 2 | 128
"Keep ligatures and white space, name unknown letters by their CID; no clip, so that text off the page is seen and reported."
_FILLED, _STROKED = 16, 32
"Bits of a span's char_flags: a letter with neither is invisible (render mode 3)."
TINY_PT = 2.0
_TITLE_JUNK = re.compile(r"(?i)^(microsoft word|untitled|title|.*\.(?:dvi|tex|docx?|pdf|indd|qxd)$|arxiv:|no job name)")
_STAMP = re.compile(r"(?i)draft version|typeset using|^arxiv:|preprint|accepted |submitted ")


class Refused(Exception):
    """This document can't be used; `reason` is a `DocumentReason`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def classify(error: BaseException) -> Refused:
    """What an exception of MuPDF or Python says about the document."""
    text = str(error).lower()
    if isinstance(error, Refused):
        return error
    if isinstance(error, MemoryError) or "malloc" in text or "out of memory" in text or "calloc" in text:
        return Refused("out_of_memory")
    if "encrypted" in text or "password" in text:
        return Refused("encrypted")
    if isinstance(error, OSError):
        return Refused("unreadable", error.strerror or "")
    return Refused("damaged", str(error)[:200])


def extract(mupdf: Any, request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Emits one frame a page in order and returns the last frame.

    Args:
        mupdf: The module pymupdf.
        request: path; max_pages.
        emit: Called with (head, boxes of the words) for each page.

    Raises:
        Refused: The document can't be used at all.
    """
    began = time.process_time()
    document = mupdf.open(request["path"], filetype="pdf")
    try:
        count = _admit(document, int(request["max_pages"]))
        state = _State()
        for start in range(0, count, WINDOW):
            raw = [p for n in range(start, min(start + WINDOW, count)) if (p := state.page(mupdf, document, n))]
            for page in clean_pages(raw):
                state.letters += len(page.text)
                emit(*_frame(page))
        if not state.letters and state.failed == count:
            raise Refused("damaged", state.detail)
        return {
            "end": True,
            "pages": count,
            "failed": state.failed,
            "letters": state.letters,
            "ocr": state.ocr,
            "repaired": bool(document.is_repaired),
            "title": _title(document, state.title),
            "metadata": {k: v for k, v in (document.metadata or {}).items() if isinstance(v, str) and v},
            "hidden_s": state.hidden_s,
            "total_s": time.process_time() - began,
        }
    finally:
        document.close()


def _admit(document: Any, max_pages: int) -> int:
    if not document.is_pdf:
        raise Refused("not_pdf")
    if document.needs_pass and not document.authenticate(""):
        raise Refused("encrypted")
    count = int(document.page_count)
    if count == 0:
        raise Refused("damaged", "it has no pages")
    if count > max_pages:
        raise Refused("too_many_pages", str(count))
    return count


class _State:
    """What is learnt on the way through a document."""

    def __init__(self) -> None:
        self.letters = 0
        self.failed = 0
        self.detail = ""
        self.ocr = 0
        self.title = ""
        self.hidden_s = 0.0

    def page(self, mupdf: Any, document: Any, number: int) -> RawPage | None:
        """The raw page, or None where MuPDF can't read it."""
        try:
            page = document[number]
            bounds = page.rect * page.derotation_matrix
            text = page.get_textpage(clip=mupdf.INFINITE_RECT(), flags=_FLAGS)
            words: list[Word] = text.extractWORDS()
        except Exception as error:  # noqa: BLE001 - one bad page does not spoil the others
            if (refused := classify(error)).reason == "out_of_memory":
                raise refused from None
            self.failed += 1
            self.detail = refused.detail
            return None
        began = time.process_time()
        words, hidden = self._visible(mupdf, page, text, words, tuple(bounds))
        self.hidden_s += time.process_time() - began
        if page.rotation:
            words = list(_turned(mupdf, words, page.rotation_matrix))
        return RawPage(number + 1, words, float(page.rect.height), hidden)

    def _visible(
        self, mupdf: Any, page: Any, text: Any, words: list[Word], bounds: tuple[float, ...]
    ) -> tuple[list[Word], str]:
        """The words that somebody sees, and the text of the others."""
        blocks = text.extractDICT()["blocks"]
        if page.number == 0:
            self.title = _largest(blocks)
        suspects, ocr = _suspects(blocks, bounds)
        if not suspects:
            return words, ""
        if ocr and _is_scan(page):
            self.ocr += 1
            suspects = [s for s in suspects if s[2] != "invisible"]
        unseen = [s for s in suspects if s[2] != "pale" or not _contrasts(mupdf, page, s[1])]
        if not unseen:
            return words, ""
        by_line: dict[tuple[int, int], list[Any]] = {}
        for key, box, _, _ in unseen:
            by_line.setdefault(key, []).append(box)
        kept = [w for w in words if not _within(w, by_line.get((w[5], w[6]), ()))]
        return kept, join_hidden(s[3] for s in unseen)


Suspect = tuple[tuple[int, int], tuple[float, float, float, float], str, str]
"(block, line), box, why, text."


def _suspects(blocks: Sequence[Any], bounds: tuple[float, ...]) -> tuple[list[Suspect], bool]:
    """Spans that may be hidden, by what they say of themselves; and whether most of the page is invisible text."""
    found: list[Suspect] = []
    invisible = total = 0
    x0, y0, x1, y1 = bounds
    for number, block in enumerate(blocks):
        for line_number, line in enumerate(block.get("lines", ())):
            for span in line["spans"]:
                total += 1
                color = span["color"]
                box = span["bbox"]
                why = ""
                if not span.get("char_flags", _FILLED) & (_FILLED | _STROKED) or span.get("alpha", 255) < 16:
                    why = "invisible"
                    invisible += 1
                elif span["size"] < TINY_PT:
                    why = "tiny"
                elif box[2] <= x0 or box[0] >= x1 or box[3] <= y0 or box[1] >= y1:
                    why = "off"
                elif color and (color >> 16) + (color >> 8 & 255) + (color & 255) > 3 * 204:
                    why = "pale"
                if why and span["text"].strip():
                    found.append(((number, line_number), box, why, span["text"]))
    return found, total > 0 and invisible >= 0.6 * total


def _is_scan(page: Any) -> bool:
    """Whether an image covers most of the page: its invisible text is what a text recogniser read there."""
    area = abs(page.rect.width * page.rect.height) or 1.0
    infos = page.get_image_info()
    return any((i["bbox"][2] - i["bbox"][0]) * (i["bbox"][3] - i["bbox"][1]) > 0.5 * area for i in infos)


def _contrasts(mupdf: Any, page: Any, box: tuple[float, float, float, float]) -> bool:
    """Whether anything is to be seen where the span stands, at 72 dots an inch."""
    clip = mupdf.Rect(box) * page.rotation_matrix & page.rect
    if clip.is_empty:
        return False
    if clip.width * clip.height > 4_000_000:
        return True
    pixels = page.get_pixmap(clip=clip, colorspace=mupdf.csGRAY, alpha=False, annots=False).samples
    return bool(pixels) and max(pixels) - min(pixels) > 24


def _within(word: Word, boxes: Sequence[Any]) -> bool:
    x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
    return any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes)


def _turned(mupdf: Any, words: list[Word], matrix: Any) -> Iterator[Word]:
    for word in words:
        box = mupdf.Rect(word[:4]) * matrix
        yield (box.x0, box.y0, box.x1, box.y1, *word[4:])


def _frame(page: CleanPage) -> tuple[dict[str, Any], bytes]:
    head = {"page": page.number, "text": page.text, "words": len(page.starts), "hidden": page.hidden}
    return head, page.starts.tobytes() + page.lengths.tobytes() + page.boxes.tobytes()


def _largest(blocks: Sequence[Any]) -> str:
    """The block in the largest letters of the first page: mostly the title."""
    best, text = 0.0, ""
    for block in blocks:
        spans = [
            s
            for line in block.get("lines", ())
            if abs(line["dir"][0]) > 0.9
            for s in line["spans"]
            if s["text"].strip()
        ]
        size = max((s["size"] for s in spans), default=0.0)
        joined = join_hidden(s["text"] for s in spans if s["size"] > size - 3)
        if _STAMP.search(joined):
            continue
        if size > best + 0.5 and 12 <= len(joined) <= 300 and len(joined.split()) >= 2:
            best, text = size, joined
    return text


def _title(document: Any, largest: str) -> str:
    """The file's own title where it is one, else the largest text of the first page."""
    stated = join_hidden([(document.metadata or {}).get("title") or ""])
    return stated if len(stated) >= 8 and " " in stated and not _TITLE_JUNK.match(stated) else largest
