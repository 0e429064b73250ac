"""ADS, arXiv, Sesame and SIMBAD for the demo: a real HTTP server on this machine, with a few real papers and objects.

It answers in the services' documented formats, so that what the demo shows is what the real services' answers would go through.
It serves no PDF: the publications are not ours to hand out.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from astroresearch.demo.sky import PAPERS, SkyObject, find_object
from astroresearch.domain import identifiers
from astroresearch.domain.paper import Identifiers

TOKEN = "demo"
"""The stand-in wants a token as ADS does; any will do."""

_STOP = frozenset(
    ["a", "all", "an", "and", "andnot", "by", "for", "from", "in", "is", "not", "of", "on", "or", "the", "to", "with"]
)
_MAX_BODY = 1 << 20

Reply = tuple[int, str, str]
"Status, content type, body."


class Standin:
    """`async with Standin() as s:`; `s.urls` holds the environment variables that point AstroResearch at it."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._base = ""
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def urls(self) -> Mapping[str, str]:
        """ASTRORESEARCH_{ADS,ARXIV,SESAME,SIMBAD}_URL; loopback only."""
        return {
            "ASTRORESEARCH_ADS_URL": f"{self._base}/v1",
            "ASTRORESEARCH_ARXIV_URL": self._base,
            "ASTRORESEARCH_SESAME_URL": f"{self._base}/sesame",
            "ASTRORESEARCH_SIMBAD_URL": f"{self._base}/sim-tap",
        }

    @property
    def env(self) -> Mapping[str, str]:
        """`urls`, and a token that the stand-in takes."""
        return {**self.urls, "ADS_API_TOKEN": TOKEN}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._base = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._open.values():
                writer.transport.abort()
            await asyncio.gather(*self._open, return_exceptions=True)
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                size = int(length) if (length := headers.get("content-length", "0")).isdigit() else 0
                body = await reader.readexactly(min(size, _MAX_BODY))
                status, kind, text = _answer(head[0].split(" ")[1], headers, body)
                data = text.encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                    + data
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError):
            pass  # the client went away, or speaks something else
        finally:
            self._open.pop(task, None)
            writer.close()


def _answer(target: str, headers: Mapping[str, str], body: bytes) -> Reply:
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if parts.path == "/v1/search/query":
        return _ads(query, headers)
    if parts.path == "/api/query":
        return _arxiv(query)
    if parts.path.startswith("/sesame/"):
        return _sesame(unquote(parts.query))
    if parts.path == "/sim-tap/sync":
        return _simbad({name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()})
    if parts.path.startswith("/pdf/"):
        return 404, "text/plain", "The demo's stand-in serves no papers; arXiv has this one.\n"
    return 404, "application/json", '{"error": "Not found"}'


def _ads(query: Mapping[str, str], headers: Mapping[str, str]) -> Reply:
    if headers.get("authorization", "").removeprefix("Bearer").strip() != TOKEN:
        return 401, "application/json", '{"error": "Unauthorized"}'
    found = _matching(query.get("q", ""))
    if query.get("sort", "").startswith("date"):
        found.sort(key=lambda record: str(record["date"]), reverse=True)
    start, rows = _number(query.get("start"), 0), _number(query.get("rows"), 10)
    fields = set(query.get("fl", "id").split(","))
    docs = [{name: value for name, value in record.items() if name in fields} for record in found[start : start + rows]]
    answer = {
        "responseHeader": {"status": 0, "QTime": 1, "params": dict(query)},
        "response": {"numFound": len(found), "start": start, "docs": docs},
    }
    return 200, "application/json", json.dumps(answer)


def _arxiv(query: Mapping[str, str]) -> Reply:
    known = [record for record in PAPERS if _ids(record).arxiv]
    if wanted := query.get("id_list"):
        names = [identifiers.parse(name) for name in wanted.split(",")]
        if None in names:
            return 400, "application/atom+xml", _feed([_error_entry(wanted)], 1, 0)
        asked = {ids.arxiv for ids in names if ids}
        found = [record for record in known if _ids(record).arxiv in asked]
    else:
        found = [record for record in _matching(query.get("search_query", "")) if record in known]
    start, rows = _number(query.get("start"), 0), _number(query.get("max_results"), 10)
    return 200, "application/atom+xml", _feed(map(_entry, found[start : start + rows]), len(found), start)


def _sesame(name: str) -> Reply:
    found = find_object(name)
    lines = [f"# {name}\t#Q0"]
    if found is None:
        lines.append("#! *** Nothing found *** ")
    else:
        lines += [
            "#=Si=Simbad, all IDs (demo's stand-in):    1     0ms",
            "%@ 0",
            f"%I.0 {found.name}",
            f"%C.0 {found.kind}",
        ]
        lines += [f"%J {found.ra_deg:.6f} {found.dec_deg:+.6f} = {found.sexagesimal}", f"%V z {found.redshift}"]
        lines += [f"%I {alias}" for alias in found.aliases]
    return 200, "text/plain", "\n".join([*lines, "", "#====Done===="]) + "\n"


def _simbad(form: Mapping[str, str]) -> Reply:
    adql = form.get("QUERY", "")
    columns = [name.strip() for name in re.sub(r"(?is)^\s*select\s+|\s+from\s.*$", "", adql).split(",")]
    match = re.search(r"\bid = '((?:[^']|'')*)'", adql)
    found = find_object(match.group(1).replace("''", "'")) if match else None
    return 200, "application/x-votable+xml", _votable(columns, found)


def _matching(query: str) -> list[Mapping[str, Any]]:
    """Papers that hold words of the query, those with more of them first; an identifier finds its paper only."""
    if named := identifiers.find_all(query) or [ids for ids in [identifiers.parse(query)] if ids]:
        asked = frozenset[str]().union(*(identifiers.names(ids) for ids in named))
        return [record for record in PAPERS if identifiers.names(_ids(record)) & asked]
    first, last = _years(query)
    words = set(re.findall(r"[^\W_]+", re.sub(r"\w+:\[[^\]]*\]|\byear:\S+|\b\w+:", " ", query).casefold()))
    words = {word for word in words - _STOP if len(word) > 1}
    scored = []
    for record in PAPERS:
        text = " ".join([*record["title"], *record["author"], record["bibcode"], record["_words"]]).casefold()
        score = len(words & set(re.findall(r"[^\W_]+", text)))
        if score and first <= int(record["year"]) <= last:
            scored.append((score, record))
    return [record for _, record in sorted(scored, key=lambda pair: -pair[0])]


def _years(query: str) -> tuple[int, int]:
    match = re.search(r"(?:year:|submittedDate:\[|pubdate:\[)\s*(\d{4})[\d-]*?(?:(?:-| TO )(\d{4})\d*)?(?=\D|$)", query)
    if match is None:
        return 0, 9999
    return int(match.group(1)), int(match.group(2) or match.group(1))


def _ids(record: Mapping[str, Any]) -> Identifiers:
    return identifiers.merge_all(filter(None, map(identifiers.parse, record["identifier"])))


def _feed(entries: Iterable[str], total: int, start: int) -> str:
    return (
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        '<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" '
        'xmlns="http://www.w3.org/2005/Atom">\n  <id>https://arxiv.org/api/stand-in</id>\n  <title>arXiv Query</title>\n'
        f"  <opensearch:totalResults>{total}</opensearch:totalResults>\n  <opensearch:startIndex>{start}</opensearch:startIndex>\n"
        f"{''.join(entries)}</feed>\n"
    )


def _entry(record: Mapping[str, Any]) -> str:
    ids = _ids(record)
    authors = "".join(f"    <author><name>{escape(_spoken(name))}</name></author>\n" for name in record["author"])
    return (
        f"  <entry>\n    <id>http://arxiv.org/abs/{ids.arxiv}v1</id>\n    <title>{escape(record['title'][0])}</title>\n"
        f"    <summary></summary>\n    <published>{_month(ids.arxiv)}T00:00:00Z</published>\n"
        f"    <arxiv:doi>{escape(ids.doi)}</arxiv:doi>\n"
        f'    <arxiv:primary_category term="astro-ph"/>\n{authors}  </entry>\n'
    )


def _month(arxiv: str) -> str:
    """The month in which an arXiv id was given."""
    digits = arxiv.rpartition("/")[2]
    return f"{'19' if digits[0] == '9' else '20'}{digits[:2]}-{digits[2:4]}-01"


def _error_entry(what: str) -> str:
    return (
        f"  <entry>\n    <id>https://arxiv.org/api/errors#incorrect_id_format</id>\n    <title>Error</title>\n"
        f"    <summary>incorrect id format for {escape(what)}</summary>\n  </entry>\n"
    )


def _spoken(name: str) -> str:
    """`Fabian, A. C.` → `A. C. Fabian`, as arXiv writes names."""
    last, *rest = name.split(", ")
    return " ".join([*rest[:1], last, *rest[1:]])


def _votable(columns: Iterable[str], found: SkyObject | None) -> str:
    values: dict[str, Callable[[SkyObject], str]] = {
        "main_id": lambda one: one.name,
        "otype": lambda one: one.kind,
        "ra": lambda one: str(one.ra_deg),
        "dec": lambda one: str(one.dec_deg),
        "rvz_redshift": lambda one: str(one.redshift),
    }
    names = list(columns)
    fields = "".join(
        f'<FIELD name="{escape(name)}" '
        + ('datatype="double"/>' if name in _NUMBERS else 'datatype="char" arraysize="*"/>')
        for name in names
    )
    cells = (
        "".join(f"<TD>{escape(values[name](found)) if name in values else ''}</TD>" for name in names) if found else ""
    )
    rows = f"<TR>{cells}</TR>" if found else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">'
        f'<RESOURCE type="results"><INFO name="QUERY_STATUS" value="OK"/><TABLE>{fields}<DATA><TABLEDATA>{rows}</TABLEDATA></DATA>'
        "</TABLE></RESOURCE></VOTABLE>\n"
    )


_NUMBERS = frozenset(["ra", "dec", "rvz_redshift", "rvz_radvel", "plx_value", "pmra", "pmdec", "nbref"])


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default
