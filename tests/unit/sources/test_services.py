"""The clients against servers on loopback: what they ask, and what they make of the answers."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from astroresearch.config import Secret
from astroresearch.demo.standin import TOKEN, Standin
from astroresearch.domain import identifiers
from astroresearch.errors import AuthFailed, BadAnswer, InvalidInput, NotFound, RateLimited, Unreachable
from astroresearch.sources.ads import Ads
from astroresearch.sources.arxiv import Arxiv
from astroresearch.sources.arxiv_query import translate
from astroresearch.sources.cds import Cds
from astroresearch.sources.guard import loopback_pairs
from astroresearch.sources.http import Http
from tests.fakes.faulty import Faulty, http


@pytest.mark.parametrize(
    ("ads", "arxiv", "lost"),
    [
        ("cooling flows", "all:cooling AND all:flows", ()),
        ('author:"Fabian, A. C." year:2000-2005', "au:Fabian_A AND submittedDate:[200001010000 TO 200512312359]", ()),
        ('abs:"cooling flow"', '(ti:"cooling flow" OR abs:"cooling flow")', ()),
        ('title:(M87 OR "NGC 1275") -author:Smith', '(ti:M87 OR ti:"NGC 1275") ANDNOT au:Smith', ()),
        ("title:a OR title:b AND title:c", "ti:a OR (ti:b AND ti:c)", ()),
        ("^Fabian flows", "au:Fabian AND all:flows", ("that the author comes first",)),
        ("citations(author:x) flows", "all:flows", ("`citations(…)`",)),
        ("property:refereed flows", "all:flows", ("`property:`",)),
        ("bibstem:ApJ year:2011", "", ("`bibstem:`",)),
        ("pubdate:[2005-10 TO 2006-02] x1", "submittedDate:[200510010000 TO 200602282359] AND all:x1", ()),
        ("-foo", "", ("a search for what something is not",)),
        ("", "", ()),
    ],
)
def test_ads_syntax_in_arxivs(ads: str, arxiv: str, lost: tuple[str, ...]) -> None:
    said = translate(ads)
    assert (said.query.removeprefix("(").removesuffix(")") if arxiv.startswith("(ti:\"cool") else said.query, said.lost) in [
        (arxiv, lost), (arxiv.removeprefix("(").removesuffix(")"), lost)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "query", ["((((", "))))", '"open', "a:b:c:[", "NOT NOT", "(" * 5000, "year:[x TO y]", "-", "= ^ + -"]
)
def test_no_query_breaks_the_translation(query: str) -> None:
    translate(query)


async def test_ads_is_asked_with_fields_and_token() -> None:
    async with Faulty() as server, Http([server.pair]) as client:
        body = json.dumps({"response": {"docs": [{"bibcode": "2016Natur.535..117H", "title": ["T"]}]}}).encode()
        server.routes["/v1/search/query"] = http(200, body)
        ads = Ads(client, server.url("/v1"), Secret("canary"))
        (paper,) = await ads.search("perseus", rows=5000, sort="citations")
        assert await ads.get(identifiers.Identifiers(bibcode="2016Natur.535..117H"))
        assert await ads.get(identifiers.Identifiers(bibcode="2016arXiv160704487H")) is None
    assert paper.identifiers.bibcode == "2016Natur.535..117H"
    asked = [parse_qs(urlsplit(target).query) for target in server.targets]
    assert asked[0]["sort"] == ["citation_count desc"]
    assert asked[0]["rows"] == ["2000"]
    assert {"bibcode", "identifier", "bibstem", "arxiv_class"} <= set(asked[0]["fl"][0].split(","))
    assert asked[1]["q"] == ['identifier:("2016Natur.535..117H")']
    assert server.headers["/v1/search/query"]["authorization"] == "Bearer canary"
    assert "canary" not in "".join(server.targets)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (http(401, b'{"error": "Unauthorized"}'), AuthFailed),
        (http(400, b'{"error": {"code": 400, "msg": "org.apache.solr.search.SyntaxError: bad"}}'), InvalidInput),
        (http(429, b'{"error": "Too many requests"}'), RateLimited),
        (http(405, b'{"error": "Method not allowed"}'), BadAnswer),
        (http(200, b"<html>"), BadAnswer),
    ],
)
async def test_ads_errors_are_typed(reply: bytes, error: type[Exception]) -> None:
    async with Faulty() as server, Http([server.pair]) as client:
        server.routes["/v1/search/query"] = reply
        with pytest.raises(error):
            await Ads(client, server.url("/v1"), Secret("canary")).search("x")


async def test_the_standin_answers_as_the_services_do() -> None:
    async with Standin() as standin, Http(loopback_pairs(standin.urls.values())) as client:
        urls = standin.urls
        ads = Ads(client, urls["ASTRORESEARCH_ADS_URL"], Secret(TOKEN))
        arxiv = Arxiv(client, urls["ASTRORESEARCH_ARXIV_URL"])
        assert "2012ARA&A..50..455F" in [
            p.identifiers.bibcode for p in await ads.search('abs:"AGN feedback" year:2011-2013')
        ]
        ids = identifiers.parse("arXiv:1204.4114")
        assert ids is not None
        record = await ads.get(ids)
        (preprint,) = await arxiv.get([ids])
        assert record is not None
        assert record.identifiers.doi == preprint.identifiers.doi == "10.1146/annurev-astro-081811-125521"
        with pytest.raises(AuthFailed):
            await Ads(client, urls["ASTRORESEARCH_ADS_URL"], Secret("wrong")).search("x")
        with pytest.raises(InvalidInput):
            await arxiv.get([identifiers.Identifiers(arxiv="abc")])


async def test_objects_come_from_sesame_with_simbads_extras() -> None:
    async with Standin() as standin, Http(loopback_pairs(standin.urls.values())) as client:
        cds = Cds(client, standin.urls["ASTRORESEARCH_SESAME_URL"], standin.urls["ASTRORESEARCH_SIMBAD_URL"])
        perseus = await cds.resolve("perseus   cluster")
        assert (perseus.name, perseus.object_type, perseus.redshift) == ("ACO 426", "ClG", 0.0179)
        assert perseus.fetched
        with pytest.raises(NotFound, match="SIMBAD, NED and VizieR"):
            await cds.resolve("IC 12000")
        with pytest.raises(InvalidInput):
            await cds.resolve("  ")


async def test_names_are_quoted_and_simbads_failure_loses_nothing() -> None:
    async with Faulty() as server, Http([server.pair]) as client:
        body = b"# x\n#=S=Simbad:    1     0ms\n%@ 1\n%I.0 NAME A+B & C\n%J 1.5 -2.5 = \n"
        server.routes["/sesame/-oI/SNV"] = http(200, body)
        target = await Cds(client, server.url("/sesame"), server.url("/sim-tap")).resolve("A+B & C'")
        assert (target.ra_deg, target.dec_deg) == (1.5, -2.5)
        assert server.targets[0] == "/sesame/-oI/SNV?A%2BB%20%26%20C%27"
        assert unquote(server.targets[0]).endswith("?A+B & C'")


async def test_a_resolver_out_of_reach_is_said() -> None:
    async with Faulty() as server, Http([server.pair]) as client:
        server.routes["/sesame/-oI/SNV"] = http(500)
        with pytest.raises(Unreachable):
            await Cds(client, server.url("/sesame"), server.url("/x")).resolve("M 31")
