from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from astroresearch.lsp.text import Documents, TextDocument, column, position_in, split_lines, uri_of

ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
CHARS = ["a", "b", "\n", "\r\n", "\r", "\x0c", "\u2028", "\x85", "é", "🔭", "α", " ", "e\u0301", "ש"]
texts = st.lists(st.sampled_from(CHARS), max_size=16).map("".join)
encodings = st.sampled_from(list(ENCODINGS))
points = st.tuples(st.integers(0, 8), st.integers(0, 8))


def naive_offset(text: str, line: int, character: int, encoding: str) -> int:
    lines = split_lines(text)
    if line >= len(lines):
        return len(text)
    base, seen = sum(map(len, lines[:line])), 0
    codec, size = ENCODINGS[encoding]
    body = lines[line].rstrip("\r\n")
    for index, char in enumerate(body):
        if seen >= character:
            return base + index
        seen += len(char.encode(codec)) // size
    return base + len(body)


def part(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(
        range=types.Range(types.Position(*start), types.Position(*end)), text=text
    )


@settings(max_examples=400, deadline=None)
@given(texts, encodings, st.lists(st.tuples(points, points, texts), max_size=4))
def test_edits_agree_with_a_naive_reference(
    text: str, encoding: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    document = TextDocument("file:///a.tex", text, encoding=encoding)
    for one, two, new in edits:
        start, end = sorted((one, two))
        i, j = naive_offset(text, *start, encoding), naive_offset(text, *end, encoding)
        text = text[:i] + new + text[j:]
        document.apply(part(start, end, new))
        assert document.text == text
        assert document.lines == split_lines(text)


@settings(max_examples=400, deadline=None)
@given(texts, encodings)
def test_offset_and_position_are_inverse(text: str, encoding: str) -> None:
    document = TextDocument("file:///a.tex", text, encoding=encoding)
    for offset in range(len(text) + 1):
        inside = 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n"
        position = document.position(offset)
        assert document.offset(position) == (offset - 1 if inside else offset)
        assert position_in(text, offset, encoding) == position


def test_a_column_never_splits_a_character() -> None:
    assert column("🔭x\n", 1, "utf-16") == 1
    assert column("éx\n", 99, "utf-8") == 2


def test_full_text_change_and_closing() -> None:
    documents = Documents("utf-8")
    uri = "file:///tmp/a%20b.tex"
    documents.open(uri, "one\n", 1)
    documents.change(uri, 2, [types.TextDocumentContentChangeWholeDocument(text="two\n")])
    document = documents.get("file:///tmp/a b.tex")
    assert document is not None
    assert (document.text, document.version) == ("two\n", 2)
    assert documents.change("file:///tmp/none.tex", 1, []) is None
    documents.close(uri)
    assert documents.get(uri) is None
    assert documents.close(uri) is None


def test_touched_lines_are_the_old_and_the_new() -> None:
    document = TextDocument("file:///a.tex", "a\nb\nc\n")
    document.apply(part((1, 0), (1, 1), "\\input{x}"))
    assert document.take_touched() == ["b\n", "\\input{x}\n"]
    assert document.take_touched() == []


def test_uri_of_round_trips_spaces_and_accents(tmp_path) -> None:
    path = tmp_path / "é ü#%.tex"
    documents = Documents()
    documents.open(uri_of(path), "x")
    assert documents.by_path(path) is not None
