"""What one .tex text says: citations, labels, references, sections, includes, bibliographies.

A scanner, no TeX: comments and verbatim text are masked first, offsets stay those of the text, and nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

IncludeKind = Literal["input", "subfile", "import", "package", "bibliography"]

_HIDE = re.compile(
    r"%|\\begin\s*\{(verbatim\*?|Verbatim\*?|BVerbatim|LVerbatim|lstlisting|minted|comment|alltt|filecontents\*?)\}"
    r"|\\(?:verb|lstinline)(?![a-zA-Z])\*?|\\iffalse(?![a-zA-Z])|\\end\s*\{document\}"
)
_OPTION = re.compile(r"[ \t]*\[[^\]\r\n]*\]")
_CONTENTS = re.compile(r"\s*(?:\[[^\]]*\]\s*)?\{([^{}]*)\}")
_COMMAND = re.compile(
    r"\\([A-Za-z]*[cC]ite[A-Za-z]*|bibentry|[tb]extcquote|blockcquote|foreigntextcquote|label|bibitem"
    r"|[A-Za-z]*[rR]ef(?:range)?|input|include|subfile|subfileinclude|InputIfFileExists|(?:sub)?import|(?:sub)?inputfrom"
    r"|(?:sub)?includefrom|bibliography|nobibliography|addbibresource|addglobalbib|addsectionbib|externaldocument"
    r"|documentclass|usepackage|RequirePackage|part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|begin|end"
    r"|newcommand|renewcommand|providecommand|NewDocumentCommand|def)(\*?)(?![A-Za-z])"
)
_SENTENCE_END = re.compile(r"(?<![A-Z])(?<!et al)(?<!e\.g)(?<!i\.e)(?<!Fig)(?<!Eq)(?<!cf)[.!?](?=\s+[A-Z\\])")
_MAGIC = re.compile(r"^[ \t\ufeff]*%+[ \t]*!\s*T[eE]X\s+root\s*=\s*(.+?)\s*$", re.M)
_OPTION_LABEL = re.compile(r"[\[,]\s*label\s*=\s*\{?([^,\]\}\s]+)")
_KEY = re.compile(r"[^,\s](?:[^,\r\n]*[^,\s])?")
_SPACE = re.compile(r"\s*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NATBIB = "cite citet citep citealt citealp citeauthor citeyear citeyearpar citenum citefullauthor Citet Citep Citealt"
_NATBIB += " Citealp Citeauthor defcitealias citetalias citepalias nocite bibentry citeonline onlinecite shortcite"
_APACITE = (
    "citeA citeNP shortciteA shortciteNP fullcite fullciteA fullciteNP citeauthorNP citeyearNP nocitemeta citeaauthor"
)
_APACITE += " maskcite maskcitep maskcitet maskcitealt maskcitealp citeauthort"
_BIBLATEX = "Cite parencite Parencite footcite footcitetext textcite Textcite smartcite Smartcite supercite autocite"
_BIBLATEX += " Autocite citetitle citedate citeurl footfullcite fvolcite volcite pvolcite tvolcite avolcite svolcite"
_BIBLATEX += " notecite Notecite pnotecite fnotecite citename citelist citefield textcquote blockcquote avolcite"
_MULTI = "cites Cites parencites Parencites footcites footcitetexts smartcites Smartcites textcites Textcites"
_MULTI += " supercites autocites Autocites fullcites footfullcites citeauthors"
CITE_COMMANDS = frozenset(f"{_NATBIB} {_APACITE} {_BIBLATEX} {_MULTI}".split())
"Commands whose braces are known to hold citation keys."
MULTI_CITE = frozenset(_MULTI.split())
_NO_KEYS = frozenset(
    [
        "citestyle",
        "setcitestyle",
        "citetext",
        "bibcite",
        "citereset",
        "DeclareCiteCommand",
        "DeclareMultiCiteCommand",
        "citesetup",
        "AtEveryCite",
        "AtEveryCitekey",
        "bibliographycite",
        "citationstyle",
        "citeindextrue",
        "citeindexfalse",
        "citedash",
        "citeleft",
        "citeright",
        "citepunct",
        "citemid",
        "citeform",
        "citeHere",
        "renewcite",
        "declarecite",
        "newcite",
    ]
)
REF_COMMANDS = frozenset(
    [
        "ref",
        "eqref",
        "pageref",
        "autoref",
        "autopageref",
        "nameref",
        "Nameref",
        "cref",
        "Cref",
        "cpageref",
        "Cpageref",
        "labelcref",
        "namecref",
        "nameCref",
        "vref",
        "Vref",
        "vpageref",
        "fref",
        "Fref",
        "subref",
        "fullref",
        "prettyref",
        "hyperref",
        "crefrange",
        "Crefrange",
        "titleref",
        "zref",
        "zcref",
    ]
)
"Commands whose first argument names a label."
_SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_INPUTS = _words(
    """
    input include subfile subfileinclude InputIfFileExists
    """
)
_IMPORTS = _words(
    """
    import subimport inputfrom subinputfrom includefrom subincludefrom
    """
)
_BIBS = _words(
    """
    bibliography nobibliography addbibresource addglobalbib addsectionbib
    """
)
_DEFS = _words(
    """
    newcommand renewcommand providecommand NewDocumentCommand def
    """
)


@dataclass(frozen=True, slots=True)
class Name:
    """A key or label and where it stands."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """One cite command; `certain` is False for commands we only guess by their name."""

    command: str
    start: int
    end: int
    keys: tuple[Name, ...]
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Reference:
    """One `\\ref`-like command."""

    command: str
    labels: tuple[Name, ...]
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """A heading; `level` counts from 0 (part)."""

    level: int
    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Include:
    """A file that another names; `folder` is `\\import`'s first argument, `open` says that a macro hides the name."""

    kind: IncludeKind
    name: str
    start: int
    end: int
    folder: str = ""
    relative: bool = False
    "`\\subimport`: relative to the file that imports."
    open: bool = False
    optional: bool = False
    "`\\InputIfFileExists`: nothing is missing without it."


@dataclass(frozen=True, slots=True)
class Embedded:
    """A `filecontents` file: its name and where its text stands."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Environment:
    """`\\begin{name}` … `\\end{name}`."""

    name: str
    start: int
    inside: int
    end: int


@dataclass(frozen=True, eq=False)
class TexFile:
    """All that one text says."""

    text: str
    masked: str
    "Same length; comments and verbatim are blanks."
    citations: tuple[Citation, ...] = ()
    labels: tuple[Name, ...] = ()
    references: tuple[Reference, ...] = ()
    sections: tuple[Section, ...] = ()
    includes: tuple[Include, ...] = ()
    bibitems: tuple[Name, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    environments: tuple[Environment, ...] = ()
    root: str = ""
    "The magic comment's."
    document_class: str = ""
    class_options: str = ""
    packages: frozenset[str] = frozenset()
    open_labels: bool = False
    "Labels come from macros or other documents."
    has_end: bool = False
    "`\\end{document}` was seen."

    @property
    def is_root(self) -> bool:
        """It has a class of its own and is no subfile."""
        return bool(self.document_class) and self.document_class not in ("subfiles", "subfile")

    @cached_property
    def cited(self) -> dict[str, list[Name]]:
        """Key → where it is cited."""
        found: dict[str, list[Name]] = {}
        for citation in self.citations:
            for key in citation.keys:
                found.setdefault(key.name, []).append(key)
        return found

    def citation_at(self, offset: int) -> tuple[Citation, Name] | None:
        """The key under an offset."""
        for citation in self.citations:
            if citation.start <= offset <= citation.end:
                for key in citation.keys:
                    if key.start <= offset <= key.end:
                        return citation, key
        return None


@dataclass(slots=True)
class _Found:
    citations: list[Citation] = field(default_factory=list)
    labels: list[Name] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    includes: list[Include] = field(default_factory=list)
    bibitems: list[Name] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    begun: list[tuple[str, int, int]] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)
    document_class: str = ""
    class_options: str = ""
    open_labels: bool = False


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def mask(text: str) -> tuple[str, tuple[Embedded, ...], bool]:
    """Blanks comments and verbatim; returns the masked text, `filecontents` files, and whether the document ends."""
    parts: list[str] = []
    embedded: list[Embedded] = []
    at, done = 0, 0
    has_end = False
    while (match := _HIDE.search(text, at)) is not None:
        start = match.start()
        if _escaped(text, start):
            at = start + 1
            continue
        word = match[0]
        if word == "%":
            end = _line_end(text, start)
            hidden = start
        elif match[1]:
            hidden = match.end()
            if match[1].startswith("filecontents") and (named := _CONTENTS.match(text, match.end())):
                hidden = named.end()
            elif option := _OPTION.match(text, match.end()):
                hidden = option.end()
            close = text.find("\\end{" + match[1] + "}", hidden)
            end = close if close >= 0 else len(text)
            if match[1].startswith("filecontents") and named:
                embedded.append(Embedded(named[1].strip(), hidden, end))
        elif word == "\\iffalse":
            hidden, end = start, _fi(text, match.end())
        elif word.startswith("\\end"):
            has_end, hidden, end = True, match.end(), len(text)
        else:
            hidden, end = match.end(), _verb_end(text, match.end())
        parts += (text[done:hidden], " " * (end - hidden) if word == "%" else _blank(text[hidden:end]))
        at = done = max(end, match.end())
    parts.append(text[done:])
    return "".join(parts), tuple(embedded), has_end


def _escaped(text: str, at: int) -> bool:
    count = 0
    while at - count > 0 and text[at - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _line_end(text: str, at: int) -> int:
    ends = [e for e in (text.find("\n", at), text.find("\r", at, at + 4096)) if e >= 0]
    return min(ends) if ends else len(text)


def _fi(text: str, at: int) -> int:
    depth = 1
    for match in re.finditer(r"\\(if[a-zA-Z]*|fi)(?![a-zA-Z])", text[at:]):
        depth += -1 if match[1] == "fi" else 1
        if depth == 0:
            return at + match.start()
    return len(text)


def _verb_end(text: str, at: int) -> int:
    if at >= len(text) or text[at].isspace():
        return at
    closing = {"{": "}", "[": "]"}.get(text[at], text[at])
    end = text.find(closing, at + 1, _line_end(text, at))
    return end + 1 if end >= 0 else at


def scan(text: str) -> TexFile:
    """Reads a text."""
    masked, embedded, has_end = mask(text)
    found = _Found()
    for match in _COMMAND.finditer(masked):
        if match.start() and masked[match.start() - 1] == "\\" and _escaped(masked, match.start()):
            continue
        _command(masked, match, found)
    found.labels += [Name(m[1], m.start(1), m.end(1)) for m in _OPTION_LABEL.finditer(masked)]
    for name, start, inside in found.begun:
        found.environments.append(Environment(name, start, inside, len(text)))
    magic = _MAGIC.search(text[:5000])
    found.labels.sort(key=lambda label: label.start)
    return TexFile(
        text, masked, tuple(found.citations), tuple(found.labels), tuple(found.references), tuple(found.sections),
        tuple(found.includes), tuple(found.bibitems), embedded, tuple(found.environments),
        magic[1].strip("\"'") if magic else "", found.document_class, found.class_options, frozenset(found.packages),
        found.open_labels, has_end,
    )  # fmt: skip


def _command(text: str, match: re.Match[str], found: _Found) -> None:
    name, end = match[1], match.end()
    if name in ("begin", "end"):
        _environment(text, match, found)
    elif name == "label":
        if (got := _braces(text, end)) is not None:
            label = _name(text, *got)
            if "#" in label.name or "\\" in label.name:
                found.open_labels = True
            elif label.name:
                found.labels.append(label)
    elif name in _SECTIONS:
        _section(text, match, found)
    elif name in _INPUTS or name in _IMPORTS or name in _BIBS:
        found.includes += _includes(text, name, end)
    elif name in ("documentclass", "usepackage", "RequirePackage"):
        _package(text, match, found)
    elif name == "externaldocument":
        found.open_labels = True
    elif name == "bibitem":
        if (got := _braces(text, _options(text, end))) is not None:
            found.bibitems.append(_name(text, *got))
    elif "cite" in name.lower() or name in CITE_COMMANDS:
        _cite(text, match, found)
    elif name not in _DEFS:
        _reference(text, match, found)


def _environment(text: str, match: re.Match[str], found: _Found) -> None:
    got = _braces(text, match.end())
    if got is None:
        return
    name = text[got[0] : got[1]]
    if match[1] == "begin":
        found.begun.append((name, match.start(), got[1] + 1))
        if name == "refsection" and (option := _bracket(text, got[1] + 1)) is not None:
            found.includes += _bib_names(text, option[0], option[1], single=False)
        return
    for index in range(len(found.begun) - 1, max(-1, len(found.begun) - 12), -1):
        if found.begun[index][0] == name:
            _, start, inside = found.begun[index]
            found.environments.append(Environment(name, start, inside, got[1] + 1))
            del found.begun[index:]
            return


def _section(text: str, match: re.Match[str], found: _Found) -> None:
    got = _braces(text, _options(text, match.end()))
    if got is not None:
        title = " ".join(text[got[0] : got[1]].split())
        found.sections.append(Section(_SECTIONS.index(match[1]), title, match.start(), got[1] + 1))


def _package(text: str, match: re.Match[str], found: _Found) -> None:
    option = _bracket(text, match.end())
    got = _braces(text, _options(text, match.end()))
    if got is None:
        return
    if match[1] == "documentclass":
        found.document_class = text[got[0] : got[1]].strip()
        found.class_options = text[option[0] : option[1]].strip() if option else ""
    names = [_name(text, m.start(), m.end()) for m in _KEY.finditer(text, *got)]
    found.packages.update(n.name for n in names)
    kind: IncludeKind = "package"
    found.includes += [Include(kind, n.name, n.start, n.end) for n in names if "#" not in n.name]


def _includes(text: str, command: str, at: int) -> Iterator[Include]:
    got = _braces(text, _options(text, at))
    if got is None:
        if command == "input" and (bare := re.compile(r"[ \t]+([^\s\\{}%]+)").match(text, at)):
            yield Include("input", bare[1], bare.start(1), bare.end(1))
        return
    if command in _BIBS:
        yield from _bib_names(text, *got, single=command.startswith("add"))
        return
    folder = ""
    if command in _IMPORTS:
        folder = text[got[0] : got[1]].strip()
        got = _braces(text, got[1] + 1)
        if got is None:
            return
    name = _unfix(text[got[0] : got[1]])
    kind: IncludeKind = "import" if folder else "subfile" if command.startswith("subfile") else "input"
    yield Include(
        kind,
        name,
        got[0],
        got[1],
        _unfix(folder),
        command.startswith("sub") and bool(folder),
        _hidden(name + folder),
        command == "InputIfFileExists",
    )


def _bib_names(text: str, start: int, end: int, *, single: bool) -> Iterator[Include]:
    for match in [None] if single else _KEY.finditer(text, start, end):
        one = _name(text, start, end) if match is None else _name(text, match.start(), match.end())
        name = _unfix(one.name)
        if name:
            yield Include("bibliography", name, one.start, one.end, open=_hidden(name))


def _unfix(name: str) -> str:
    name = re.sub(r"\\(?:subfix|string|detokenize)\s*\{?([^{}]*)\}?", r"\1", name.strip()).strip().strip('"')
    return re.sub(r"^\{(.*)\}$", r"\1", name)


def _hidden(name: str) -> bool:
    return "#" in name or "\\" in name.replace("\\jobname", "") or name.startswith(("http:", "https:", "$", "|"))


def _cite(text: str, match: re.Match[str], found: _Found) -> None:
    name = match[1]
    if name in _NO_KEYS or _defines(text, match.start()):
        return
    keys: list[Name] = []
    at = end = match.end()
    if name in MULTI_CITE:
        at = _options(text, at, round_=True)
    if name.lower().endswith("volcite"):
        volume = _braces(text, _options(text, at))
        at = volume[1] + 1 if volume else at
    while (got := _braces(text, _options(text, at), cite=True)) is not None:
        keys += [_name(text, m.start(), m.end()) for m in _KEY.finditer(text, *got)]
        at = end = got[1] + 1
        if name not in MULTI_CITE:
            break
    keys = [k for k in keys if not set(k.name) & set("#\\{}")]
    if end > match.end():
        known = name in CITE_COMMANDS or name[0].lower() + name[1:] in CITE_COMMANDS
        found.citations.append(Citation(name, match.start(), end, tuple(keys), known))


def _defines(text: str, start: int) -> bool:
    """Whether the command at `start` is the name in a definition: `\\newcommand{\\citeme}`, `\\def\\citeme`."""
    before = text[max(0, start - 40) : start].rstrip()
    return bool(
        re.search(
            r"\\(?:(?:re)?newcommand|providecommand|NewDocumentCommand|DeclareRobustCommand|let|def)\*?\s*\{?$", before
        )
    )


def _reference(text: str, match: re.Match[str], found: _Found) -> None:
    name, at = match[1], match.end()
    if _defines(text, match.start()):
        return
    if name == "hyperref":
        got = _bracket(text, at)
        if got is not None:
            found.references.append(Reference(name, (_name(text, *got),)))
        return
    got = _braces(text, _options(text, at))
    names: list[Name] = []
    for _ in range(2 if name.endswith("range") else 1):
        if got is not None:
            names += [_name(text, m.start(), m.end()) for m in _KEY.finditer(text, *got)]
            got = _braces(text, got[1] + 1)
    names = [n for n in names if not set(n.name) & set("#\\{}")]
    if names:
        found.references.append(Reference(name, tuple(names), name in REF_COMMANDS))


def _name(text: str, start: int, end: int) -> Name:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return Name(piece.strip(), start, start + len(piece.strip()))


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    end = match.end() if match else at
    return at if text.count("\n", at, end) > 1 else end


def _braces(text: str, at: int, *, cite: bool = False) -> tuple[int, int] | None:
    """Inside of the `{…}` at `at`; one that is not closed ends at the next blank line, `\\` or `}`."""
    at = _space(text, at)
    if at >= len(text) or text[at] != "{":
        return None
    depth = 0
    limit = min(len(text), at + 20_000)
    for match in re.compile(r"[{}]|\\.|\n[ \t]*\r?\n").finditer(text, at, limit):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return at + 1, match.start()
        elif match[0][0] == "\n" or (cite and match[0][0] == "\\" and match[0][1:].isalpha()):
            return at + 1, match.start()
    return at + 1, limit


def _bracket(text: str, at: int, pair: str = "[]") -> tuple[int, int] | None:
    at = _space(text, at)
    if at >= len(text) or text[at] != pair[0]:
        return None
    depth = 0
    for index in range(at + 1, min(len(text), at + 3000)):
        char = text[index]
        if char == pair[1] and depth <= 0:
            return at + 1, index
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return None
    return None


def _options(text: str, at: int, *, round_: bool = False) -> int:
    """Past any `[…]` and `<…>` arguments, and `(…)` for multicite commands."""
    pairs = ("[]", "<>", "()") if round_ else ("[]", "<>")
    for _ in range(4):
        here = _space(text, at)
        pair = next((p for p in pairs if text[here : here + 1] == p[0]), "")
        got = _bracket(text, here, pair) if pair else None
        if got is None:
            return at
        at = got[1] + 1
    return at


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is being typed: in which argument of which command, and the part before and after the cursor."""

    kind: Literal["cite", "ref", "other"]
    command: str
    start: int
    "Where the word begins."
    end: int
    "Where it ends (at a comma, brace or blank)."
    typed: str
    others: tuple[str, ...] = ()
    "Keys that stand in the same list."


_BEFORE = re.compile(
    r"\\([A-Za-z]+)\*?((?:\s*(?:\[[^\]]*\]|<[^>]*>|\([^)]*\)))*\s*(?:\{[^{}]*\}(?:\s*\[[^\]]*\])*\s*)*)\{([^{}]*)\Z"
)
_AFTER = re.compile(r"[^,\s{}\\]*")


def cursor(text: str, offset: int) -> Cursor | None:
    """Reads the argument around an offset by looking back a little; None outside of cite and ref commands."""
    begin = max(0, offset - 3000)
    before = text[begin:offset]
    line = before[max(before.rfind("\n"), before.rfind("\r")) + 1 :]
    if re.search(r"(?<!\\)(?:\\\\)*%", line):
        return None
    brace = before.rfind("{")
    if brace < 0 or "}" in before[brace:]:
        return None
    before = _unclutter(before[max(0, brace - 2000) :])
    matches = [m for m in [_BEFORE.search(before[i:]) for i in _backslashes(before)] if m]
    match = next((m for m in matches if _kind(m) != "other"), None)
    if match is None:
        return None
    inside = match[3]
    typed = inside[inside.rfind(",") + 1 :].lstrip()
    after = _AFTER.match(text, offset)
    end = after.end() if after else offset
    rest = text[end : end + 500].split("}", 1)[0]
    if "\\" in rest or "\n\n" in rest:
        rest = ""
    others = [k.strip() for k in (inside[: inside.rfind(",") + 1] + rest).split(",")]
    kind = _kind(match)
    return Cursor(kind, match[1], offset - len(typed), end, typed, tuple(k for k in others if k))


def _backslashes(text: str) -> list[int]:
    places: list[int] = []
    at = len(text)
    while len(places) < 12 and (at := text.rfind("\\", 0, at)) >= 0:
        places.append(at)
    return places


def _unclutter(text: str) -> str:
    """Comments in a key list blanked, lengths kept."""
    if "%" not in text:
        return text
    return re.sub(r"(?<!\\)%[^\r\n]*", lambda m: " " * len(m[0]), text)


def _kind(match: re.Match[str]) -> Literal["cite", "ref", "other"]:
    name, between = match[1], match[2]
    if name in _NO_KEYS:
        return "other"
    if "cite" in name.lower() or name in CITE_COMMANDS:
        braces = between.count("{")
        if braces and name not in MULTI_CITE and not name.lower().endswith("volcite"):
            return "other"
        return "cite"
    if name in REF_COMMANDS or (name.lower().endswith("ref") and name != "href"):
        return "ref" if not between.count("{") or name.endswith("range") else "other"
    return "other"


def word_environment(file: TexFile, offset: int) -> Environment | None:
    """The innermost environment around an offset, `document` excepted."""
    around = [e for e in file.environments if e.start <= offset <= e.end and e.name != "document"]
    return max(around, key=lambda e: e.start) if around else None


def caption_near(file: TexFile, label: Name) -> str:
    """What a label names: its float's caption, or the section before it."""
    around = word_environment(file, label.start)
    if around is not None:
        match = re.compile(r"\\(?:table)?caption\*?\s*(?:\[[^\]]*\])?\s*(?=\{)").search(
            file.masked, around.start, around.end
        )
        if match and (got := _braces(file.masked, match.end())) is not None:
            return " ".join(file.masked[got[0] : got[1]].split())
        if around.name.rstrip("*") in ("equation", "align", "eqnarray", "gather", "multline"):
            body = file.masked[around.inside : around.end].rsplit("\\end", 1)[0]
            return " ".join(re.sub(r"\\label\{[^}]*\}", "", body).split())
    before = [s for s in file.sections if s.start <= label.start]
    return before[-1].title if before else ""


_BREAK = re.compile(
    r"\n[ \t]*\r?\n|^[ \t]*\\(?:begin|end|documentclass|usepackage|bibliography\w*|addbibresource|(?:sub)*section|chapter|maketitle"
    r"|label|item|title|author|newcommand|caption)(?![A-Za-z])[^\r\n]*$",
    re.M,
)


def sentence_at(masked: str, offset: int) -> tuple[int, int]:
    """Start and end of the sentence around an offset, inside its paragraph; headings and the preamble are none."""
    base = max(0, offset - 5000)
    begin, end = base, len(masked)
    for match in _BREAK.finditer(masked, base, min(len(masked), offset + 5000)):
        if match.end() <= offset:
            begin = match.end()
        elif match.start() >= offset:
            end = match.start()
            break
        else:
            return offset, offset
    for match in _SENTENCE_END.finditer(masked, begin, end):
        if match.end() <= offset:
            begin = match.end()
        else:
            end = match.end()
            break
    while begin < end and masked[begin].isspace():
        begin += 1
    return begin, end
