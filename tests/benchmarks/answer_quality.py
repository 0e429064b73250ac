"""How often the sentence that answers a question is quoted first, or among the first three; beside plain overlap by rarity."""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from astroresearch.demo.papers import build_in_child
from astroresearch.domain.passage import Passage
from astroresearch.errors import NotFound
from astroresearch.library.answer import Answerer
from astroresearch.library.index import Indexer
from astroresearch.library.parse import PdfParser
from astroresearch.library.retrieve import Retriever
from astroresearch.library.sentences import sentences
from astroresearch.library.shelf import Shelf
from astroresearch.library.words import stem, terms, words
from astroresearch.models.local_embed import LocalEmbedder
from astroresearch.store.database import Store

QUESTIONS = (
    ("How large is the velocity dispersion that Hitomi measured in the Perseus core?", ("164 ± 10",)),
    (
        "What keeps the gas in the core of the Perseus cluster from cooling?",
        (
            "sound waves that are dissipated",
            "balances the radiative cooling",
            "how an active nucleus acts",
            "now favoured is",
        ),
    ),
    ("What are the recession velocities of the two systems of emission lines towards NGC 1275?", ("8200 km/s",)),
    ("What fills the bubbles?", ("What fills the bubbles", "relativistic particles and magnetic fields")),
    ("At what radius does the metal distribution peak?", ("about 40 kpc",)),
    ("How far from the centre is the weak shock?", ("radius of 24 kpc",)),
    ("How much pressure support comes from turbulence?", ("four per cent",)),
    ("Who discovered the two velocity systems?", ("Minkowski",)),
    ("Which two modes of feedback are there?", ("two modes",)),
    ("What is the radiative mode also called?", ("quasar or wind mode",)),
    ("Why is iron the element of choice for velocities?", ("heavy ions move slowly",)),
    ("What is the radial velocity of the stars of NGC 1275?", ("5264",)),
    ("How large is the velocity gradient across the cluster core?", ("150 ± 70",)),
    ("What is the velocity dispersion of the galaxies of the cluster?", ("1280 km/s", "1277 km/s")),
    ("What does a low velocity dispersion rule out?", ("does not rule out", "cannot travel far")),
    ("How did XMM-Newton test the cooling flow picture?", ("reflection gratings", "severe deficit")),
    ("How long was the first Chandra observation of the core?", ("200 ks",)),
    ("What excites the gas of the filaments?", ("What excites the gas", "Ionisation by energetic particles")),
    ("Can thermal conduction heat the core?", ("Thermal conduction can",)),
    ("Where did ROSAT find the bubbles?", ("ROSAT",)),
    ("How fast does the high-velocity system move relative to the galaxy?", ("3000 km/s",)),
    ("How high must the temperature of thermal gas in the bubbles be?", ("50 keV",)),
)


class _Nothing:
    """No service is asked: the notes name no identifier of their own."""

    async def get(self, paper: str, *, online: bool = True) -> Any:
        raise NotFound("No services here.")

    async def download_file(self, paper: Any, *, progress: Any = None) -> Path:
        raise NotFound("No services here.")


def baseline(query: str, found: Sequence[Passage], limit: int) -> list[str]:
    """Sentences by the summed rarity of the words that they share with the question, over the same passages."""
    shown = [p.text[s.start : s.end] for p in found for s in sentences(p.text)]
    bags = [{stem(w) for w in words(t)} for t in shown]
    counts = Counter(w for bag in bags for w in bag)
    wanted = {stem(w) for w in terms(query)}
    scores = [sum(math.log(1 + len(bags) / counts[w]) for w in wanted & bag) for bag in bags]
    return [shown[i] for i in sorted(range(len(shown)), key=lambda i: -scores[i])[:limit]]


async def _run(home: Path) -> list[tuple[str, int, int]]:
    """(question, rank with ours, rank with the baseline); 0 where it is not among three."""
    store, parser, embedder = await Store.open(home / "library.db"), PdfParser(), LocalEmbedder()
    try:
        indexer = Indexer(store.passages, embedder)
        shelf = Shelf(home, store.papers, store.passages, parser, indexer, _Nothing(), _Nothing())
        for path in await build_in_child(home / "pdfs"):
            await shelf.import_file(path)
        await indexer.embed_pending()
        answerer = Answerer(Retriever(store.passages, embedder), store.papers, store.passages)
        out = []
        for question, expected in QUESTIONS:
            found = await answerer.passages(question)
            ours = [c.quote for c in await answerer.citations(question, found)]
            plain = baseline(question, [h.passage for h in found.hits], 3)
            out.append((question, _rank(ours, expected), _rank(plain, expected)))
        return out
    finally:
        await embedder.aclose()
        await parser.aclose()
        await store.aclose()


def _rank(quotes: Sequence[str], expected: Sequence[str]) -> int:
    return next((i for i, q in enumerate(quotes, 1) if any(e in q for e in expected)), 0)


def measure() -> list[dict[str, Any]]:
    """Per cent of the questions over the demo's notes."""
    with tempfile.TemporaryDirectory() as name:
        ranks = anyio.run(_run, Path(name))
    for question, ours, plain in ranks:
        if ours != 1:
            sys.stderr.write(f"  rank {ours} (baseline {plain}): {question}\n")
    rows = []
    for depth, goal in ((1, 60.0), (3, 85.0)):
        ours, plain = (100 * sum(0 < r[k] <= depth for r in ranks) / len(ranks) for k in (1, 2))
        row = {"name": f"questions answered by the first {depth} of the quotes", "ours": ours, "reference": plain}
        ok = ours >= goal and ours >= plain
        rows.append({**row, "ratio": ours / plain if plain else None, "goal": f"≥ {goal:.0f} %", "ok": ok, "unit": "%"})
    return rows
