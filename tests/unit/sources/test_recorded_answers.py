"""Every recorded answer of the services becomes records, or a typed error that says what the service said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from astroresearch.domain.paper import Identifiers
from astroresearch.errors import BadAnswer, InvalidInput
from astroresearch.sources import sesame
from astroresearch.sources.ads import documents, error_text, identifiers_of, paper_of
from astroresearch.sources.arxiv import papers_of, withdrawn_in
from astroresearch.sources.http import Answer
from astroresearch.sources.xml import XmlRefused, parse_xml


def answer(body: bytes, status: int = 200) -> Answer:
    return Answer(status, {}, body, "https://example.org/", "svc")


def feed(shared: Path, name: str) -> Answer:
    (path,) = (shared / "recorded" / "arxiv_atom").glob(f"{name}*.xml")
    return answer(path.read_bytes())


def test_every_recorded_feed_is_read(shared: Path) -> None:
    files = sorted((shared / "recorded" / "arxiv_atom").glob("*.xml"))
    assert files
    for path in files:
        if "id_abc" in path.name:
            continue
        for paper in papers_of(answer(path.read_bytes())):
            assert paper.title
            assert paper.authors
            assert paper.year > 1990
            assert paper.identifiers.arxiv
            assert paper.identifiers.arxiv_version >= 1


def test_an_old_id_keeps_its_archive(shared: Path) -> None:
    (paper,) = papers_of(feed(shared, "id_astro-ph_0601001"))
    assert paper.identifiers == Identifiers(arxiv="astro-ph/0601001", arxiv_version=1)
    assert paper.authors[:2] == ("Gould, Andrew", "Dorsher, Susan")
    assert (paper.pubdate, paper.doctype, paper.sources) == ("2006-01-02", "eprint", ("arxiv",))
    assert "Acta" in paper.comment


def test_one_unknown_id_of_two_leaves_the_known_one(shared: Path) -> None:
    (paper,) = papers_of(feed(shared, "id_0808.05394_1707"))
    assert paper.identifiers.arxiv == "1707.08567"
    assert "de With, Peter H. N." in paper.authors


@pytest.mark.parametrize("name", ["id_0000.0000", "id_0808.05394_s0"])
def test_unknown_ids_are_an_empty_answer(shared: Path, name: str) -> None:
    assert papers_of(feed(shared, name)) == []


def test_an_error_entry_is_said(shared: Path) -> None:
    with pytest.raises(InvalidInput, match="incorrect id format for abc"):
        papers_of(feed(shared, "id_abc"))


@pytest.mark.parametrize(
    "body", [b"", b"<html>Rate exceeded</html>", b"Rate exceeded.", b"<feed><entry></feed>", b"\xff\xfe"]
)
def test_what_is_no_feed(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        papers_of(answer(body))


def test_an_empty_page_of_a_full_search_is_no_empty_search() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:o="http://a9.com/-/spec/opensearch/1.1/">
    <o:totalResults>214</o:totalResults><o:startIndex>100</o:startIndex></feed>"""
    with pytest.raises(BadAnswer, match="empty page"):
        papers_of(answer(body))


def test_xml_with_entities_is_refused() -> None:
    bomb = b'<!DOCTYPE f [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><feed>&b;</feed>'
    outside = b'<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed>&x;</feed>'
    for body in (bomb, outside):
        with pytest.raises(XmlRefused):
            parse_xml(body)


def test_the_recorded_ads_record(shared: Path) -> None:
    paper = paper_of(json.loads((shared / "recorded/ads_search/adsabs-rs_emcee.json").read_text("utf-8")))
    assert paper.title == "emcee: The MCMC Hammer"
    assert paper.identifiers == Identifiers(
        "2013PASP..125..306F", "10.1086/670067", "1202.3665", 0, ("2012arXiv1202.3665F",)
    )
    assert (paper.year, paper.volume, paper.pages, paper.citation_count) == (2013, "125", "306", 5299)
    assert "<SUP>" not in paper.abstract
    assert "&amp;" not in paper.abstract
    assert paper.raw["issn"] == ["0004-6280"]


def test_the_recorded_ads_search(shared: Path) -> None:
    docs = documents(answer((shared / "recorded/ads_search/astroquery_test_text.json").read_bytes()))
    assert [paper_of(doc).identifiers.bibcode for doc in docs] == ["2011IAUS..280P.295P"]


def test_all_exporter_documents_become_papers(shared: Path) -> None:
    for path in sorted((shared / "recorded" / "ads_export").glob("solr_data*.json")):
        for doc in json.loads(path.read_text("utf-8")).get("response", {}).get("docs", []):
            paper = paper_of(doc)
            assert paper.identifiers.bibcode == doc.get("bibcode", "")


def test_every_recorded_error_body_has_its_sentence(shared: Path) -> None:
    for path in sorted((shared / "recorded" / "ads_errors").glob("*.json")):
        assert error_text(json.loads(path.read_text("utf-8"))) not in ("", "no reason given")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": "Malformed request"}', "Malformed request"),
        (b'{"error": {"code": 400, "msg": "org.apache.solr.search.SyntaxError: Cannot parse x"}}', ": Cannot parse x"),
        (b"{}", "no reason given"),
    ],
)
def test_errors_are_objects_or_strings(body: bytes, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        documents(answer(body, 400))
    assert caught.value.message.endswith(said)


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"response": {}}', b'"x"', b"<html></html>", b"[" * 100_000])
def test_no_search_answer_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        documents(answer(body))


def test_the_canonical_bibcode_is_the_one_ads_names() -> None:
    doc = {"bibcode": "2018ASPC..512...45A", "identifier": ["2017ASPC..512...45A", "arXiv:1601.07858"]}
    ids = identifiers_of(doc)
    assert (ids.bibcode, ids.arxiv, ids.alternates) == ("2018ASPC..512...45A", "1601.07858", ("2017ASPC..512...45A",))


def test_a_withdrawn_paper_is_known_by_its_comment() -> None:
    entry = b"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"><entry>
    <id>http://arxiv.org/abs/1802.09703v3</id><title>T</title><published>2018-02-27T00:00:00Z</published>
    <arxiv:comment>This paper has been withdrawn by the author due to an error</arxiv:comment></entry></feed>"""
    (paper,) = papers_of(answer(entry))
    assert withdrawn_in(paper) == "v3"


def test_recorded_resolver_answers(shared: Path) -> None:
    folder = shared / "recorded" / "sesame"

    def target(name: str) -> sesame.SesameAnswer:
        return sesame.parse((folder / name).read_text("utf-8"), "q")

    castor = target("astropy_castor_all.txt").target
    assert castor is not None
    assert (castor.name, castor.resolver, castor.object_type) == ("* alf Gem", "Simbad", "**")
    assert (castor.ra_deg, castor.dec_deg) == (113.64947164, 31.888282216)
    assert castor.proper_motion_mas_yr == (-191.45, -145.19)
    assert (castor.parallax_mas, castor.velocity_km_s, castor.spectral_type, castor.references) == (
        64.12,
        5.4,
        "A1V+A2Vm",
        260,
    )
    vizier = target("astropy_ngc3642_vizier.txt").target
    assert vizier is not None
    assert (vizier.name, vizier.resolver, vizier.ra_deg) == ("NGC 3642", "VizieR", 170.56)
    ned = target("legacysurvey_IC1200_ned.txt").target
    assert ned is not None
    assert (ned.name, ned.resolver, ned.morphology, ned.magnitudes) == ("NGC 6079", "NED", "E", (("mag", 13.74),))
    xml = target("ic434_simbad_2008.xml").target
    assert xml is not None
    assert (xml.name, xml.object_type, xml.ra_deg, xml.dec_deg, xml.references) == ("IC 434", "HII", 85.25, -2.5, 37)
    assert target("legacysurvey_IC12000_notfound.txt").target is None
    assert target("saao_HIP123456_notfound.xml").target is None


def test_a_resolver_that_could_not_be_asked_is_named() -> None:
    text = "# x\n#!N=NED : *** Could not access the server ***\n#! *** Nothing found *** \n"
    assert sesame.parse(text, "x") == sesame.SesameAnswer(None, ("NED",))


@pytest.mark.parametrize("text", ["", "<html>busy</html>", "<Sesame><Target></Sesame>", "{}"])
def test_what_sesame_never_says(text: str) -> None:
    with pytest.raises(BadAnswer):
        sesame.parse(text, "x")


def test_recorded_simbad_tables_are_what_pyvo_reads(shared: Path) -> None:
    for path in sorted((shared / "recorded" / "simbad_tap_votable").glob("*.xml")):
        assert parse_xml(path.read_bytes()).tag.endswith("}VOTABLE")
