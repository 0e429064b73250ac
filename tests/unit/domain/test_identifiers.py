"""Names of papers as users of other tools report them: recognised, refused, canonical."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astroresearch.domain import identifiers
from astroresearch.domain.identifiers import find_all, from_fields, looks_like, parse, safe_name, union
from astroresearch.domain.paper import Identifiers

SICI = "10.1175/1520-0493(2002)130<1913:EDAWPO>2.0.CO;2"


@pytest.mark.parametrize(
    ("text", "arxiv", "version"),
    [
        ("0710.0994", "0710.0994", 0),
        ("0710.0994v4", "0710.0994", 4),
        (" 0706.0001v1 ", "0706.0001", 1),
        ("1502.05795", "1502.05795", 0),
        ("arXiv:0706.0001v1", "0706.0001", 1),
        ("arxiv: 2110.02957", "2110.02957", 0),
        ("arXiv:0706.0001v1 [q-bio.CB]", "0706.0001", 1),
        ("0706.0001v1 [q-bio.CB]", "0706.0001", 1),
        ("hep-ex/0307015", "hep-ex/0307015", 0),
        ("arXiv:hep-ex/0307015v1", "hep-ex/0307015", 1),
        ("arXiv:hep-ex/0307015v1 [hep-ex]", "hep-ex/0307015", 1),
        ("math.GT/0309136", "math/0309136", 0),
        ("arXiv:math.GT/0309136", "math/0309136", 0),
        ("quant-ph/0112019v1", "quant-ph/0112019", 1),
        ("atom-ph/9601001", "atom-ph/9601001", 0),
        ("https://arxiv.org/abs/cs/0003044", "cs/0003044", 0),
        ("https://arxiv.org/abs/hep-th/9711200", "hep-th/9711200", 0),
        ("https://arxiv.org/abs/0706.0001v1", "0706.0001", 1),
        ("http://arxiv.org/pdf/0706.0001v1.pdf", "0706.0001", 1),
        ("https://arxiv.org/pdf/2104.12255", "2104.12255", 0),
        ("arxiv.org/abs/2104.12255", "2104.12255", 0),
        ("https://export.arxiv.org/abs/2104.12255v2?context=cs", "2104.12255", 2),
        ("https://arxiv.org/pdf/hep-ex/0307015", "hep-ex/0307015", 0),
        ("https://arxiv.org/html/2312.09843v2", "2312.09843", 2),
        ("https://ar5iv.labs.arxiv.org/html/1910.06709", "1910.06709", 0),
        ("https://ar5iv.org/abs/1910.06709", "1910.06709", 0),
        ("http://xxx.lanl.gov/abs/astro-ph/0601001", "astro-ph/0601001", 0),
        ("https://ui.adsabs.harvard.edu/#abs/arXiv:1811.12437", "1811.12437", 0),
        ("https://ui.adsabs.harvard.edu/abs/arXiv:1811.12437/abstract", "1811.12437", 0),
        ("oai:arXiv.org:0706.0001", "0706.0001", 0),
        ("10.48550/arXiv.2104.12255", "2104.12255", 0),
        ("https://doi.org/10.48550/arXiv.2104.12255", "2104.12255", 0),
        ("2016arXiv160902927L", "1609.02927", 0),
        ("2012arXiv1202.3665F", "1202.3665", 0),
        ("1997hep.th...11200M", "hep-th/9711200", 0),
        ("2006astro.ph..1001G", "astro-ph/0601001", 0),
    ],
)
def test_arxiv_ids_in_every_dress(text: str, arxiv: str, version: int) -> None:
    ids = parse(text)
    assert ids is not None
    assert (ids.arxiv, ids.arxiv_version) == (arxiv, version)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "2017/1118", "other stuff 0706.0001v1 end", "0112019", "0112019v1", "1234", "1413.1234", "1502.0579",
        "0706.00011", "9913.12345", "hep-ex/0313015", "nowhere/0307015", "hep-ex/9001001", "astro-ph", "M31", "NGC 1275",
        "10.1/x", "10.1086", "smith2020", "Fabian2011", "2020SomeLongKeyName", "https://example.org/", "3.14159",
        "2018Wthr...73Q..35", "\x00", "10.", "doi:", "arXiv:",
    ],
)  # fmt: skip
def test_what_is_no_identifier(text: str) -> None:
    assert parse(text) is None
    assert looks_like(text) is None


def test_an_old_number_alone_asks_for_its_archive() -> None:
    assert "archive" in identifiers.why_not("0112019")
    assert "quant-ph" not in identifiers.why_not("quant-ph/0112019")
    assert identifiers.why_not("M31") == ""


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1086/670067", "10.1086/670067"),
        ("doi:10.1086/670067", "10.1086/670067"),
        ("DOI: 10.1086/670067", "10.1086/670067"),
        ("https://doi.org/10.1086/670067", "10.1086/670067"),
        ("http://dx.doi.org/10.1086/670067", "10.1086/670067"),
        ("10.1016/0021-9681(87)90171-8", "10.1016/0021-9681(87)90171-8"),
        ("10.3319/TAO.2009.05.25.02(IWNOP)", "10.3319/TAO.2009.05.25.02(IWNOP)"),
        (SICI, SICI),
        ("https://doi.org/" + quote(SICI), SICI),
        ("10.1175/1520-0493(2002)130%3C1913:EDAWPO%3E2.0.CO;2", SICI),
        ("10.1175/1520-0493(2002)130&lt;1913:EDAWPO&gt;2.0.CO;2", SICI),
        (r"10.1007/978-3-319-12345-6\_7", "10.1007/978-3-319-12345-6_7"),
        ("https://iopscience.iop.org/article/10.3847/1538-4357/ab1234/pdf", "10.3847/1538-4357/ab1234"),
        ("https://journals.aps.org/prl/abstract/10.1103/PhysRevLett.120.029901", "10.1103/PhysRevLett.120.029901"),
        (
            "https://www.annualreviews.org/doi/10.1146/annurev-astro-081811-125521?x=1",
            "10.1146/annurev-astro-081811-125521",
        ),
    ],
)
def test_dois_whole_and_bare(text: str, doi: str) -> None:
    ids = parse(text)
    assert ids is not None
    assert ids.doi == doi


@pytest.mark.parametrize(
    "text",
    [
        "2000A&A...361..952H",
        "bibcode:2000A&A...361..952H",
        "https://ui.adsabs.harvard.edu/abs/2000A%26A...361..952H",
        "https://ui.adsabs.harvard.edu/abs/2000A%26A...361..952H/abstract",
        "http://adsabs.harvard.edu/abs/2000A&A...361..952H",
        "https://ui.adsabs.harvard.edu/link_gateway/2000A%26A...361..952H/EPRINT_PDF",
        r"https://ui.adsabs.harvard.edu/abs/2000A\&A...361..952H",
        "https://ui.adsabs.harvard.edu/abs/2000A&amp;A...361..952H",
        'identifier:"2000A&A...361..952H"',
    ],
)
def test_bibcodes_are_decoded_once(text: str) -> None:
    assert parse(text) == Identifiers(bibcode="2000A&A...361..952H")


@pytest.mark.parametrize(
    "code",
    [
        "2018Wthr...73Q..35.", "2018TDM.....5a0201F", "2017PhDT........14C", "2017nova.pres.2388K", "2017ascl.soft06009C",
        "2017yCat.113380453S", "1987gady.book.....B", "2016Natur.535..117H", "1995AJ....109..709A", "2003MNRAS.344L..43F",
    ],
)  # fmt: skip
def test_bibcodes_of_every_doctype(code: str) -> None:
    assert looks_like(code) == ("bibcode" if any(c.isdigit() for c in code[9:18]) else None)


def test_a_sentence_gives_up_its_identifiers_without_its_brackets() -> None:
    text = (
        "Cooling flows (see doi:10.1146/annurev.aa.32.090194.001425), X-rays [10.1016/j.physrep.2005.12.007]; feedback: "
        "arXiv:1204.4114v1 [astro-ph.CO], again 10.1146/ANNUREV.aa.32.090194.001425, 2016Natur.535..117H. Version 0706.0001 of it."
    )
    assert [identifiers.primary(ids) for ids in find_all(text)] == [
        "10.1146/annurev.aa.32.090194.001425",
        "10.1016/j.physrep.2005.12.007",
        "arXiv:1204.4114",
        "2016Natur.535..117H",
    ]


@pytest.mark.parametrize(
    ("fields", "key", "expected"),
    [
        ({"pages": "arXiv:1901.05465", "journal": "arXiv e-prints"}, "k", Identifiers(arxiv="1901.05465")),
        ({"url": "https://ui.adsabs.harvard.edu/#abs/arXiv:1811.12437"}, "k", Identifiers(arxiv="1811.12437")),
        ({"eprint": "0112019", "archivePrefix": "arXiv", "primaryClass": "quant-ph"}, "", Identifiers(arxiv="quant-ph/0112019")),
        ({"eprint": "1706.009", "archivePrefix": "ascl"}, "k", Identifiers()),
        ({"Eprint": "1204.4114v2", "EPRINTTYPE": "arxiv"}, "k", Identifiers(arxiv="1204.4114", arxiv_version=2)),
        ({"adsurl": r"http://adsabs.harvard.edu/abs/2000A\%26A...361..952H"}, "", Identifiers(bibcode="2000A&A...361..952H")),
        ({"doi": "https://doi.org/10.1086/670067", "pages": "306-312"}, "2013PASP..125..306F",
         Identifiers(bibcode="2013PASP..125..306F", doi="10.1086/670067")),
        ({"journal": "preprint (arXiv:astro-ph/0601001)"}, "Gould:06", Identifiers(arxiv="astro-ph/0601001")),
        ({"title": "10.1086/670067", "note": "Erratum: 10.1086/999999"}, "k", Identifiers()),
    ],
)  # fmt: skip
def test_bibtex_fields(fields: dict[str, str], key: str, expected: Identifiers) -> None:
    assert from_fields(fields, key) == expected


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (Identifiers(bibcode="2000A&A...361..952H"), "2000A_A...361..952H"),
        (Identifiers(arxiv="hep-th/9711200"), "hep-th_9711200"),
        (Identifiers(arxiv="1204.4114", arxiv_version=3), "1204.4114"),
        (Identifiers(doi="10.1086/670067"), "doi-10.1086_670067"),
        (Identifiers(file_hash="ab" * 32), "file-" + "ab" * 12),
        (Identifiers(), ""),
    ],
)
def test_file_names(ids: Identifiers, name: str) -> None:
    assert safe_name(ids) == name


def test_preprint_and_published_bibcodes_are_one_paper() -> None:
    both = union(
        Identifiers(bibcode="2012arXiv1202.3665F", arxiv="1202.3665"), Identifiers(bibcode="2013PASP..125..306F")
    )
    assert (both.bibcode, both.alternates) == ("2013PASP..125..306F", ("2012arXiv1202.3665F",))


DOIS = st.from_regex(r"10\.[1-9][0-9]{3,5}/[A-Za-z0-9][A-Za-z0-9./()_-]{0,40}[A-Za-z0-9]", fullmatch=True).filter(
    lambda doi: doi.count("(") == doi.count(")") and "arxiv" not in doi.lower()
)
NEW_IDS = st.builds(
    lambda year, month, number: f"{year:02}{month:02}.{number:05}" if year >= 15 else f"{year:02}{month:02}.{number % 10000:04}",
    st.integers(8, 40), st.integers(1, 12), st.integers(0, 99999),
)  # fmt: skip
OLD_IDS = st.builds(
    lambda archive, year, month, number: f"{archive}/{year % 100:02}{month:02}{number:03}",
    st.sampled_from(["astro-ph", "hep-th", "cs", "math", "cond-mat"]), st.integers(1992, 2006), st.integers(1, 12), st.integers(0, 999),
)  # fmt: skip
BIBCODES = st.builds(
    lambda year, journal, volume, page, letter: f"{year}{journal:.<5}{volume:.>4}.{page:.>4}{letter}",
    st.integers(1850, 2030), st.sampled_from(["ApJ", "A&A", "MNRAS", "Natur", "PhR", "AJ"]), st.integers(1, 9999),
    st.integers(1, 9999), st.sampled_from("ABCXYZ."),
)  # fmt: skip


@given(DOIS)
def test_dois_survive_every_dress(doi: str) -> None:
    for dress in ("{}", "doi:{}", "https://doi.org/{}"):
        ids = parse(dress.format(doi))
        assert ids is not None
        assert ids.doi == doi


@given(st.one_of(NEW_IDS, OLD_IDS), st.integers(0, 30))
def test_arxiv_ids_survive_every_dress(arxiv: str, version: int) -> None:
    name = f"{arxiv}v{version}" if version else arxiv
    for dress in (
        "{}",
        "arXiv:{}",
        "https://arxiv.org/abs/{}",
        "https://arxiv.org/pdf/{}.pdf",
        "http://export.arxiv.org/pdf/{}",
    ):
        assert parse(dress.format(name)) == Identifiers(arxiv=arxiv, arxiv_version=version)
    assert find_all(f"as shown (arXiv:{name}).") == [Identifiers(arxiv=arxiv, arxiv_version=version)]


@given(BIBCODES)
def test_bibcodes_survive_every_dress(code: str) -> None:
    for dress in (
        code,
        f"https://ui.adsabs.harvard.edu/abs/{quote(code)}/abstract",
        f"http://adsabs.harvard.edu/abs/{code}",
    ):
        ids = parse(dress)
        assert ids is not None
        assert ids.bibcode == code


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    parse(text)
    find_all(text)
    from_fields({"doi": text, "eprint": text, "url": text, "pages": text}, text)


@given(st.lists(st.one_of(DOIS.map(lambda d: Identifiers(doi=d.lower())), NEW_IDS.map(lambda a: Identifiers(arxiv=a)),
                          BIBCODES.map(lambda b: Identifiers(bibcode=b))), min_size=2, max_size=8, unique=True))  # fmt: skip
def test_file_names_are_safe_and_differ(many: list[Identifiers]) -> None:
    made = [safe_name(ids) for ids in many]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) and not name.endswith(".") for name in made)
