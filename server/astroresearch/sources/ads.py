"""The ADS API: searching, records by any identifier, references and citations."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from astroresearch.config import Secret
from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.errors import BadAnswer, InvalidInput
from astroresearch.sources.http import Answer, Http, Request

FIELDS = (
    "bibcode,identifier,alternate_bibcode,title,author,year,pubdate,date,pub,pub_raw,bibstem,volume,issue,page,page_range,eid,"
    "abstract,keyword,doctype,doi,arxiv_class,citation_count,pubnote,comment,property,esources,editor,aff,isbn,series,publisher"
)
"What a record holds: enough for the library and for BibTeX as ADS writes it."
_UNKNOWN_TO_SEARCH = ("editor", "series", "publisher")
"Fields of ADS's own exporter that the search API's list does not name."
SEARCH_FIELDS = ",".join(name for name in FIELDS.split(",") if name not in _UNKNOWN_TO_SEARCH)

SORTS: Mapping[str, str] = {
    "relevance": "score desc",
    "date": "date desc",
    "citations": "citation_count desc",
    "reads": "read_count desc",
}
MAX_QUERY = 1_000
"Longer queries are refused by ADS."
MAX_ROWS = 2_000
"More are silently left out by ADS."

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ARXIV_COMMENT = ("comment", "pubnote")


class Ads:
    """Client of the ADS API; all methods raise `ServiceError`'s children and `InvalidInput` for a query ADS can't read."""

    def __init__(self, http: Http, base_url: str, token: Secret) -> None:
        self._http = http
        self._base = base_url.rstrip("/")
        self._token = token

    async def search(self, query: str, *, rows: int = 10, start: int = 0, sort: str = "relevance") -> list[Paper]:
        """Records by ADS's own query syntax; `sort` is a key of `SORTS`."""
        if len(query) > MAX_QUERY:
            raise InvalidInput(f"ADS takes queries of at most {MAX_QUERY} characters.", field="query")
        params = {
            "q": query,
            "fl": SEARCH_FIELDS,
            "rows": str(min(rows, MAX_ROWS)),
            "start": str(start),
            "sort": SORTS.get(sort, SORTS["relevance"]),
        }
        answer = await self._http.fetch(
            Request(
                f"{self._base}/search/query",
                "ADS",
                tuple(params.items()),
                token=self._token,
                accept=frozenset({400}),
            )
        )
        return [paper_of(doc) for doc in documents(answer)]

    async def get(self, ids: Identifiers) -> Paper | None:
        """The record of any of these names, by ADS's `identifier` field, which knows alternates and preprints; None if none."""
        wanted = [ids.bibcode, ids.doi, f"arXiv:{ids.arxiv}" if ids.arxiv else "", *ids.alternates]
        quoted = [f'"{_escaped(name)}"' for name in wanted if name]
        if not quoted:
            return None
        found = await self.search(f"identifier:({' OR '.join(quoted)})", rows=5)
        asked = identifiers.names(ids)
        return next((paper for paper in found if identifiers.names(paper.identifiers) & asked), None)

    async def related(self, bibcode: str, what: Literal["references", "citations"], *, rows: int = 50) -> list[Paper]:
        """The papers that this one cites, or that cite it, most cited first."""
        return await self.search(f'{what}(identifier:"{_escaped(bibcode)}")', rows=rows, sort="citations")


def documents(answer: Answer) -> list[Mapping[str, Any]]:
    """The records of a search answer.

    Raises:
        InvalidInput: ADS can't read the query; says what ADS says.
        BadAnswer: It is no search answer.
    """
    body = answer.json()
    if isinstance(body, Mapping) and answer.status == 400:
        raise InvalidInput(f"ADS can't read this query: {error_text(body)}", field="query")
    docs = body.get("response", {}).get("docs") if isinstance(body, Mapping) else None
    if not isinstance(docs, Sequence):
        raise BadAnswer("ADS answered without records.", source="ADS", url=answer.url, status=answer.status)
    return [doc for doc in docs if isinstance(doc, Mapping)]


def error_text(body: Mapping[str, Any]) -> str:
    """What an error body says: `error` is a string or an object with `msg`."""
    error = body.get("error", "")
    text = str(error.get("msg", "")) if isinstance(error, Mapping) else str(error)
    return re.sub(r"^(?:org\.apache\.[\w.]+:\s*)+", "", text).strip()[:300] or "no reason given"


def paper_of(doc: Mapping[str, Any]) -> Paper:
    """ADS's record as a paper; the record itself is kept in `raw`. Missing and odd fields are left empty, never invented."""
    return Paper(
        id="",
        title=clean(_first(doc.get("title"))),
        authors=tuple(str(name) for name in _many(doc.get("author"))),
        year=int(year) if (year := _first(doc.get("year"))).isdigit() else 0,
        pubdate=_first(doc.get("pubdate")),
        journal=clean(_first(doc.get("pub"))),
        volume=_first(doc.get("volume")),
        issue=_first(doc.get("issue")),
        pages=_first(doc.get("page_range")) or _first(doc.get("page")) or _first(doc.get("eid")),
        abstract=_abstract(_first(doc.get("abstract"))),
        keywords=tuple(dict.fromkeys(str(word) for word in _many(doc.get("keyword")))),
        doctype=_first(doc.get("doctype")),
        identifiers=identifiers_of(doc),
        citation_count=count if isinstance(count := doc.get("citation_count"), int) else None,
        comment=" ".join(clean(str(text)) for name in _ARXIV_COMMENT for text in _many(doc.get(name))),
        sources=("ads",),
        raw=dict(doc),
    )


def identifiers_of(doc: Mapping[str, Any]) -> Identifiers:
    """Canonical bibcode, alternates, DOI and arXiv id out of `identifier` and its relatives."""
    ids = Identifiers(bibcode=_first(doc.get("bibcode")))
    for name in ("doi", "alternate_bibcode", "identifier"):
        for text in _many(doc.get(name)):
            if found := identifiers.parse(str(text)):
                ids = identifiers.union(ids, found)
    main = _first(doc.get("bibcode"))
    if main and ids.bibcode != main:  # ADS says which is canonical
        rest = dict.fromkeys((ids.bibcode, *ids.alternates))
        rest.pop(main, None)
        ids = Identifiers(main, ids.doi, ids.arxiv, ids.arxiv_version, tuple(rest), ids.file_hash)
    return ids


def clean(text: str) -> str:
    """Without ADS's markup (`<SUB>2</SUB>`, `&amp;`)."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def _abstract(text: str) -> str:
    text = clean(text)
    return "" if text.lower() in ("not available", "abstract not available") else text


def _many(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, (list, tuple)) else (value,)


def _first(value: Any) -> str:
    many = _many(value)
    return str(many[0]) if many else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
