"""The arXiv API: searching and records by id, out of its Atom feed in both shapes that it has had."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.people import inverted
from astroresearch.errors import BadAnswer, InvalidInput
from astroresearch.sources.arxiv_query import Translation, translate
from astroresearch.sources.http import Answer, Http, Request
from astroresearch.sources.xml import XmlRefused, parse_xml

_ATOM = "{http://www.w3.org/2005/Atom}"
_ARXIV = "{http://arxiv.org/schemas/atom}"
_SEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"
SORTS = {"relevance": "relevance", "date": "submittedDate", "citations": "relevance", "reads": "relevance"}
MAX_RESULTS = 2_000

__all__ = ["Arxiv", "Translation", "papers_of", "translate"]


class Arxiv:
    """Client of the arXiv API; raises `ServiceError`'s children, and `InvalidInput` for what arXiv can't read."""

    def __init__(self, http: Http, base_url: str) -> None:
        self._http = http
        self._base = base_url.rstrip("/")

    async def search(self, query: str, *, rows: int = 10, start: int = 0, sort: str = "relevance") -> list[Paper]:
        """Records by *arXiv's* syntax: see `translate` for ADS's."""
        asked = {
            "search_query": query,
            "start": str(start),
            "max_results": str(min(rows, MAX_RESULTS)),
            "sortBy": SORTS.get(sort, "relevance"),
            "sortOrder": "descending",
        }
        return papers_of(await self._ask(asked))

    async def get(self, ids: Sequence[Identifiers]) -> list[Paper]:
        """The records of these arXiv ids that exist, in the order asked; the newest version each."""
        wanted = [one.arxiv for one in ids if one.arxiv]
        if not wanted:
            return []
        answer = await self._ask({"id_list": ",".join(wanted), "max_results": str(len(wanted))})
        found = {paper.identifiers.arxiv: paper for paper in papers_of(answer)}
        return [found[name] for name in wanted if name in found]

    def pdf_url(self, ids: Identifiers) -> str:
        """Where the newest version's PDF is."""
        return f"{self._base}/pdf/{ids.arxiv}"

    async def _ask(self, params: dict[str, str]) -> Answer:
        return await self._http.fetch(
            Request(f"{self._base}/api/query", "arxiv", tuple(params.items()), accept=frozenset({400}))
        )


def papers_of(answer: Answer) -> list[Paper]:
    """The papers of a feed.

    Raises:
        InvalidInput: The feed is an error entry; says what arXiv says.
        BadAnswer: It is no feed, or an empty page of a search that has results.
    """
    try:
        root = parse_xml(answer.body)
    except XmlRefused as error:
        raise BadAnswer(
            f"arXiv answered with something that is not a feed ({error}).",
            source="arxiv",
            url=answer.url,
            status=answer.status,
        ) from None
    if root.tag != f"{_ATOM}feed":
        raise BadAnswer("arXiv answered with something that is not a feed.", source="arxiv", url=answer.url)
    entries = root.findall(f"{_ATOM}entry")
    if entries and "/api/errors" in _text(entries[0], f"{_ATOM}id"):
        raise InvalidInput(f"arXiv can't read this: {_text(entries[0], f'{_ATOM}summary')}.", field="query")
    total, start = _number(root, f"{_SEARCH}totalResults"), _number(root, f"{_SEARCH}startIndex")
    if not entries and total > start:
        raise BadAnswer("arXiv sent an empty page.", source="arxiv", url=answer.url, hint="Try again in a minute.")
    papers = (_paper(entry) for entry in entries)
    return [paper for paper in papers if paper is not None]


def _paper(entry: Element) -> Paper | None:
    ids = identifiers.parse(_text(entry, f"{_ATOM}id"))
    if ids is None or not ids.arxiv:
        return None
    if found := identifiers.parse(_text(entry, f"{_ARXIV}doi")):
        ids = identifiers.union(ids, found)
    published = _text(entry, f"{_ATOM}published")[:10]
    primary = entry.find(f"{_ARXIV}primary_category")
    categories = [tag.get("term", "") for tag in entry.findall(f"{_ATOM}category")]
    return Paper(
        id="",
        title=_text(entry, f"{_ATOM}title"),
        authors=tuple(inverted(_text(author, f"{_ATOM}name")) for author in entry.findall(f"{_ATOM}author")),
        year=int(published[:4]) if published[:4].isdigit() else 0,
        pubdate=published,
        abstract=_text(entry, f"{_ATOM}summary"),
        doctype="eprint",
        identifiers=ids,
        comment=_text(entry, f"{_ARXIV}comment"),
        sources=("arxiv",),
        raw={
            "arxiv": {
                "id": ids.arxiv,
                "version": ids.arxiv_version,
                "primary_category": primary.get("term", "") if primary is not None else "",
                "categories": list(dict.fromkeys(filter(None, categories))),
                "journal_ref": _text(entry, f"{_ARXIV}journal_ref"),
            }
        },
    )


def withdrawn_in(paper: Paper) -> str:
    """`v3` where arXiv's comment or abstract says that this version was withdrawn; else empty."""
    text = f"{paper.comment}\n{paper.abstract}"
    if re.search(
        r"\b(?:this|the) (?:paper|article|submission|manuscript|work|preprint|version|note)\b.{0,60}\bwithdrawn\b",
        text,
        re.I | re.S,
    ):
        return f"v{paper.identifiers.arxiv_version or 1}"
    return f"v{paper.identifiers.arxiv_version or 1}" if re.match(r"\s*withdrawn\b", paper.comment, re.I) else ""


def _text(element: Element, tag: str) -> str:
    return " ".join((element.findtext(tag) or "").split())


def _number(root: Element, tag: str) -> int:
    text = _text(root, tag)
    return int(text) if text.isdigit() else 0
