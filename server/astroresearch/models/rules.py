"""What a user's message asks for, by rules: object names, papers to be searched, notes to be kept, questions."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

_EDITOR = re.compile(r"\n*<(editor|added)>\n(.*?)\n</\1>", re.DOTALL)
_SELECTED = re.compile(r"^Selected text[^\n]*:\n(.*?)(?=\n(?:Cite keys at|Today:)|\Z)", re.DOTALL | re.MULTILINE)
_OBJECT = re.compile(
    r"\b(?:(?:NGC|IC|UGC|ESO|PGC|Messier|Abell|HD|HIP|HR|GJ|Gliese|PSR|PKS|Arp|Mrk|Mkn|Markarian|SDSS|2MASS|RX|TOI|LHS|LTT|Wolf|Ross|"
    r"Kepler|TRAPPIST|WASP|HAT-P|CoRoT|K2|SN|GRB|GW|FRB|VV|Zw|Hickson|HCG|LMC|SMC|QSO|TYC|BD|3C|4C)[ -]?[A-Z]?\d[\w.+-]*\w(?:-[A-Z])?|"
    r"(?:NGC|IC|HD|M|A|3C|4C|GJ|HR|K2)[ -]?\d{1,6}\b|Sgr A\*|(?:Cen|Vir|Per|Cyg|Her|Hya|Cas|Sco|Cygnus|Perseus|Centaurus) (?:X-\d|A)\b|"
    r"(?:Vega|Sirius|Betelgeuse|Rigel|Polaris|Proxima Centauri|Alpha Centauri|Barnard's Star|Andromeda Galaxy|Crab Nebula|Orion Nebula|"
    r"Perseus Cluster|Virgo Cluster|Coma Cluster))"
)
_NAMED = re.compile(
    r"(?i)\b(?:coordinates?|position|redshift|distance|magnitudes?|type|aliases) (?:and \w+ )?(?:of|for) (?:the )?"
    r"(?P<a>[\w+*' .-]{2,40}?)\s*(?:[?.!,]|$)|"
    r"\b(?:where is|resolve|look up|locate|what kind of object is) (?:the |object )?(?P<b>[\w+*' .-]{2,40}?)(?: in the sky)?\s*(?:[?.!,]|$)"
)
_PAPERS = re.compile(
    r"(?i)\b(?:search|find|look for|list|show|get)\b.{0,60}?\b(?:papers?|articles?|literature|publications?|preprints?|ads|arxiv)\b|"
    r"\b(?:recent|new|latest|any|which) (?:papers|articles|publications|preprints)\b"
)
_FILLER = re.compile(
    r"(?i)^\W*(?:please|can you|could you|would you|i (?:want|need)(?: you)? to)?\s*(?:search|find|look|list|show|get)?(?: me)?(?: for)?\b|"
    r"\b(?:(?:the )?(?:recent|new|latest|some|any|more|which) )?"
    r"(?:papers?|articles?|literature|publications?|preprints?)\b(?: (?:on|about|for|of|by))?|"
    r"\b(?:on|in|from|at) (?:the )?(?:ads|arxiv|web)\b|[?!]"
)
_NOTE = re.compile(
    r"(?is)\b(?:save|make|take|add|write|keep|create)\b[^.?!:\n]{0,40}?\b(?:notes?)\b(?P<rest>.*)|^\s*note(?: that)?\s*:?\s+(?P<plain>.+)"
)
_NOTE_TEXT = re.compile(r"(?is)^\s*(?::|that\b|saying\b|which says\b)\s*(.+)")
_ASKS = re.compile(
    r"(?i)\?|\b(?:what|why|how|who|when|which|where|does|do|is|are|can|explain|describe|summari[sz]e|compare|tell|quote|evidence|say)\b"
)
_MORE = re.compile(r"(?i)(?:\band\b|[,;.?]).*\b(?:what|why|how|who|tell|explain|describe|summari[sz]e|papers?)\b")
"A second request behind the first one."
_POINTS = re.compile(r"(?i)\b(?:this|these|that|here|selected|selection|sentence|paragraph|claim|it)\b")


@dataclass(frozen=True, slots=True)
class Plan:
    """Calls to be made at once, each with the line that says why; and whether the best quote is to be kept as a note."""

    calls: tuple[tuple[str, dict[str, Any], str], ...]
    query: str
    keep_quote: bool = False


def split(content: str) -> tuple[str, str]:
    """The user's own words and the text selected in the editor."""
    selection = ""
    for match in _EDITOR.finditer(content):
        if found := _SELECTED.search(match[2]):
            selection = found[1].strip()
    return _EDITOR.sub("", content).strip(), selection


def plan(content: str, tools: Set[str]) -> Plan:
    """What to do for a user's message with the tools that there are."""
    text, selection = split(content)
    query = " ".join(text.split())[:600]
    if selection and (_POINTS.search(text) or len(text.split()) < 4):
        query = f"{query} {' '.join(selection.split())[:350]}".strip()
    calls: list[tuple[str, dict[str, Any], str]] = []
    note, keep_quote, asked = _note(text)
    names = _objects(text)
    if "query_target" in tools:
        calls += [("query_target", {"name": name}, f"Resolve the name {name}.") for name in names]
    papers = _PAPERS.search(text) is not None
    if papers and "search_papers" in tools:
        words = search_words(text) or query
        calls.append(("search_papers", {"query": words}, f"Search ADS and arXiv for “{words}”."))
    if note and "save_note" in tools:
        calls.append(("save_note", {"text": note}, "Save the note."))
    only_target = bool(names) and _NAMED.search(text) is not None and _MORE.search(text) is None
    if asked and "rag_search" in tools and not only_target and not (papers and not text.endswith("?")):
        calls.append(("rag_search", {"query": query}, f"Search the library for “{query[:120]}”."))
    return Plan(tuple(calls), query, keep_quote and "save_note" in tools)


def search_words(text: str) -> str:
    """What is left of a request for papers when the request itself is taken away."""
    return " ".join(_FILLER.sub(" ", text).split()).strip(" .,;:")[:190]


def _note(text: str) -> tuple[str, bool, bool]:
    """(text of a note to save, whether a quote is to be kept, whether something is asked beside it)."""
    match = _NOTE.search(text)
    if match is None:
        return "", False, True
    if match["plain"]:
        return match["plain"].strip(), False, False
    found = _NOTE_TEXT.match(match["rest"] or "")
    before = text[: match.start()].strip()
    if found:
        return found[1].strip(), False, bool(_ASKS.search(before))
    return "", True, True


def _objects(text: str) -> list[str]:
    names = [" ".join(m[0].split()) for m in _OBJECT.finditer(text)]
    if not names and (named := _NAMED.search(text)):
        name = (named["a"] or named["b"] or "").strip()
        if name[:1].isupper() or any(c.isdigit() for c in name):
            names.append(name)
    return list(dict.fromkeys(names))[:3]
