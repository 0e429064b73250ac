from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.manuscript import latex
from astroresearch.manuscript.latex import caption_near, cursor, scan, sentence_at

PIECES = [
    "\\citep[see][p.~3]{a,b}", "\\citet", "{", "}", "[", "]", "<", ">", "(", ")", "%", "\\%", "\\\\", "\n", "\r\n", "\r",
    "\n\n", "\\begin{verbatim}", "\\end{verbatim}", "\\verb|x|", "\\verb", "\\label{l}", "\\ref{l}", "\\input{f}", "\\input f",
    "\\section{S}", "\\iffalse", "\\fi", "\\bibitem[x]{k}", "\\bibliography{a,b}", "\\begin{filecontents}{x.bib}",
    "\\end{filecontents}", "\\end{document}", "é🔭", "\\newcommand{\\citeme}[1]{\\cite{#1}}", "\\documentclass[a]{b}", "\\autocites",
    "\\subimport{d}{f}", "% !TeX root = x", "\\begin{figure}\\caption{C}", "\\end{figure}", ",", "key", " ",
]  # fmt: skip
noise = st.one_of(st.lists(st.sampled_from(PIECES), max_size=16).map("".join), st.text(max_size=60))


def cited(text: str) -> list[str]:
    return [key.name for citation in scan(text).citations for key in citation.keys]


@settings(max_examples=500, deadline=None)
@given(noise, st.integers(0, 80))
def test_any_text_is_read_without_an_exception(text: str, at: int) -> None:
    file = scan(text)
    assert len(file.masked) == len(text)
    for citation in file.citations:
        for key in citation.keys:
            assert file.masked[key.start : key.end] == key.name
    for label in file.labels:
        assert file.masked[label.start : label.end] == label.name
        assert caption_near(file, label) is not None
    for include in file.includes:
        assert 0 <= include.start <= include.end <= len(text)
    start, end = sentence_at(file.masked, min(at, len(text)))
    assert 0 <= start <= end <= len(text)
    found = cursor(text, min(at, len(text)))
    if found is not None:
        assert text[found.start : min(at, len(text))] == found.typed


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (r"\citep[see][p.~3]{a, b} \citet*{c} \Citealt{d}", ["a", "b", "c", "d"]),
        ("\\citep{good1,% oldkey, gone\n  good2}", ["good1", "good2"]),
        (r"\autocites[12]{good1}[see][3]{good2} \cites(pre)(post){x}{y}", ["good1", "good2", "x", "y"]),
        (r"\citeA<e.g.,>[p.~1]{k} \shortciteNP{m} \fullciteA{n}", ["k", "m", "n"]),
        (r"\volcite[pre]{2}[12]{k}", ["k"]),
        (r"\software{Astropy \citep{good1}, X \citep{nokey}}", ["good1", "nokey"]),
        (r"\verb|\cite{no}| \lstinline{\cite{no}} \% \cite{yes}", ["yes"]),
        (r"\begin{verbatim}\cite{no}\end{verbatim}\begin{lstlisting}[a]\cite{no}\end{lstlisting}\cite{yes}", ["yes"]),
        ("\\iffalse \\cite{no} \\ifx a\\fi \\cite{no}\\fi \\cite{yes}", ["yes"]),
        (r"\newcommand{\citeme}[1]{\citep{#1}} \citetext{see \citealp{k}}", ["k"]),
        (r"\defcitealias{k}{Paper I} \citetalias{k} \nocite{*}", ["k", "k", "*"]),
        ("\\cite\n{k} \\cite\n\n{no}", ["k"]),
        (r"\end{document} \cite{no}", []),
        (r"\citestyle{aa}\setcitestyle{round}", []),
        (r"\textcquote[see][3]{k}{some text}", ["k"]),
        (r"\\% \cite{no}" + "\n" + r"\\\cite{yes}", ["yes"]),
        ("\\citep{open, \\section{S} \\cite{k}", ["open", "k"]),
    ],
)
def test_citations(text: str, keys: list[str]) -> None:
    assert cited(text) == keys


@pytest.mark.parametrize(
    ("marked", "command", "typed", "word", "others"),
    [
        (r"\citep[see][p.~3]{a,b|c, d}", "citep", "b", "bc", ("a", "d")),
        (r"\autocites[12]{good1}[see][3]{go|od2}", "autocites", "go", "good2", ()),
        (r"\ref{ab|}", "ref", "ab", "ab", ()),
        (r"\foo{\citep{a,|}", "citep", "", "", ("a",)),
        ("\\citet{a,% b\n c|}", "citet", "c", "c", ("a",)),
        (r"\citep{Smith et al|", "citep", "Smith et al", "Smith et al", ()),
        (r"\textcite{|", "textcite", "", "", ()),
    ],
)
def test_what_is_being_typed(marked: str, command: str, typed: str, word: str, others: tuple[str, ...]) -> None:
    offset = marked.index("|")
    text = marked.replace("|", "")
    found = cursor(text, offset)
    assert found is not None
    assert (found.command, found.typed, text[found.start : found.end], found.others) == (command, typed, word, others)


@pytest.mark.parametrize(
    "marked", [r"\citep{a} x|", r"% \citep{a|}", "a{b|}", "|", r"\citetalias{a}{b|}", r"\section{a|}"]
)
def test_elsewhere_nothing_is_typed(marked: str) -> None:
    assert cursor(marked.replace("|", ""), marked.index("|")) is None


def test_structure() -> None:
    text = (
        "% !TeX root = ../main.tex\n\\documentclass[../main]{subfiles}\n\\usepackage{a,b}\n"
        "\\input{x/y}\\input z \\subimport{d/}{f}\\include{\\dir/q}\\subfile{s}\n"
        "\\bibliography{one,\n  two}\\addbibresource[label=l]{th,ree.bib}\n"
        "\\section[short]{A {B} C}\\label{s:1}\\begin{lstlisting}[label=lst:1]\\end{lstlisting}\n"
        "\\cref{a,b} \\crefrange{c}{d} \\hyperref[e]{text} \\href{f}{g}\n\\bibitem[{\\protect x [y]}]{key}\n"
    )
    file = scan(text)
    assert (file.root, file.document_class, file.class_options, file.is_root) == (
        "../main.tex",
        "subfiles",
        "../main",
        False,
    )
    includes = [(i.kind, i.folder, i.name, i.open) for i in file.includes if i.kind != "package"]
    assert includes == [
        ("input", "", "x/y", False),
        ("input", "", "z", False),
        ("import", "d/", "f", False),
        ("input", "", "\\dir/q", True),
        ("subfile", "", "s", False),
        ("bibliography", "", "one", False),
        ("bibliography", "", "two", False),
        ("bibliography", "", "th,ree.bib", False),
    ]
    assert [s.title for s in file.sections] == ["A {B} C"]
    assert {"s:1", "lst:1"} <= {label.name for label in file.labels}
    assert [n.name for r in file.references for n in r.labels if r.certain] == ["a", "b", "c", "d", "e"]
    assert [b.name for b in file.bibitems] == ["key"]
    assert {"a", "b"} <= file.packages


def test_macros_that_set_labels_leave_labels_open() -> None:
    assert scan("\\newcommand{\\fig}[1]{\\label{fig:#1}}").open_labels
    assert scan("\\externaldocument{other}").open_labels
    assert not scan("\\label{fig:1}").open_labels


def test_captions_name_what_a_label_stands_for() -> None:
    text = (
        "\\section{Intro}\\label{s}\n\\begin{figure}\\caption[x]{A {nice} figure}\\label{f}\\end{figure}\n"
        "\\begin{equation}\\label{e}a=b\\end{equation}"
    )
    file = scan(text)
    assert [caption_near(file, label) for label in file.labels] == ["Intro", "A {nice} figure", "a=b"]


def test_sentences_end_at_stops_and_not_at_abbreviations() -> None:
    text = "\\section{S}\nOne is here. Two, see Smith et al. 2019 and Fig. 3, is here. Three.\n\nFour."
    start, end = sentence_at(text, text.index("2019"))
    assert text[start:end] == "Two, see Smith et al. 2019 and Fig. 3, is here."
    assert latex.sentence_at(text, 3) == (3, 3)
