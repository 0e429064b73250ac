"""The smallest edits that add an entry to a .bib or a key to a sentence; pure text in, a span out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from astroresearch.manuscript import bibtex, latex


@dataclass(frozen=True, slots=True)
class TextEditSpan:
    """Replace `text[start:end]` by `new`."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """The text after the edit."""
        return text[: self.start] + self.new + text[self.end :]


def eol_of(text: str) -> str:
    """The line end that a text uses most; LF for one without any."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    cr = text.count("\r") - crlf
    return max((lf, "\n"), (crlf, "\r\n"), (cr, "\r"), key=lambda pair: pair[0])[1]


def with_eol(text: str, eol: str) -> str:
    """A text with all its line ends replaced."""
    return re.sub(r"\r\n|\r|\n", eol, text)


def bib_insertion(text: str, entry: str) -> TextEditSpan:
    """Appends an entry after the last one, one blank line between, line ends as the file has them."""
    eol = eol_of(text)
    new = with_eol(entry.strip(), eol)
    scanned = bibtex.scan(text)
    closed = [one for one in (*scanned.entries, *scanned.specials) if one.body.closed]
    unclosed = any(not one.body.closed for one in (*scanned.entries, *scanned.specials))
    end = len(text) if unclosed or not closed else max(one.end for one in closed)
    if text[end:].strip():
        end = len(text)
    body = text[:end].rstrip()
    if not body.strip("\ufeff"):
        return TextEditSpan(len(body), len(text), new + eol)
    return TextEditSpan(len(body), len(text), eol * 2 + new + eol)


def entry_key(entry: str) -> str:
    """The key of the first entry in a text; empty if there is none."""
    scanned = bibtex.scan(entry)
    return scanned.entries[0].key if scanned.entries else ""


def with_key(entry: str, key: str) -> str:
    """The first entry of a text under another key."""
    scanned = bibtex.scan(entry)
    if not scanned.entries:
        return entry
    start, end = scanned.entries[0].key_range
    return entry[:start] + key + entry[end:]


def free_key(text: str, key: str) -> str:
    """A key that the .bib does not have yet: the key itself, or with a letter behind."""
    taken = {entry.key.lower() for entry in bibtex.scan(text).entries}
    if key.lower() not in taken:
        return key
    for letter in "abcdefghijklmnopqrstuvwxyz":
        if (key + letter).lower() not in taken:
            return key + letter
    number = 2
    while f"{key}-{number}".lower() in taken:
        number += 1
    return f"{key}-{number}"


def cite_insertion(text: str, offset: int, key: str, style: str = "citep") -> TextEditSpan:
    """Adds a key at a place: into the list that stands there, or as a new `\\style{key}` between blanks.

    A key that the list has already gives an edit that changes nothing.
    """
    offset = max(0, min(offset, len(text)))
    at = latex.cursor(text, offset)
    if at is not None and at.kind == "cite":
        return _into_list(text, at, key)
    for citation in latex.scan(text).citations:
        if citation.start <= offset <= citation.end and citation.keys:
            if any(one.name == key for one in citation.keys):
                return TextEditSpan(offset, offset, "")
            end = citation.keys[-1].end
            return TextEditSpan(end, end, "," + key)
    start, end = offset, offset
    before = text[start - 1 : start]
    after = text[end : end + 1]
    lead = "" if not before or before.isspace() or before in "~({[" else " "
    tail = "" if not after or after.isspace() or after in ".,;:)]}!?~" else " "
    return TextEditSpan(start, end, f"{lead}\\{style}{{{key}}}{tail}")


def _into_list(text: str, at: latex.Cursor, key: str) -> TextEditSpan:
    whole = text[at.start : at.end].strip()
    if key in at.others or whole == key:
        return TextEditSpan(at.start, at.start, "")
    if whole:
        end = at.start + len(text[at.start : at.end].rstrip())
        return TextEditSpan(end, end, "," + key)
    before = text[: at.start].rstrip()
    lead = "" if before.endswith(("{", ",")) else ","
    after = text[at.end :].lstrip()
    tail = "" if after.startswith(("}", ",")) else "}" if not after or after[0] in "\r\n" else ""
    return TextEditSpan(at.start, at.end, lead + key + tail)


def preferred_style(text: str) -> str:
    """The cite command to insert: what the manuscript uses most of the parenthetical ones."""
    counts = {name: len(re.findall(rf"\\{name}\b", text)) for name in ("citep", "parencite", "autocite", "cite")}
    best = max(counts, key=lambda name: counts[name])
    if counts[best]:
        return best
    if re.search(r"\\usepackage(?:\[[^\]]*\])?\{[^}]*biblatex", text):
        return "autocite"
    known = re.search(r"natbib|aastex|mnras|\\documentclass(?:\[[^\]]*\])?\{aa\}", text)
    return "citep" if known else "cite"
