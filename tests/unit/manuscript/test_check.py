"""Findings; each case that must stay silent has a twin that must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from astroresearch.manuscript import bibtex, latex
from astroresearch.manuscript.check import check_bib, check_tex
from astroresearch.manuscript.project import Project, build

OK = "@article{good1, author={Doe, Jane}, title={First title}, journal={ApJ}, year=2001}\n"
OK2 = "@article{good2, author={Roe, Rick}, title={Second title}, journal={AJ}, year=2002}\n"
ROOT = Path("/paper/main.tex")


def tex(body: str, bib: str = "\\bibliography{refs}", packages: str = "\\usepackage{natbib}") -> str:
    return f"\\documentclass{{article}}\n{packages}\n\\begin{{document}}\n{body}\n{bib}\n\\end{{document}}\n"


def project(files: dict[str, str], root: str = "main.tex") -> Project:
    texts = {ROOT.parent / name: text for name, text in files.items()}
    return build(
        ROOT.parent / root,
        lambda p: latex.scan(texts[p]) if p in texts else None,
        lambda p: bibtex.scan(texts[p]) if p in texts else None,
    )


def embedded(key: str) -> dict[str, str]:
    body = tex(f"\\cite{{{key}}}", "\\bibliography{\\jobname}")
    return {"main.tex": "\\begin{filecontents}{\\jobname.bib}\n" + OK + "\\end{filecontents}\n" + body}


def found(files: dict[str, str], name: str = "main.tex") -> list[tuple[str, str]]:
    check = check_bib if name.endswith(".bib") else check_tex
    return [(f.code.split(".")[1], f.name) for f in check(project(files), ROOT.parent / name)]


UNDEFINED = [("undefined-key", "nokey")]
BL = "\\usepackage{biblatex}\\addbibresource{refs.bib}"


@pytest.mark.parametrize(
    ("silent", "twin"),
    [
        # what is defined in an odd way          # the same with one that is not defined
        ({"main.tex": tex("\\cite{good1}"), "refs.bib": OK}, {"main.tex": tex("\\cite{nokey}"), "refs.bib": OK}),
        (
            {"main.tex": tex("\\cite{old}", "", BL), "refs.bib": OK.replace("year", "ids={old, older}, year")},
            {"main.tex": tex("\\cite{nokey}", "", BL), "refs.bib": OK.replace("year", "ids={old, older}, year")},
        ),
        (
            {"main.tex": tex("\\cite{ref1}", "\\begin{thebibliography}{9}\\bibitem{ref1} R\\end{thebibliography}")},
            {"main.tex": tex("\\cite{nokey}", "\\begin{thebibliography}{9}\\bibitem{ref1} R\\end{thebibliography}")},
        ),
        (
            embedded("good1"),
            embedded("nokey"),
        ),
        ({"main.tex": tex("\\nocite{*}"), "refs.bib": OK}, {"main.tex": tex("\\nocite{nokey}"), "refs.bib": OK}),
        (
            {"main.tex": tex("\\citep{good1,% nokey\n good2}"), "refs.bib": OK + OK2},
            {"main.tex": tex("\\citep{good1,% old\n nokey}"), "refs.bib": OK + OK2},
        ),
        # where a file is missing, it may have the key
        (
            {"main.tex": tex("\\cite{nokey}", "\\bibliography{refs,lost}"), "refs.bib": OK},
            {"main.tex": tex("\\cite{nokey}", "\\bibliography{refs,more}"), "refs.bib": OK, "more.bib": OK2},
        ),
        (
            {"main.tex": tex("\\cite{nokey}\\input{lost}"), "refs.bib": OK},
            {"main.tex": tex("\\cite{nokey}\\input{here}"), "refs.bib": OK, "here.tex": "text"},
        ),
        (
            {"main.tex": tex("\\cite{nokey}\\input{\\folder/x}"), "refs.bib": OK},
            {"main.tex": tex("\\cite{nokey}\\input{here.tex}"), "refs.bib": OK, "here.tex": "text"},
        ),
        (
            {"main.tex": tex("\\verb|\\cite{nokey}| \\begin{verbatim}\\cite{nokey}\\end{verbatim}"), "refs.bib": OK},
            {"main.tex": tex("\\verb|x| \\cite{nokey} \\begin{verbatim}\\end{verbatim}"), "refs.bib": OK},
        ),
        (
            {"main.tex": tex("\\newcommand{\\citeme}[1]{\\cite{#1}}"), "refs.bib": OK},
            {"main.tex": tex("\\newcommand{\\me}[1]{\\cite{nokey}}"), "refs.bib": OK},
        ),
        # BibTeX finds keys whatever their case, biblatex does not
        ({"main.tex": tex("\\cite{GOOD1}"), "refs.bib": OK}, {"main.tex": tex("\\cite{nokey}", "", BL), "refs.bib": OK}),
    ],
)  # fmt: skip
def test_undefined_keys(silent: dict[str, str], twin: dict[str, str]) -> None:
    assert [f for f in found(silent) if f[0] != "missing-file"] == []
    assert found(twin) == UNDEFINED


def test_biblatex_tells_case_apart() -> None:
    assert found({"main.tex": tex("\\cite{GOOD1}", "", BL), "refs.bib": OK}) == [("undefined-key", "GOOD1")]


def test_a_missing_bibliography_is_named_and_a_near_key_is_offered() -> None:
    one = {"main.tex": tex("\\cite{x}", "\\bibliography{lost}")}
    assert found(one) == [("missing-file", "lost")]
    near = check_tex(project({"main.tex": tex("\\cite{good3}"), "refs.bib": OK}), ROOT)
    assert near[0].suggestion == "good1"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("\\ref{a}\\label{a}", []),
        ("\\ref{b}\\label{a}", [("undefined-reference", "b")]),
        ("\\ref{b}\\newcommand{\\l}[1]{\\label{x#1}}", []),
        ("\\ref{in}\\input{part}", []),
        ("\\ref{out}\\input{part}", [("undefined-reference", "out")]),
        ("\\label{a}\\label{a}", [("duplicate-label", "a")] * 2),
        ("\\label{a}% \\label{a}\n", []),
        ("\\label{in}\\input{part}", [("duplicate-label", "in")]),
        ("\\myownref{zzz} \\href{http://x}{y}", []),
    ],
)
def test_labels(body: str, expected: list[tuple[str, str]]) -> None:
    assert found({"main.tex": tex(body), "refs.bib": OK, "part.tex": "\\label{in}"}) == expected


@pytest.mark.parametrize(
    ("bib", "expected"),
    [
        (OK + OK2, []),
        (OK + OK.replace("good1", "Good1"), [("duplicate-key", "good1"), ("duplicate-key", "Good1")]),
        (OK.replace(" journal={ApJ},", ""), [("missing-field", "journal")]),
        (OK.replace("journal={ApJ}", "journaltitle={ApJ}").replace("year=2001", "date={2001-02}"), []),
        (OK.replace(" journal={ApJ},", " eprint={1901.05465},"), []),
        (OK.replace("journal={ApJ}", "journal={}"), [("missing-field", "journal")]),
        (OK.replace(" journal={ApJ},", " crossref={good2},") + OK2, []),
        (OK.replace(" journal={ApJ},", " crossref={gone},"), [("undefined-crossref", "gone")]),
        (OK.replace("ApJ", "arXiv e-prints"), [("preprint", "good1")]),
        ("@misc{m, title={x}}\n", []),
        ("@article{bad, title={x} year=2001, author={A}, journal={B}}\n", [("broken-entry", "bad")]),
        ("@article{bad, title={x, year=2001, author={A}, journal={B}\n\n" + OK, [("broken-entry", "bad")]),
        ("@article{,title={x}, year=2001, author={A}, journal={B}}\n", [("no-key", "")]),
        (
            OK.replace("year", "doi={10.1086/X1}, year")
            + OK2.replace("year", "doi={https://doi.org/10.1086/x1}, year"),
            [("duplicate-paper", "good2")],
        ),
        (OK.replace("year", "doi={10.1086/X1}, year") + OK2.replace("year", "doi={10.1086/x2}, year"), []),
        ('@string{apj = "ApJ"}\n@preamble{"x"}\n@comment{open', []),
    ],
)
def test_bib(bib: str, expected: list[tuple[str, str]]) -> None:
    assert found({"main.tex": tex(""), "refs.bib": bib}, "refs.bib") == expected


def test_the_preprint_hint_says_arxiv() -> None:
    bib = "@article{S, title={F}, journal={arXiv e-prints}, author={S, J}, pages={arXiv:1901.05465}, year={2019}}"
    findings = check_bib(project({"main.tex": tex(""), "refs.bib": bib}), ROOT.parent / "refs.bib")
    assert "arXiv" in findings[0].message
    assert findings[0].severity == "hint"


def test_duplicates_across_files_of_one_manuscript() -> None:
    files = {"main.tex": tex("", "\\bibliography{refs,more}"), "refs.bib": OK, "more.bib": OK}
    assert found(files, "more.bib") == [("duplicate-key", "good1")]


def test_rename_places_include_crossref_and_ids() -> None:
    files = {
        "main.tex": tex("\\cite{good1,old}"),
        "refs.bib": OK.replace("year", "ids={old}, year") + OK2.replace("year", "crossref = {good1}, year"),
    }
    one = project(files)
    assert len(one.citations_of("good1")) == 1
    assert [files["refs.bib"][p.start : p.end] for p in one.crossrefs_of("good1")] == ["good1"]
    alias = one.find("old")[0]
    assert files["refs.bib"][alias.start : alias.end] == "old"


def test_import_folders_and_cycles() -> None:
    files = {
        "main.tex": tex("\\subimport{parts/}{one}\\input{main}"),
        "parts/one.tex": "\\input{two}\\include{three}",
        "parts/two.tex": "\\label{deep}",
        "three.tex": "\\cite{good1}",
        "refs.bib": OK,
    }
    one = project(files)
    assert {p.name for p in one.tex} == {"main.tex", "one.tex", "two.tex", "three.tex"}
    assert not one.missing
