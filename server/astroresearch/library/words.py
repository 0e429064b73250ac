"""The words of a question that are worth looking for."""

from __future__ import annotations

import re
import unicodedata

STOP = frozenset(
    re.findall(
        r"\w+",
        """
    a about above after again all also although am among an and any are as at be because been before being below
    between both but by can cannot could did do does doing done during each either et al find for from further get
    give given had has have having he her here hers him his how however i if in into is it its itself just let like
    many may me might more most much must my no nor not of off on once one only or other our out over own paper papers
    per please quote quotes say says said same see she should show shown shows so some such tell than that the their
    them then there these they this those through thus to too under until up upon us use used using very via was we
    were what when where whether which while who whom whose why will with within without would you your
    """,
    )
)
_WORD = re.compile(r"[^\W_]+(?:[-.+'][^\W_]+)*", re.UNICODE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def words(text: str) -> list[str]:
    """All words in lower case, in order; a word may hold hyphens, dots and plus signs (`z-0.5`, `3c-273`)."""
    return [w.lower() for w in _WORD.findall(unicodedata.normalize("NFKC", text))]


def terms(query: str, limit: int = 24) -> list[str]:
    """Distinct words worth looking for, in order; all of them where nothing else is left."""
    found = list(dict.fromkeys(words(query)))
    kept = [w for w in found if w not in STOP and (len(w) > 1 or w.isdigit() or _CJK.match(w))]
    return (kept or found)[:limit]


def stem(word: str) -> str:
    """A rough common form of a word, for counting overlaps."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "es", "s", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
