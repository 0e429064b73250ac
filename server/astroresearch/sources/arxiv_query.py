"""ADS's query syntax in arXiv's, as far as it goes; what does not is said, so that nobody takes half an answer for a whole."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass

_FUNCTIONS = "citations|references|similar|trending|useful|reviews|topn|pos|instructive|joincitations|joinreferences"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<function>{_FUNCTIONS})\(|"""
    r"""(?P<open>\()|(?P<close>\))|(?P<field>[-+^=]*[A-Za-z_]+):|(?P<range>\[[^\]]*\])|"""
    r"""(?P<phrase>[=^+-]?"[^"]*"?(?:~\d+)?)|(?P<word>[^\s()"\[\]]+))"""
)
_PREFIXES = {
    "title": ("ti",), "abs": ("ti", "abs"), "abstract": ("abs",), "author": ("au",), "first_author": ("au",), "full": ("all",),
    "body": ("all",), "object": ("all",), "keyword": ("all",), "arxiv_class": ("cat",), "comment": ("co",), "all": ("all",),
    "ti": ("ti",), "au": ("au",), "co": ("co",), "jr": ("jr",), "cat": ("cat",), "rn": ("rn",), "": ("all",),
}  # fmt: skip
_LOOSE = {
    "first_author": "that the author comes first",
    "object": "that it is about the object (searched as text)",
    "body": "full text",
    "full": "full text",
    "keyword": "keywords (searched as text)",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """The query for arXiv, empty where nothing of it can be asked there, and what got lost."""

    query: str
    lost: tuple[str, ...] = ()


def translate(query: str) -> Translation:
    """ADS syntax → arXiv syntax. Never raises: what is not understood is lost and named."""
    parser = _Parser(query)
    text = parser.expression("")
    if text and not re.search(r"\b(?:ti|abs|au|all|cat|co|jr|rn|id):", text):
        text = None  # dates alone are no question
    return Translation(text or "", tuple(dict.fromkeys(parser.lost)))


class _Parser:
    """Recursive descent; each method returns arXiv's text, or None for what could not be said there."""

    def __init__(self, query: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self._depth = 0
        self.lost: list[str] = []
        for match in _TOKEN.finditer(query[:2_000]):
            kind = match.lastgroup or ""
            self._tokens.append((kind, match.group(kind)))

    def expression(self, field: str) -> str | None:
        parts = [self._conjunction(field)]
        while self._take("word", "OR"):
            parts.append(self._conjunction(field))
        said = [part for part in parts if part]
        return said[0] if len(said) == 1 else " OR ".join(map(_grouped, said)) or None

    def _conjunction(self, field: str) -> str | None:
        positive: list[str] = []
        negative: list[str] = []
        while (token := self._peek()) and token[0] != "close" and token != ("word", "OR"):
            if self._take("word", "AND"):
                continue
            negated = bool(self._take("word", "NOT"))
            kind, text = self._peek() or ("", "")
            if kind in ("word", "phrase", "field") and text[:1] in ("-", "+") and len(text) > 1:
                negated ^= text[0] == "-"
                self._tokens[self._at] = (kind, text[1:])
            elif (kind, text) == ("word", "-"):
                self._at += 1
                negated = not negated
            if part := self._primary(field):
                (negative if negated else positive).append(part)
        if not positive:
            if negative:
                self.lost.append("a search for what something is not")
            return None
        return "".join([" AND ".join(map(_grouped, positive)), *(f" ANDNOT {_grouped(part)}" for part in negative)])

    def _primary(self, field: str) -> str | None:
        token = self._peek()
        if token is None:
            return None
        self._at += 1
        kind, text = token
        if kind == "function":
            self._function(text)
            return None
        if kind == "open":
            return self._nested(lambda: self.expression(field))
        if kind == "field":
            return self._field(text)
        if kind in ("word", "phrase"):
            return self._term(field, text)
        self.lost.append(text)
        return None

    def _nested(self, inside: Callable[[], str | None]) -> str | None:
        self._depth += 1
        if self._depth > 40:
            self._at = len(self._tokens)
            return None
        part = inside()
        self._depth -= 1
        self._take("close", ")")
        return part

    def _function(self, name: str) -> None:
        """The operator and everything in its brackets."""
        lost = self.lost
        self.lost = []
        self._nested(lambda: self.expression(""))
        self.lost = [*lost, f"`{name}(…)`"]

    def _field(self, name: str) -> str | None:
        name = name.lstrip("^=").lower()
        if name in ("year", "pubdate", "date"):
            return self._dates(name)
        if name in ("arxiv", "identifier", "eprint"):
            return self._term("id", self._value())
        if name not in _PREFIXES:
            lost = self.lost
            self._primary("")
            self.lost = [*lost, f"`{name}:`"]
            return None
        if name in _LOOSE:
            self.lost.append(_LOOSE[name])
        return self._primary(name)

    def _dates(self, name: str) -> str | None:
        value = self._value().strip('"')
        match = re.fullmatch(
            r"\[?\s*(\d{4}(?:-\d\d)?|\*)(?:-\d\d)?\s*(?:(?:TO|-)\s*(\d{4}(?:-\d\d)?|\*)(?:-\d\d)?)?\s*\]?", value
        )
        if match is None:
            self.lost.append(f"`{name}:{value}`")
            return None
        first, last = match.group(1), match.group(2) or match.group(1)
        return f"submittedDate:[{_edge(first, end=False)} TO {_edge(last, end=True)}]"

    def _value(self) -> str:
        token = self._peek()
        self._at += token is not None
        return token[1] if token else ""

    def _term(self, field: str, text: str) -> str | None:
        bare = re.sub(r"~\d+$", "", text).lstrip("=").strip('"').strip()
        if bare.startswith("^"):
            self.lost.append(_LOOSE["first_author"])
            bare, field = bare.lstrip("^"), "author"
        bare = " ".join(bare.replace(":", " ").split())
        if not bare or bare == "*":
            return None
        if field == "id":
            return f"id:{re.sub(r'^(?i:arxiv) ', '', bare)}"
        prefixes = _PREFIXES[field]
        if prefixes == ("au",):
            return f"au:{_author(bare)}"
        value = f'"{bare}"' if " " in bare or text.startswith('"') else bare
        return " OR ".join(f"{prefix}:{value}" for prefix in prefixes)

    def _peek(self) -> tuple[str, str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, kind: str, text: str) -> bool:
        if self._peek() == (kind, text):
            self._at += 1
            return True
        return False


def _grouped(part: str) -> str:
    return f"({part})" if re.search(r" (?:AND|OR|ANDNOT) ", re.sub(r'"[^"]*"|\[[^\]]*\]', "", part)) else part


def _author(name: str) -> str:
    """`Fabian, A. C.` → `Fabian_A`, arXiv's form: family name, then the first name or its initial."""
    last, _, first = name.partition(",")
    given = first.replace(".", " ").split()
    return "_".join([*last.split(), *given[:1]]).replace("*", "")


def _edge(date: str, *, end: bool) -> str:
    if date == "*":
        return "300001010000" if end else "199101010000"
    year, _, month = date.partition("-")
    if not end:
        return f"{year}{month or '01'}010000"
    number = min(max(int(month or 12), 1), 12)
    return f"{year}{number:02}{calendar.monthrange(max(int(year), 1), number)[1]:02}2359"
