"""CPU of reading PDFs against plain PyMuPDF extraction of the same pages; vectors against the embedder's own speed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import psutil

from astroresearch.domain.paper import Paper
from astroresearch.library.index import Indexer
from astroresearch.library.parse import ParsedDocument, PdfParser
from astroresearch.models.local_embed import LocalEmbedder
from astroresearch.store.database import Store

REPO = Path(__file__).resolve().parents[2]
ROUNDS = 5
PLAIN = """
import sys, time
for name in ("pymupdf.layout", "onnxruntime"): sys.modules[name] = None
import pymupdf
best = []
for path in sys.argv[2:]:
    times = []
    for _ in range(int(sys.argv[1])):
        began = time.process_time()
        with pymupdf.open(path) as document:
            for page in document: page.get_text()
        times.append(time.process_time() - began)
    best.append(min(times))
print(sum(best))
"""


def _files(folder: Path) -> list[Path]:
    shared = REPO.parent / "shared" / "data" / "manuscripts"
    if shared.is_dir():
        return sorted(shared.rglob("*.pdf"))
    subprocess.run([sys.executable, "-m", "astroresearch.demo.papers", str(folder)], check=True)
    return sorted(folder.rglob("*.pdf"))


def _cpu(process: psutil.Process) -> float:
    """CPU seconds: unlike the clock, hardly changed by what else the machine does."""
    times = process.cpu_times()
    return float(times.user + times.system)


async def _run(files: list[Path], home: Path) -> dict[str, float]:
    parser, embedder = PdfParser(), LocalEmbedder()
    store = await Store.open(home / "library.db")
    indexer = Indexer(store.passages, embedder)
    spent = hidden = 0.0
    try:
        for number, path in enumerate(files):
            costs: list[tuple[float, ParsedDocument]] = []
            for _ in range(ROUNDS):
                began = time.process_time()
                document = await parser.parse(path)
                await indexer.add(Paper(f"bench-{number}", path.stem), document)
                costs.append((time.process_time() - began + document.cpu_s - document.hidden_s, document))
            least, document = min(costs, key=lambda c: c[0])
            spent, hidden = spent + least, hidden + document.hidden_s
        texts = [text for _, text in await store.passages.pending(embedder.name, 1_000)]
        await embedder.warm()
        assert embedder.pid is not None
        child = psutil.Process(embedder.pid)
        began = _cpu(child)
        await embedder.embed(texts)
        own = len(texts) / (_cpu(child) - began)
        began = time.process_time() + _cpu(child)
        added = await indexer.embed_pending()
        stored = added / (time.process_time() + _cpu(child) - began)
        return {"cpu": spent, "hidden": hidden, "own": own, "vectors": stored}
    finally:
        await parser.aclose()
        await embedder.aclose()
        await store.aclose()


def measure() -> list[dict[str, Any]]:
    """The figures of an import."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        files = _files(home)
        command = [sys.executable, "-c", PLAIN, str(ROUNDS), *map(str, files)]
        plain = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
        ours = anyio.run(_run, files, home)
    cpu, speed = ours["cpu"] / plain, ours["vectors"] / ours["own"]
    return [
        _row("import: CPU of text, places, index", ours["cpu"], plain, cpu, "≤ 2 × plain extraction", cpu <= 2, "s"),
        _row(
            "import: search for hidden text, beside it",
            ours["hidden"],
            plain,
            ours["hidden"] / plain,
            "reported",
            True,
            "s",
        ),
        _row("vectors stored", ours["vectors"], ours["own"], speed, "≥ 0.8 × embedder alone", speed >= 0.8, "/CPU s"),
    ]


def _row(name: str, ours: float, reference: float, ratio: float, goal: str, ok: bool, unit: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "reference": reference, "ratio": ratio, "goal": goal, "ok": ok, "unit": unit}
