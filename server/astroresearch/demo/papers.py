"""The demo's sample papers: short review notes of this project, marked as such, built as two-column PDFs.

Run as a child process, `python -m astroresearch.demo.papers FOLDER`, since it draws with pymupdf, which the server never
imports. The same sources give the same bytes.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import anyio

from astroresearch.domain.paper import Paper
from astroresearch.errors import AstroResearchError

MARK = "Sample note written for the AstroResearch demo; not a publication"
KIND = "sample note"
"Stands behind each title in the PDF's metadata and in the record, so that no list or citation shows a note as a paper."
AUTHOR = "AstroResearch Project"
_BODY = "<!-- body -->"
_DATE = "D:20260101000000Z"
_CSS = """
body { margin: 0; font-family: serif; font-size: 10.5pt; line-height: 1.25; }
h1 { font-size: 19pt; margin: 0 0 6pt 0; line-height: 1.1; }
h2 { font-size: 12pt; margin: 9pt 0 3pt 0; }
p { margin: 0 0 5pt 0; }
.by { font-style: italic; }
.mark { font-weight: bold; color: #8a1c1c; }
.ref { font-size: 9pt; margin: 0 0 3pt 0; }
"""


@dataclass(frozen=True)
class Sample:
    """One note: its source's name without ending, and what the library is told of it."""

    name: str
    paper: Paper

    @property
    def file_name(self) -> str:
        """The PDF's name in the folder it is built into."""
        return f"{self.name}.pdf"


def _sample(name: str, title: str, abstract: str, keywords: tuple[str, ...]) -> Sample:
    paper = Paper(
        id=f"sample-{name.replace('_', '-')}",
        title=f"{title} ({KIND})",
        authors=(AUTHOR,),
        year=2026,
        pubdate="2026-00-00",
        abstract=abstract,
        keywords=keywords,
        doctype="note",
        comment=f"{MARK}.",
        sources=("sample",),
    )
    return Sample(name, paper)


SAMPLES: tuple[Sample, ...] = (
    _sample(
        "cooling_flows",
        "Cool cores and the cooling flow problem",
        "Why the gas in the cores of many clusters of galaxies should cool, what spectra say about it, and what heats it.",
        ("galaxies: clusters: general", "cooling flows", "active galactic nuclei"),
    ),
    _sample(
        "perseus_ripples",
        "Bubbles, weak shocks and ripples in the core of the Perseus cluster",
        "What deep Chandra images of the Perseus cluster show of the energy that its active nucleus gives to the gas.",
        ("galaxies: clusters: individual: Perseus", "X-rays: galaxies: clusters"),
    ),
    _sample(
        "quiet_gas",
        "How quiet is the gas? Velocities in the core of the Perseus cluster",
        "What Hitomi measured of the motions of the gas in the Perseus cluster and what follows for heating and masses.",
        ("galaxies: clusters: individual: Perseus", "turbulence"),
    ),
    _sample(
        "ngc1275",
        "NGC 1275: one name, two systems of gas",
        "The names, velocities and filaments of the central galaxy of the Perseus cluster.",
        ("galaxies: individual: NGC 1275", "galaxies: active"),
    ),
)


async def build_in_child(folder: Path) -> list[Path]:
    """Builds all notes into a folder, in a child process; the paths are in the order of `SAMPLES`.

    Raises:
        AstroResearchError: The child failed.
    """
    command = [sys.executable, "-m", __name__, str(folder)]
    done = await anyio.run_process(command, check=False, stderr=subprocess.PIPE)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise AstroResearchError(
            f"The sample papers could not be built in {folder}: {said[-1] if said else f'exit {done.returncode}'}.",
            hint="Is the folder writable, and is pymupdf installed?",
        )
    return [folder / sample.file_name for sample in SAMPLES]


def build(folder: Path) -> list[Path]:
    """Builds all notes into a folder; for the child process only."""
    import pymupdf  # this module's only use of it, in the child

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for sample in SAMPLES:
        source = resources.files("astroresearch.demo").joinpath("papers", f"{sample.name}.html").read_text("utf-8")
        path = folder / sample.file_name
        path.write_bytes(_pdf(pymupdf, sample.paper.title, source))
        paths.append(path)
    return paths


def _pdf(mupdf: Any, title: str, source: str) -> bytes:
    drawn = _draw(mupdf, source)
    with mupdf.open("pdf", drawn) as document:
        for page in document:
            page.insert_text((56, 40), f"{MARK}.", fontsize=8, fontname="tiro")
            page.insert_text((290, 812), f"{page.number + 1}", fontsize=8, fontname="tiro")
        made = {"creationDate": _DATE, "modDate": _DATE, "producer": "AstroResearch demo", "creator": ""}
        document.set_metadata({"title": title, "author": AUTHOR, "subject": MARK, **made})
        return bytes(document.tobytes(garbage=4, deflate=True, no_new_id=True))


def _draw(mupdf: Any, source: str) -> bytes:
    """Title and summary across the first page, then two columns."""
    head, _, body = source.partition(_BODY)
    out = io.BytesIO()
    writer = mupdf.DocumentWriter(out)
    opening, text = mupdf.Story(head, user_css=_CSS), mupdf.Story(body, user_css=_CSS)
    top, more = 60.0, True
    while more:
        device = writer.begin_page(mupdf.Rect(0, 0, 595, 842))
        if opening is not None:
            _, filled = opening.place(mupdf.Rect(56, top, 539, 400))
            opening.draw(device)
            top, opening = filled[3] + 10, None
        for left in (56, 307):
            if more:
                more, _ = text.place(mupdf.Rect(left, top, left + 232, 792))
                text.draw(device)
        writer.end_page()
        top = 60.0
    writer.close()
    return out.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Builds into the one folder named; 2 for wrong use."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m astroresearch.demo.papers FOLDER\n")
        return 2
    build(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
