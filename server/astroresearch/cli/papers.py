"""`add`, `search`, `passages`, `papers`, `export`, `target`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FAILED, FINDINGS, OK, Output, run, warm_up
from astroresearch.lsp.client import Client, RemoteError, connect

STUCK_S = 60
"Without a new vector for this long, the rest is left for later."


@click.command()
@click.argument("papers", nargs=-1, required=True)
@click.option("--no-wait", is_flag=True, help="Leave the vectors for search by meaning to the next editor that runs.")
@json_option
def add(papers: tuple[str, ...], no_wait: bool, as_json: bool) -> None:
    """Add papers to the library: PDF files or folders, arXiv ids, bibcodes, DOIs.

    \b
    astroresearch add paper.pdf 2405.01234 '2019A&A...622A...2P'
    """
    run(out := Output(as_json), _add, out, papers, no_wait)


async def _add(out: Output, papers: tuple[str, ...], no_wait: bool) -> int:
    files = [p for p in papers if Path(p).expanduser().exists() or p.lower().endswith(".pdf")]
    others = [p for p in papers if p not in files]
    code = OK
    async with connect(None) as client:
        client.progress["add"] = lambda value: out.progress(value["message"]) if value.get("message") else None
        if files:
            code = max(code, await _import(out, client, files))
        for paper in others:
            try:
                record = await client.request("astroresearch/papers/download", {"paper": paper, "workDoneToken": "add"})
            except RemoteError as error:
                out.row("failed", {"paper": paper, "message": error.message}, f"✗ {paper}: {error.message}")
                code = max(code, FINDINGS if error.kind == "not_found" else FAILED)
            else:
                out.row("paper", record, f"✓ {_line(record)}")
        if not no_wait:
            await _wait_for_vectors(out, client)
    return code


async def _wait_for_vectors(out: Output, client: Client) -> None:
    """Search by words works at once; for search by meaning a server must run until each passage has its vector."""
    said, quiet_since = -1, anyio.current_time()
    while True:
        status = await client.request("astroresearch/library/status", {})
        missing = status["passages"] - status["vectors"]
        if not status["embedder"] or missing <= 0 or anyio.current_time() - quiet_since > STUCK_S:
            return
        if status["vectors"] != said and missing > 20:
            out.progress(
                f"vectors for search by meaning: {status['vectors']} of {status['passages']} (Ctrl-C leaves the rest for later)"
            )
        if status["vectors"] != said:
            said, quiet_since = status["vectors"], anyio.current_time()
        await anyio.sleep(1 if missing > 20 else 0.2)


async def _import(out: Output, client: Client, files: list[str]) -> int:
    paths = [str(Path(f).expanduser().absolute()) for f in files]
    answer = await client.request("astroresearch/papers/import", {"paths": paths, "workDoneToken": "add"})
    for record in answer["imported"]:
        out.row("paper", record, f"✓ {_line(record)}")
    for bad in answer["failed"]:
        out.row("failed", bad, f"✗ {bad['path']}: {bad['message']}")
    return FINDINGS if answer["failed"] else OK


@click.command()
@click.argument("query")
@click.option("--source", "sources", multiple=True, type=click.Choice(["ads", "arxiv"]), help="Ask only these.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100))
@click.option("--sort", default="relevance", show_default=True, type=click.Choice(["relevance", "date", "citations"]))
@json_option
def search(query: str, sources: tuple[str, ...], limit: int, sort: str, as_json: bool) -> None:
    """Search ADS and arXiv for papers. ADS's field syntax works; what arXiv does not know is said."""
    run(out := Output(as_json), _search, out, query, sources, limit, sort)


async def _search(out: Output, query: str, sources: tuple[str, ...], limit: int, sort: str) -> int:
    async with connect(None) as client:
        params = {"query": query, "sources": list(sources), "limit": limit, "sort": sort}
        answer = await client.request("astroresearch/papers/search", params)
    for notice in answer["notices"]:
        out.note(notice)
    for hit in answer["hits"]:
        marks = [m for m, on in (("in library", hit["inLibrary"]), ("has notes", hit["hasNotes"])) if on]
        out.row("hit", hit, _line(hit["paper"]) + (f"  [{', '.join(marks)}]" if marks else ""))
    return OK if answer["hits"] else FINDINGS


@click.command()
@click.argument("query")
@click.option("--limit", default=8, show_default=True, type=click.IntRange(1, 50))
@click.option("--paper", "papers", multiple=True, help="Only in this paper (any identifier); may be repeated.")
@json_option
def passages(query: str, limit: int, papers: tuple[str, ...], as_json: bool) -> None:
    """Search the text of the library by words and by meaning."""
    run(out := Output(as_json), _passages, out, query, limit, papers)


async def _passages(out: Output, query: str, limit: int, papers: tuple[str, ...]) -> int:
    async with connect(None) as client:
        params = {"query": query, "limit": limit, "papers": list(papers)}
        await warm_up(client)
        answer = await client.request("astroresearch/library/search", params)
    if answer["notice"]:
        out.note(answer["notice"])
    for hit in answer["hits"]:
        passage = hit["passage"]
        head = f"{passage['paperId']}, p. {passage['page']}" + (f", {passage['section']}" if passage["section"] else "")
        out.row("passage", hit, f"{head}\n    {' '.join(passage['text'].split())}\n")
    return OK if answer["hits"] else FINDINGS


@click.command()
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@json_option
def papers(limit: int, as_json: bool) -> None:
    """List the papers of the library, newest first."""
    run(out := Output(as_json), _papers, out, limit)


async def _papers(out: Output, limit: int) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/papers/list", {"limit": limit})
    for paper in answer["papers"]:
        state = "" if paper["state"] == "searchable" else f"  ({paper['state']}: {paper['stateReason']})"
        out.row("paper", paper, _line(paper) + state)
    return (
        OK if answer["papers"] else out.nothing("The library holds no paper yet: `astroresearch add` puts them there.")
    )


@click.command()
@click.argument("papers", nargs=-1)
@click.option("--key", "key_format", default="bibcode", show_default=True, help="`bibcode` or `authoryear`.")
@json_option
def export(papers: tuple[str, ...], key_format: str, as_json: bool) -> None:
    """Print BibTeX of these papers, or of the whole library, as ADS writes it."""
    run(out := Output(as_json), _export, out, papers, key_format)


async def _export(out: Output, papers: tuple[str, ...], key_format: str) -> int:
    async with connect(None) as client:
        params = {"papers": list(papers), "keyFormat": key_format}
        answer = await client.request("astroresearch/papers/bibtex", params)
    out.row("bibtex", answer, answer["bibtex"].rstrip("\n"))
    return OK


@click.command()
@click.argument("name")
@json_option
def target(name: str, as_json: bool) -> None:
    """Resolve the name of a celestial object: position, type, aliases."""
    run(out := Output(as_json), _target, out, name)


async def _target(out: Output, name: str) -> int:
    async with connect(None) as client:
        found = await client.request("astroresearch/targets/resolve", {"name": name})
    out.row("target", found, target_lines(found))
    return OK


def target_lines(found: dict[str, Any]) -> str:
    """An object for people."""
    lines = [
        f"{found['name']}  ({found['objectType'] or 'type unknown'}; {found['resolver']}"
        + (", from the cache)" if found["cached"] else ")"),
        f"  RA {found['raDeg']:.6f}°  Dec {found['decDeg']:+.6f}°  (ICRS, J2000)",
    ]
    if found["redshift"] is not None:
        lines.append(f"  z = {found['redshift']:g}")
    if found["aliases"]:
        lines.append("  also " + ", ".join(found["aliases"][:12]))
    return "\n".join(lines)


def _line(paper: dict[str, Any]) -> str:
    authors = paper["authors"]
    who = (authors[0].split(",")[0] + (" et al." if len(authors) > 1 else "")) if authors else "?"
    ids = paper["identifiers"]
    name = ids["bibcode"] or (f"arXiv:{ids['arxiv']}" if ids["arxiv"] else "") or ids["doi"] or paper["id"]
    return f"{name:<22}  {who} {paper['year'] or ''}  {paper['title']}"
