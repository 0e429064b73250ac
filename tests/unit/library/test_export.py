"""BibTeX as ADS writes it, and honest entries where ADS has no record."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import bibtexparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.library.export import bibtex, cite_keys
from astroresearch.library.latex import encode, encode_name
from astroresearch.sources.ads import paper_of

PAIRS = [
    ("solr_data", "bibTexTest_data"),
    ("solr_data_17", "bibTexTest_data_publisher"),
    ("solr_data_software", "bibTexTest_data_software"),
    ("solr_data_4", "bibTexTest_data_techreport_without_publisher"),
    ("solr_data_4_publisher", "bibTexTest_data_techreport_with_publisher"),
]
MEANT = {
    "2020EPJC...80...96D": (
        "10.1140/epjc/s10052-020-7683-610.48550/arXiv.1912.06970",
        "10.1140/epjc/s10052-020-7683-6",
    ),
    "2018scrp.conf.....K": ("Morgan & Claypool", r"Morgan \& Claypool"),
}
"Where we differ from ADS's exporter on purpose: see the module's docstring."


@pytest.mark.parametrize(("documents", "export"), PAIRS)
def test_entries_are_adss_byte_for_byte(shared: Path, documents: str, export: str) -> None:
    folder = shared / "recorded" / "ads_export"
    text = json.loads((folder / f"{export}.json").read_text("utf-8"))["export"]
    wanted = {entry.split("{")[1].split(",")[0]: "@" + entry.strip() for entry in ("\n" + text).split("\n@")[1:]}
    for doc in json.loads((folder / f"{documents}.json").read_text("utf-8"))["response"]["docs"]:
        theirs, ours = MEANT.get(doc["bibcode"], ("", ""))
        assert bibtex([paper_of(doc)]).strip() == wanted[doc["bibcode"]].replace(theirs, ours)


def test_a_record_of_arxiv_invents_nothing() -> None:
    paper = Paper(
        "1204.4114", "Observational Evidence of AGN Feedback", ("Fabian, A. C.",), 2012, doctype="eprint", pubdate="2012-00-00",
        identifiers=Identifiers(arxiv="1204.4114", arxiv_version=1), sources=("arxiv",),
        raw={"arxiv": {"primary_category": "astro-ph.CO"}},
    )  # fmt: skip
    text = bibtex([paper], keys="author_year")
    assert text.startswith("@ARTICLE{Fabian2012,\n       author = {{Fabian}, A.~C.},\n")
    assert "eprint = {1204.4114}" in text
    assert "primaryClass = {astro-ph.CO}" in text
    for never in ("month", "volume", "adsurl", "adsnote", "doi"):
        assert never not in text


def test_an_imported_file_has_only_what_is_known() -> None:
    text = bibtex(
        [Paper("file-1", "Notes on shocks", identifiers=Identifiers(file_hash="ab" * 32))], keys="author_year"
    )
    assert text == '@MISC{file-abababababababababababab,\n        title = "{Notes on shocks}"\n}\n\n'


@pytest.mark.parametrize(
    ("author", "key"),
    [
        ("Könyves, V.", "Konyves2020"),
        ("André, P.", "Andre2020"),
        ("Lévesque, E. M.", "Levesque2020"),
        (r"L{\'e}vesque, E. M.", "Levesque2020"),
        (r"Le{\c c}on, X.", "Lecon2020"),
        ("Planck Collaboration", "PlanckCollaboration2020"),
        ("{Planck Collaboration}", "PlanckCollaboration2020"),
        ("The X Collaboration: L. Adleman", "XCollaboration2020"),
        ("Open Science Collaboration", "OpenScienceCollaboration2020"),
        ("van Dokkum, P.", "vanDokkum2020"),
    ],
)
def test_keys_are_ascii_and_collaborations_one_name(author: str, key: str) -> None:
    assert cite_keys([Paper("", "T", (author,), 2020)], "author_year") == [key]


def test_letters_tell_the_same_author_and_year_apart() -> None:
    papers = [Paper("", title, ("Fabian, A. C.",), 2012) for title in "xyz"]
    other = Paper("", "w", ("Smith, J.",), 2012)
    assert cite_keys([*papers, other], "author_year", taken=["Fabian2012b", "Smith2012"]) == [
        "Fabian2012a", "Fabian2012c", "Fabian2012d", "Smith2012a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("Gas & dust_1 #2 at 5%", r"Gas \& dust\_1 \#2 at 5\%"),
        ("H<SUB>2</SUB> and 10<SUP>5</SUP> K", "H$_{2}$ and 10$^{5}$ K"),
        ("$\\alpha_1$ & more", "$\\alpha_1$ \\& more"),
        ("Astrofísica – a", r"Astrof{\'\i}sica {\textendash} a"),
        ("open { brace", "open  brace"),
        ("costs $5", r"costs \$5"),
    ],
)
def test_text_is_escaped(text: str, latex: str) -> None:
    assert encode(text) == latex


def test_names_keep_initials_together() -> None:
    assert encode_name("Vergani, S. D.") == "{Vergani}, S.~D."
    assert encode_name("Krühler, T.") == r"{Kr{\"u}hler}, T."


@given(st.text(max_size=60), st.text(max_size=30), st.text(max_size=20))
def test_any_text_gives_one_entry_that_parses(title: str, author: str, journal: str) -> None:
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    paper = Paper("p", title or "t", (author,), 2020, journal=journal, identifiers=Identifiers(arxiv="1204.4114"))
    library = bibtexparser.parse_string(bibtex([paper, Paper("q", "Next")], keys="author_year"))
    assert len(library.entries) == 2
