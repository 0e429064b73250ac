from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astroresearch.manuscript.bibtex import BibFile, expand, scan, unquote
from astroresearch.manuscript.citations import CitationIndex, names, render

GOOD = "@article{good1, author={Doe, Jane}, title={First title}, journal={ApJ}, year=2001}\n"
PIECES = [
    "@article{k1, title={A}, year=2001}", "@book(k2, title = \"B\")", "@string{a = \"x\"}", "@comment{no @article{c, }}",
    "@article{open, title={A", "{", "}", "\"", "@", ",", "=", "#", "%", "\n", "\r\n", "\r", " ", "key", "\\'e", "@misc{",
    "title = {T}", "(", ")", "\ufeff", "é", "\n@article{k3,\n  author = {X},\n}\n", "\n@article{k4,\n a={b}\n}\n",
]  # fmt: skip
noise = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def keys(text: str) -> list[str]:
    return [entry.key for entry in scan(text).entries]


def shape(file: BibFile) -> list[tuple[int, str, bool]]:
    return [(e.start, e.body.raw, e.body.closed) for e in (*file.entries, *file.specials)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, ["good1"]),
        ("@article{bad1, title={No comma} year=2001, author={X}\n\n" + GOOD, ["bad1", "good1"]),
        ("@article{,\ntitle={A}, year={2010}\n}\n" + GOOD, ["", "good1"]),
        ('@article{q1, title = "The \\"{o} "quoted" thing", year=2001}\n' + GOOD, ["q1", "good1"]),
        ("@article(paren1, author={A (B)}, title={T)}, year=2001)\n" + GOOD, ["paren1", "good1"]),
        ("@article{vCad'ik-2008, title={T}}", ["vCad'ik-2008"]),
        ("@article{2019A&A...622A...2P, title={T}}", ["2019A&A...622A...2P"]),
        ("@article{Planck:2018-VI_a.b, title={T}}", ["Planck:2018-VI_a.b"]),
        ("junk @article{a, t={x}} @book{b, t={y}} junk\n", ["a", "b"]),
        ("% @article{hidden, t={x}}\n" + GOOD, ["good1"]),
        ("@comment{@article{no, t={x}}}\n" + GOOD, ["good1"]),
        (GOOD.replace("\n", "\r") + GOOD.replace("good1", "good2"), ["good1", "good2"]),
        ("\ufeff" + GOOD, ["good1"]),
        ("@article{k\n", ["k"]),
        ("@article{\n", [""]),
        ("", []),
    ],
)
def test_keys_of_odd_files(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@settings(max_examples=300, deadline=None)
@given(st.one_of(noise, st.text(max_size=80)))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    file = scan(text)
    last = 0
    for entry in file.entries:
        assert text[entry.start : entry.end] == entry.body.raw
        start, end = entry.key_range
        assert text[start:end] == entry.key
        assert entry.start >= last
        last = entry.start
        for field in entry.body.fields:
            assert entry.body.raw[field.value_start : field.value_end] == field.raw
        assert entry.body.problems is not None
        assert render(entry, file.strings).reference
    assert file.by_key is not None
    CitationIndex(file.entries).search(text[:10])


@settings(max_examples=200, deadline=None)
@given(noise, noise, noise, st.integers(0, 400), st.integers(0, 60))
def test_a_rescan_is_the_same_as_a_scan(before: str, new: str, filler: str, at: int, length: int) -> None:
    text = "\n".join([before, *(f"@article{{f{i},\n  title = {{T{i}}},\n}}\n" for i in range(750)), filler])
    at = min(len(text), at * (len(text) // 400 + 1))
    changed = text[:at] + new + text[at + length :]
    assert len(changed) > 20_000
    assert shape(scan(changed, scan(text))) == shape(scan(changed))


def test_a_rescan_keeps_what_is_unchanged() -> None:
    text = "".join(f"@article{{f{i},\n  title = {{T{i}}},\n}}\n\n" for i in range(2000))
    old = scan(text)
    place = text.index("{f1000,") + 1
    new = scan(text[:place] + "x" + text[place:], old)
    assert new.entries[1000].key == "xf1000"
    assert new.entries[999].body is old.entries[999].body
    assert new.entries[1999].body is old.entries[1999].body
    assert new.entries[1999].start == old.entries[1999].start + 1


def test_problems_are_named_and_the_next_field_is_read() -> None:
    entry = scan("@article{b, title={No comma} year=2001, junk, author={X}}").entries[0]
    assert [p.text.split(":")[0] for p in entry.body.problems] == [
        "A comma is missing before `year`.",
        "This is no field",
    ]
    assert entry.body.values == {"title": "{No comma}", "year": "2001", "author": "{X}"}
    assert not scan(GOOD).entries[0].body.problems
    assert "never closed" in scan("@article{b, title={x}").entries[0].body.problems[0].text
    early = scan("@article{b, title={x}}, year=2001}\n").entries[0]
    assert early.body.values == {"title": "{x}"}


def test_strings_and_concatenation() -> None:
    text = '@string{base = "Proceedings of "}\n@string{full = base # "the Foo"}\n@inproceedings{k, booktitle=full # " Conference"}'
    file = scan(text)
    assert file.strings["full"] == "Proceedings of the Foo"
    assert render(file.entries[0], file.strings).where == "Proceedings of the Foo Conference"
    assert expand("jan # { 5}", {}) == "January 5"
    assert unquote(" {{A} b} ") == "{A} b"


def test_rendering_makes_latex_plain_and_expands_macros() -> None:
    text = (
        "@ARTICLE{m, author = {{Ivezi{\\'c}}, {\\v{Z}}eljko and {van der Marel}, R. and Jos{\\'e} {\\O}rsted and others},"
        ' title = "{The $\\alpha$ of {LSST} \\& co.}", journal = {\\apj}, volume=5, pages={L1--L3}, year = 2019,'
        " doi={https://doi.org/10.1/a_b}, abstract={We \\textit{see} $5\\,\\%$.}}"
    )
    shown = render(scan(text).entries[0])
    assert shown.authors == ("Ivezić, Željko", "van der Marel, R.", "Ørsted, José", "et al.")
    assert shown.title == "The α of LSST & co."
    assert shown.where == "The Astrophysical Journal, 5, L1–L3"
    assert shown.short == "Ivezić et al. 2019"
    assert shown.abstract == "We see 5 %."


def test_names_split_outside_of_braces_only() -> None:
    assert names("{Rise and Shine Team} and Doe, J.") == ("Rise and Shine Team", "Doe, J.")
    assert names("Jean de la Fontaine") == ("de la Fontaine, Jean",)


def test_aliases_are_keys_too() -> None:
    file = scan("@article{new, ids={oldkey, older}, title={T}}")
    assert file.by_key["older"].key == "new"


@pytest.fixture
def index() -> CitationIndex:
    text = (
        "@article{Ivezic2019, author={{Ivezi{\\'c}}, {\\v Z}. and Kahn, S.}, title={LSST: From Science Drivers}, year=2019}\n"
        "@article{Smith2001, author={Smith, A.}, title={Dwarf galaxies of the Local Group}, year=2001}\n"
        '@article{Muller2005, author={M{\\"u}ller, B.}, title={Dust in dwarf stars}, year=2005}\n'
        "@article{Jones2019, author={Jones, C.}, title={Ivezic diagrams}, year=2019}\n"
    )
    return CitationIndex(scan(text).entries, {"Smith2001": 3})


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Ivez", "Ivezic2019"),
        ("ivezić", "Ivezic2019"),
        ("dwarf 2005", "Muller2005"),
        ("müller", "Muller2005"),
        ("local group", "Smith2001"),
        ("smth2001", "Smith2001"),
        ("galaxeis", "Smith2001"),
        ("", "Smith2001"),
        ("science ivezic", "Ivezic2019"),
        ("jon", "Jones2019"),
    ],
)
def test_one_query_over_key_author_title_year(index: CitationIndex, query: str, first: str) -> None:
    assert index.search(query)[0].key == first


def test_nothing_and_nearest(index: CitationIndex) -> None:
    assert index.search("qqqqqqqq") == []
    assert index.nearest("Smith2002") == "Smith2001"
    assert index.nearest("entirely-else") == ""
