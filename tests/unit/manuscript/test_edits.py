from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.manuscript import bibtex, latex
from astroresearch.manuscript.edits import (
    bib_insertion,
    cite_insertion,
    entry_key,
    free_key,
    preferred_style,
    with_key,
)

ENTRY = "@ARTICLE{new1,\n  title = {New}\n}\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", ENTRY),
        ("\n\n", ENTRY),
        ("@misc{a, title={x}}", "@misc{a, title={x}}\n\n" + ENTRY),
        ("@misc{a, title={x}}\n\n\n", "@misc{a, title={x}}\n\n" + ENTRY),
        ("@misc{a,\r\n title={x}}\r\n", "@misc{a,\r\n title={x}}\r\n\r\n" + ENTRY.replace("\n", "\r\n")),
        ("@misc{a, title={x}}\nlast words\n", "@misc{a, title={x}}\nlast words\n\n" + ENTRY),
        ("@misc{open, title={x}\n", "@misc{open, title={x}\n\n" + ENTRY),
    ],
)
def test_an_entry_goes_behind_the_last(text: str, after: str) -> None:
    assert bib_insertion(text, ENTRY).apply(text) == after


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='@article{},="k \r\n%é', max_size=60))
def test_nothing_but_the_end_changes(text: str) -> None:
    edit = bib_insertion(text, ENTRY)
    assert not text[edit.start : edit.end].strip()
    assert edit.end == len(text)
    assert edit.apply(text).startswith(text[: edit.start])


@pytest.mark.parametrize(
    ("marked", "after"),
    [
        ("as shown| here", r"as shown \citep{k} here"),
        ("as shown |.", r"as shown \citep{k}."),
        ("as shown~|.", r"as shown~\citep{k}."),
        (r"\citep{a|}", r"\citep{a,k}"),
        (r"\citep{|}", r"\citep{k}"),
        (r"\citep{a, |}", r"\citep{a, k}"),
        (r"\citep{|", r"\citep{k}"),
        (r"\citep{k|}", r"\citep{k}"),
        (r"\citep{a,|k}", r"\citep{a,k}"),
        (r"\ci|tep[see]{a} x", r"\citep[see]{a,k} x"),
        (r"\citep{a}|", r"\citep{a,k}"),
        ("|", r"\citep{k}"),
    ],
)
def test_a_key_goes_into_the_list_or_a_new_command(marked: str, after: str) -> None:
    text = marked.replace("|", "")
    assert cite_insertion(text, marked.index("|"), "k").apply(text) == after


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="\\citep{},a b%\n.", max_size=40), st.integers(0, 45))
def test_inserting_never_fails(text: str, at: int) -> None:
    cite_insertion(text, at, "k").apply(text)


def test_keys_of_entries() -> None:
    assert entry_key(ENTRY) == "new1"
    assert with_key(ENTRY, "b") == ENTRY.replace("new1", "b")
    assert free_key("@misc{new1,}", "new1") == "new1a"
    assert free_key("", "new1") == "new1"
    assert bibtex.scan(bib_insertion("", ENTRY).apply("")).entries[0].key == "new1"


def test_the_style_is_what_the_manuscript_uses() -> None:
    assert preferred_style(r"\citep{a} \citep{b} \cite{c}") == "citep"
    assert preferred_style(r"\usepackage{biblatex}") == "autocite"
    assert preferred_style(r"\documentclass{article}") == "cite"
    assert preferred_style(r"\documentclass[twocolumn]{aastex631}") == "citep"
    assert {"citep", "autocite", "cite"} <= latex.CITE_COMMANDS
