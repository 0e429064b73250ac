"""Which sentences answer a question: pure functions over text. `tests/benchmarks/answer_quality.py` measures the weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from astroresearch.domain.passage import Passage
from astroresearch.library.sentences import Span, sentences
from astroresearch.library.words import stem, terms, words

SHORTEST, LONGEST = 40, 600
"Characters of a sentence that may be quoted."
ABSTRACT = 200
"Characters of the first block of a paper that is text and not title, authors or addresses."
CONTEXT, PHRASE, NUMBER, MEANING, RANK, OPENING = 0.35, 0.25, 0.35, 1.0, 0.02, 0.9
"Weights: words of the neighbours, pairs of words, a quantity where one is asked for, similarity, place of the passage, summary."
ALIKE = 0.6
"How much a quote loses for being like one that is chosen already."

_ASKING = frozenset(
    re.findall(
        r"\w+",
        """
        big large small high low measure measured observe observed value values size amount number find found tell explain
        describe fast far long old strong happen happens make makes keep keeps known
        """,
    )
)
_QUANTITY = re.compile(
    r"(?i)\bhow (?:big|large|small|high|low|many|much|fast|far|long|old|hot|strong|massive|bright|deep|often|wide)\b|\bwhen\b"
    r"|\b(?:what|which)\b.{0,40}\b(?:velocit|speed|mass|temperature|redshift|distance|radi(?:us|i)|rate|age|value|size|"
    r"fraction|dispersion|energy|luminosit|period|densit|width|flux|time)"
)
_YEARS = re.compile(r"\(?\b(?:1[6-9]|20)\d\d[a-z]?\b\)?")
_NAMES = re.compile(r"\b[A-Z][A-Za-z]*[ -]?\d+\w*|\b\d[A-Z]+ \d+")
_NUMBER = re.compile(r"(?<![\w-])\d+(?:[.,]\d+)*")
_UNIT = re.compile(
    r"(?<![\w-])\d+(?:[.,]\d+)*\s*(?:±|per cent|%|[kKMGT]?(?:m|pc|eV|yr|Hz|ly|s|K|g)\b|arc|degrees|solar|times)"
)
_LABEL = re.compile(r"(?i)(?:abstract|summary)\s*[.:—-]?\s+(?=[A-Z])")


@dataclass(slots=True)
class Candidate:
    """A sentence that may be quoted."""

    passage: Passage
    rank: int
    text: str
    around: str = ""
    "The sentences before and after it, and the heading."
    score: float = 0.0
    bag: frozenset[str] = field(default_factory=frozenset)


def content(query: str) -> list[str]:
    """Words of a question that say what it is about; words that only ask are left out, unless nothing else is left."""
    found = terms(query)
    return [w for w in found if w not in _ASKING] or found


def wants_quantity(query: str) -> bool:
    """Whether a number is asked for."""
    return _QUANTITY.search(query) is not None


def candidates(passage: Passage, rank: int, text: str) -> list[Candidate]:
    """The quotable sentences of a passage.

    Args:
        passage: Where they stand.
        rank: Its place among the hits.
        text: The whole paper, its pages joined by form feeds; a new line parts blocks. Nothing before the first paragraph is
            quoted, and nothing that stands twice (running heads).
    """
    raw = text[passage.start : passage.end]
    if raw.translate({10: " ", 12: " "}) != passage.text:  # parsed anew meanwhile
        raw, text = passage.text, ""
    opens = front_matter(text)
    spans = [
        piece for span in sentences(raw) for piece in _blocks(raw, span) if not (passage.start + piece.start < opens)
    ]
    shown = [" ".join(raw[s.start : s.end].split()) for s in spans]
    out = []
    for i, (span, sentence) in enumerate(zip(spans, shown, strict=True)):
        fits = SHORTEST <= len(sentence) <= LONGEST and is_prose(sentence)
        if fits and text.count(raw[span.start : span.end]) < 2:
            around = " ".join((passage.section, *shown[max(0, i - 1) : i], *shown[i + 1 : i + 2]))
            out.append(Candidate(passage, rank, sentence, around))
    return out


def front_matter(text: str) -> int:
    """Where the first paragraph begins: what stands before it is title, authors, addresses and stamps."""
    at = 0
    for block in text[:12_000].split("\n"):
        if len(block) >= ABSTRACT and is_prose(block[: block.rfind(".") + 1]):
            label = _LABEL.match(block)
            return at + (label.end() if label else 0)
        at += len(block) + 1
    return 0


def _blocks(raw: str, span: Span) -> list[Span]:
    """A sentence cut where a block ends and the next one does not go on with it."""
    out, begin = [], span.start
    for match in re.finditer(r"[\n\f]+(?=[\"'“‘(\[]?[A-Z0-9])", raw[span.start : span.end]):
        out.append(Span(begin, span.start + match.start()))
        begin = span.start + match.end()
    label = _LABEL.match(raw, begin, span.end)
    return [*out, Span(label.end() if label else begin, span.end)]


def is_prose(text: str) -> bool:
    """No table row, list of names or equation: mostly letters, and begun and ended like a sentence."""
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return (
        bool(text)
        and letters > 0.75 * len(text)
        and re.match(r"[A-Z0-9\"'“‘(\[]", text) is not None
        and text[-1] in '.!?"”’)'
    )


def score(query: str, found: Sequence[Candidate], rarity: Mapping[str, float]) -> None:
    """Scores candidates by words alone.

    Args:
        query: The question.
        found: They are given their score.
        rarity: Weight of each word of the question in the library; see `content`.
    """
    weight: dict[str, float] = {}
    for word in content(query):
        weight[stem(word)] = max(weight.get(stem(word), 0.0), rarity.get(word, 1.0))
    total = sum(weight.values()) or 1.0
    order = [stem(w) for w in words(query)]
    pairs = {p for p in pairwise(order) if p[0] in weight and p[1] in weight}
    asks = wants_quantity(query)
    for c in found:
        own = [stem(w) for w in words(c.text)]
        c.bag = frozenset(own)
        near = {stem(w) for w in words(c.around)} - c.bag
        matched = sum(weight[w] for w in weight.keys() & c.bag) / total
        context = CONTEXT * sum(weight[w] for w in weight.keys() & near) / total
        phrases = PHRASE * len(pairs & set(pairwise(own))) / len(pairs) if pairs else 0.0
        quantity = NUMBER * _quantity(c.text) if asks and matched else 0.0
        long = math.sqrt(1 + max(0, len(own) - 30) / 60)
        c.score = ((matched + phrases) / long + context + quantity) / (1 + RANK * c.rank) if matched + context else 0.0
        if not c.passage.section:
            c.score *= OPENING


def _quantity(text: str) -> float:
    bare = _NAMES.sub(" ", _YEARS.sub(" ", text))
    return 1.0 if _UNIT.search(bare) else 0.3 if _NUMBER.search(bare) else 0.0


def choose(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The best ones, best first, none much like another."""
    left = sorted((c for c in found if c.score > 0), key=lambda c: -c.score)[:60]
    out: list[Candidate] = []
    while left and len(out) < limit:
        best = max(left, key=lambda c: c.score * (1 - ALIKE * max((_alike(c, o) for o in out), default=0.0)))
        left = [c for c in left if c is not best and c.text != best.text]
        out.append(best)
    return out


def _alike(one: Candidate, other: Candidate) -> float:
    return len(one.bag & other.bag) / (len(one.bag | other.bag) or 1)
