"""Links: from an entry to ADS, arXiv or its DOI; from an include to its file."""

from __future__ import annotations

import re

import anyio.to_thread
from lsprotocol import types

from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host
from astroresearch.lsp.text import TextDocument
from astroresearch.manuscript.bibtex import BibFile, unquote
from astroresearch.manuscript.project import Project

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_ARXIV = re.compile(r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}")
_BIBCODE = re.compile(r"[12]\d{3}[A-Za-z0-9&.]{14}[A-Z.]")


async def document_link(server: Host, params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
    """All links of one file; no address is asked of the network."""
    uri = params.text_document.uri
    project = await server.projects.project(uri)
    path = server.projects.path(uri)
    if is_bib(path) and path in project.bibs:
        bib = project.bibs[path]
        return await anyio.to_thread.run_sync(lambda: _entry_links(bib, server.projects.view(path, bib.text)))
    file = project.tex.get(path)
    if file is None:
        return None
    view = server.projects.view(path, file.text)
    links = [
        types.DocumentLink(view.range(i.start, i.end), server.projects.uri(project.links[path, i.start]))
        for i in file.includes
        if (path, i.start) in project.links
    ]
    seen: dict[str, str] = {}
    for citation in file.citations:
        for key in citation.keys:
            if key.name not in seen:
                seen[key.name] = _target(project, key.name)
            if seen[key.name]:
                links.append(
                    types.DocumentLink(view.range(key.start, key.end), seen[key.name], "Open the paper's page")
                )
    return links


def _target(project: Project, key: str) -> str:
    found = project.find(key)
    entry = found[0].entry if found else None
    if entry is None:
        return _address("", key)
    values = entry.body.values
    for name in ("adsurl", "doi", "eprint", "url"):
        if name in values and (target := _address(name, unquote(values[name]))):
            return target
    return _address("", key)


def _address(field: str, value: str) -> str:
    value = value.strip().replace("\\", "")
    if field == "doi" and (match := _DOI.search(value)):
        return "https://doi.org/" + match[0]
    if field == "eprint" and _ARXIV.fullmatch(value):
        return "https://arxiv.org/abs/" + value
    if field in ("url", "adsurl") and re.fullmatch(r"https?://[^\s{}\"<>]+", value):
        return value
    if not field and _BIBCODE.fullmatch(value):
        return f"https://ui.adsabs.harvard.edu/abs/{value.replace('&', '%26')}/abstract"
    return ""


def _entry_links(bib: BibFile, view: TextDocument) -> list[types.DocumentLink]:
    links: list[types.DocumentLink] = []
    for entry in bib.entries:
        for one in entry.body.fields:
            if one.name in ("doi", "eprint") and (target := _address(one.name, unquote(one.raw))):
                where = view.range(entry.start + one.value_start, entry.start + one.value_end)
                links.append(types.DocumentLink(where, target))
        if target := _address("", entry.key):
            links.append(types.DocumentLink(view.range(*entry.key_range), target, "Open at ADS"))
    return links
