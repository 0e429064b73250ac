"""Open documents: text that agrees with the editor on lines and columns, and takes an edit in O(edit)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from lsprotocol import types
from pygls import uris

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
Change = types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument


def split_lines(text: str) -> list[str]:
    """Lines with their ends, as LSP counts them: only LF, CRLF and CR end a line."""
    return _LINES.findall(text)


def _width(char: str, encoding: str) -> int:
    code = ord(char)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    if encoding == "utf-8":
        return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return 1


def column(line: str, units: int, encoding: str) -> int:
    """Index into a line for a column in code units; clipped to the line's text, never inside a character."""
    body = line.rstrip("\r\n")
    if units <= 0:
        return 0
    if encoding == "utf-32" or body.isascii():
        return min(units, len(body))
    seen = 0
    for index, char in enumerate(body):
        if seen >= units:
            return index
        seen += _width(char, encoding)
    return len(body)


def units(text: str, encoding: str) -> int:
    """Length in code units of the negotiated encoding."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return sum(_width(char, encoding) for char in text)


def position_in(text: str, offset: int, encoding: str) -> types.Position:
    """Position of an offset in a text that is no open document; costs one pass over the bytes before it."""
    offset = max(0, min(offset, len(text)))
    if 0 < offset < len(text) and text[offset - 1] == "\r" and text[offset] == "\n":
        offset -= 1
    line = text.count("\n", 0, offset) + text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return types.Position(line, units(text[start:offset], encoding))


def range_in(text: str, start: int, end: int, encoding: str) -> types.Range:
    """Range of two offsets in a text that is no open document."""
    return types.Range(position_in(text, start, encoding), position_in(text, end, encoding))


class TextDocument:
    """One open buffer. `version` is the client's; positions are in code units of `encoding`."""

    __slots__ = ("_lines", "_starts", "_text", "_touched", "encoding", "language", "uri", "version")

    def __init__(self, uri: str, text: str, version: int = 0, language: str = "", encoding: str = "utf-16") -> None:
        self.uri = uri
        self.version = version
        self.language = language
        self.encoding = encoding
        self._lines: list[str] | None = None
        self._text: str | None = text
        self._starts: list[int] | None = None
        self._touched: list[str] | None = []

    @property
    def lines(self) -> list[str]:
        """All lines with their ends; not to be changed."""
        if self._lines is None:
            self._lines = split_lines(self._text or "")
        return self._lines

    @property
    def text(self) -> str:
        """The whole text."""
        if self._text is None:
            self._text = "".join(self._lines or ())
        return self._text

    def apply(self, change: Change) -> None:
        """Applies one content change as the client describes it."""
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            self._text, self._lines, self._starts, self._touched = change.text, None, None, None
            return
        self._splice(change.range.start, change.range.end, change.text)

    def _splice(self, start: types.Position, end: types.Position, text: str) -> None:
        lines = self.lines
        if start.line >= len(lines):
            first, before = len(lines), ""
        else:
            first, before = start.line, lines[start.line][: column(lines[start.line], start.character, self.encoding)]
        if end.line >= len(lines):
            last, after = len(lines), ""
        else:
            last, after = end.line + 1, lines[end.line][column(lines[end.line], end.character, self.encoding) :]
        if first == len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
            first -= 1
            before = lines[-1]
        first, last = min(first, last), max(first, last)
        new = split_lines(before + text + after)
        if first > 0 and lines[first - 1].endswith("\r") and new and new[0] == "\n":
            first -= 1
            new = split_lines(lines[first] + "".join(new))
        joins = bool(new) and last < len(lines)
        if joins and (not new[-1].endswith(("\n", "\r")) or (new[-1].endswith("\r") and lines[last].startswith("\n"))):
            new = split_lines("".join(new) + lines[last])
            last += 1
        elif not new and first > 0 and last < len(lines) and lines[first - 1].endswith("\r") and lines[last] == "\n":
            first -= 1
            new = [lines[first] + lines[last]]
            last += 1
        self._touch(lines[first:last], new)
        lines[first:last] = new
        self._text = self._starts = None

    def _touch(self, old: list[str], new: list[str]) -> None:
        if self._touched is None:
            return
        if len(self._touched) + len(old) + len(new) > 400:
            self._touched = None
        else:
            self._touched += old
            self._touched += new

    def take_touched(self) -> list[str] | None:
        """Lines, old and new, that changed since the last call; None where that is unknown or a lot."""
        touched, self._touched = self._touched, []
        return touched

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *accumulate(map(len, self.lines))]
        return self._starts

    def offset(self, position: types.Position) -> int:
        """Index into `text`; positions outside are clipped."""
        lines = self.lines
        if position.line >= len(lines):
            return self._line_starts()[-1]
        return self._line_starts()[position.line] + column(lines[position.line], position.character, self.encoding)

    def position(self, offset: int) -> types.Position:
        """Position of an index into `text`; indices outside are clipped, one inside CRLF goes before it."""
        starts = self._line_starts()
        lines = self.lines
        offset = max(0, min(offset, starts[-1]))
        line = bisect_right(starts, offset) - 1
        if line >= len(lines):
            if lines and not lines[-1].endswith(("\n", "\r")):
                return types.Position(len(lines) - 1, units(lines[-1], self.encoding))
            return types.Position(len(lines), 0)
        body = lines[line].rstrip("\r\n")
        return types.Position(line, units(body[: offset - starts[line]], self.encoding))

    def range(self, start: int, end: int) -> types.Range:
        """Range of two indices into `text`."""
        return types.Range(self.position(start), self.position(end))


def path_of(uri: str) -> Path | None:
    """The file of a `file:` URI, made absolute without following links; None for other schemes."""
    if not uri.startswith("file:"):
        return None
    name = uris.to_fs_path(uri)
    return Path(name) if name else None


def uri_of(path: Path) -> str:
    """The `file:` URI of a path."""
    return uris.from_fs_path(str(path)) or path.as_uri()


class Documents:
    """The open buffers, by URI and by file."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self.encoding = encoding
        self._open: dict[str, TextDocument] = {}
        self._paths: dict[Path, TextDocument] = {}

    def __iter__(self) -> Iterator[TextDocument]:
        return iter(list(self._open.values()))

    def get(self, uri: str) -> TextDocument | None:
        """The open buffer of a URI; spellings of one file's URI are the same."""
        found = self._open.get(uri)
        if found is None and (path := path_of(uri)) is not None:
            found = self._paths.get(path)
        return found

    def by_path(self, path: Path) -> TextDocument | None:
        """The open buffer of a file."""
        return self._paths.get(path)

    def open(self, uri: str, text: str, version: int = 0, language: str = "") -> TextDocument:
        """A buffer was opened; one that is open already is replaced."""
        document = TextDocument(uri, text, version, language, self.encoding)
        self._open[uri] = document
        if (path := path_of(uri)) is not None:
            self._paths[path] = document
        return document

    def change(self, uri: str, version: int | None, changes: list[Change]) -> TextDocument | None:
        """Applies changes in order; None when no such buffer is open."""
        document = self.get(uri)
        if document is None:
            return None
        for change in changes:
            document.apply(change)
        if version is not None:
            document.version = version
        return document

    def close(self, uri: str) -> None:
        """A buffer was closed; the disk counts again."""
        document = self._open.pop(uri, None)
        path = path_of(uri)
        if document is not None and path is not None and self._paths.get(path) is document:
            del self._paths[path]
