"""Which records are one paper, and which only look so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.library.merge import join, merge, same_work

ADS = Paper(
    "", "emcee: The MCMC Hammer", ("Foreman-Mackey, Daniel", "Hogg, David W."), 2013, journal="PASP", volume="125", doctype="article",
    identifiers=Identifiers("2013PASP..125..306F", "10.1086/670067", "1202.3665"), sources=("ads",), raw={"bibcode": "x"},
)  # fmt: skip
ARXIV = Paper(
    "", "emcee: The MCMC Hammer", ("Foreman-Mackey, Daniel",), 2012, doctype="eprint", comment="v4",
    identifiers=Identifiers(arxiv="1202.3665", arxiv_version=4), sources=("arxiv",), raw={"arxiv": {"version": 4}},
)  # fmt: skip


def paper(
    title: str, bibcode: str = "", *, arxiv: str = "", doi: str = "", year: int = 2010, doctype: str = "article"
) -> Paper:
    return Paper("", title, ("Smith, J.",), year, doctype=doctype, identifiers=Identifiers(bibcode, doi, arxiv))


def test_a_preprint_and_its_published_version_are_one_paper() -> None:
    (one,) = merge([ARXIV, ADS])
    assert (one.year, one.journal, one.doctype, one.comment) == (2013, "PASP", "article", "v4")
    assert one.identifiers == Identifiers("2013PASP..125..306F", "10.1086/670067", "1202.3665", 4)
    assert set(one.sources) == {"ads", "arxiv"}
    assert one.raw == {"bibcode": "x", "arxiv": {"version": 4}}
    assert len(one.authors) == 2


def test_versions_are_one_record_with_the_newest() -> None:
    old = replace(ARXIV, identifiers=Identifiers(arxiv="1202.3665", arxiv_version=1))
    (one,) = merge([old, ARXIV])
    assert one.identifiers.arxiv_version == 4


def test_what_is_ours_stays_ours() -> None:
    stored = replace(ARXIV, id="1202.3665", state="searchable", file="papers/1202.3665/paper.pdf")
    for one in (join(stored, ADS), join(ADS, stored)):
        assert (one.id, one.state, one.file, one.journal) == ("1202.3665", "searchable", stored.file, "PASP")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (paper("A survey of clusters. Paper I", "2010ApJ...700....1S"), paper("A survey of clusters. Paper II", arxiv="1001.0001")),
        (paper("Dark matter in dwarf galaxies II"), paper("Dark matter in dwarf galaxies III")),
        (paper("The mass of NGC 1275 and its core"), paper("The mass of NGC 1276 and its core")),
        (paper("The mass of the cluster core", "2010ApJ...700....1S"),
         paper("Erratum: The mass of the cluster core", arxiv="1001.0001")),
        (paper("The mass of the cluster core", "2010ApJ...700....1S"),
         paper("The mass of the cluster core", "2010ApJ...710....1S", doctype="erratum")),
        (paper("Optical follow-up of GRB candidates", "2010GCN..9999....1S"),
         paper("Optical follow-up of GRB candidates", "2010GCN..9998....1S")),
        (paper("The mass of the cluster core", doi="10.1086/1"), paper("The mass of the cluster core", doi="10.1086/2")),
        (paper("The mass of the cluster core", arxiv="1001.0001"), paper("The mass of the cluster core", arxiv="1001.0002")),
        (paper("Book reviews"), paper("Book reviews")),
        (paper("The mass of the cluster core", year=2001), paper("The mass of the cluster core", year=2010)),
        (paper("The mass of the cluster core"), replace(paper("The mass of the cluster core"), authors=("Jones, J.",))),
        (paper("The mass of the cluster core"), replace(paper("The mass of the cluster core"), authors=())),
    ],
)  # fmt: skip
def test_what_only_looks_alike_stays_apart(a: Paper, b: Paper) -> None:
    assert not same_work(a, b)
    assert not same_work(b, a)
    assert len(merge([a, b])) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (paper("The Mass of the Cluster Core", "2011ApJ...700....1S", year=2011),
         paper("The mass of the cluster core", arxiv="1001.0001", doctype="eprint")),
        (paper("H<SUB>2</SUB> emission in cooling-flow clusters"), paper("H$_2$ emission in cooling flow clusters")),
        (paper("Molecular gas in Könyves's filaments"), paper("Molecular gas in Konyves's filaments")),
        (paper("x", doi="10.1086/ABC"), paper("y", doi="10.1086/abc")),
    ],
)  # fmt: skip
def test_what_is_the_same_is_joined(a: Paper, b: Paper) -> None:
    assert same_work(a, b)
    assert len(merge([a, b])) == 1


def test_a_record_that_bridges_two_joins_all() -> None:
    a = paper("First title of it all", "2010ApJ...700....1S")
    b = paper("Other title of it all", doi="10.1086/1")
    bridge = paper("Third", "2010ApJ...700....1S", doi="10.1086/1")
    assert len(merge([a, b, bridge])) == 1


PAPERS = st.builds(
    lambda bibcode, arxiv, title, year: paper(title, bibcode, arxiv=arxiv, year=year),
    st.sampled_from(["", "2010ApJ...700....1S", "2010ApJ...700....2S"]),
    st.sampled_from(["", "1001.0001", "1001.0002"]),
    st.sampled_from(["The mass of the core I", "The mass of the core II", "On shocks and ripples"]),
    st.integers(2009, 2011),
)


@given(st.lists(PAPERS, max_size=8))
def test_merging_twice_changes_nothing_and_loses_no_name(papers: list[Paper]) -> None:
    once = merge(papers)
    assert merge(once) == once
    have = {code for one in once for code in (one.identifiers.bibcode, *one.identifiers.alternates) if code}
    assert have == {one.identifiers.bibcode for one in papers if one.identifiers.bibcode}
