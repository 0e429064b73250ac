"""`astroresearch/papers/*`: find, get, read, import, remove."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from astroresearch.domain.paper import SearchOutcome
from astroresearch.domain.plain import plain
from astroresearch.errors import AstroResearchError, InvalidInput, StoreError
from astroresearch.lsp.params import (
    PaperRef,
    PapersBibtex,
    PapersDownload,
    PapersImport,
    PapersList,
    PapersSearch,
    PapersText,
)
from astroresearch.lsp.progress import ProgressStream
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS
from astroresearch.manuscript.citations import identifiers

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server


async def search(server: Server, params: PapersSearch) -> Any:
    """ADS and arXiv at once; what comes first is streamed on `partialResultToken`."""
    services = await server.ready()
    keys = await _cited(server, params.text_document.uri) if params.text_document else []

    def partial(outcome: SearchOutcome) -> None:
        if params.partial_result_token is not None:
            server.send_progress(params.partial_result_token, plain(outcome))

    return await services.catalogue.search(
        params.query, sources=params.sources, limit=params.limit, sort=params.sort, cite_keys=keys, on_partial=partial
    )


async def _cited(server: Server, uri: str) -> list[str]:
    """The manuscript's cite keys, and the identifiers of their entries."""
    project = await server.projects.project(uri)

    def collect() -> list[str]:
        found = list(project.uses)
        for key in project.uses:
            for definition in project.find(key):
                if definition.entry is not None:
                    ids = identifiers(definition.entry)
                    found += [name for name in (ids.bibcode, ids.doi, ids.arxiv) if name]
        return found

    return await anyio.to_thread.run_sync(collect)


async def get(server: Server, params: PaperRef) -> Any:
    """By any identifier."""
    services = await server.ready()
    return await services.catalogue.get(params.paper)


async def list_papers(server: Server, params: PapersList) -> dict[str, Any]:
    """What is in the library, newest first."""
    services = await server.ready()
    papers, total = await services.list_papers(params.limit, params.offset)
    return {"papers": papers, "total": total}


async def download(server: Server, params: PapersDownload) -> Any:
    """Downloads and parses, with progress by bytes and pages."""
    services = await server.ready()
    scope = anyio.CancelScope()
    stream = await ProgressStream.open(server, params.work_done_token, f"Download {params.paper}", scope.cancel)
    with stream, scope:
        await services.shelf.download(params.paper, progress=stream.report)
        paper = await services.shelf.parse(params.paper, progress=stream.report)
        _changed(server, paper.id)
        return paper
    raise InvalidInput(f"The download of {params.paper} was cancelled.")


async def import_files(server: Server, params: PapersImport) -> dict[str, Any]:
    """Copies PDFs into the library; one that fails is reported, and the others go on."""
    services = await server.ready()
    files = await anyio.to_thread.run_sync(_pdfs, params.paths)
    imported: list[Any] = []
    failed: list[dict[str, str]] = []
    scope = anyio.CancelScope()
    stream = await ProgressStream.open(server, params.work_done_token, f"Import {len(files)} files", scope.cancel)
    with stream, scope:
        for index, path in enumerate(files):

            def report(text: str, fraction: float | None, index: int = index, name: str = path.name) -> None:
                stream.report(f"{name}: {text}", (index + (fraction or 0)) / len(files))

            try:
                paper = await services.shelf.import_file(path, progress=report)
            except StoreError:
                raise
            except AstroResearchError as error:
                failed.append(
                    {"path": str(path), "reason": getattr(error, "reason", error.code), "message": str(error)}
                )
            else:
                imported.append(paper)
                _changed(server, paper.id)
    return {"imported": imported, "failed": failed, "cancelled": scope.cancelled_caught}


async def text(server: Server, params: PapersText) -> dict[str, Any]:
    """A paper's text with its record."""
    services = await server.ready()
    pages = await services.shelf.text(params.paper, page=params.page)
    return {"paper": await services.catalogue.get(params.paper, online=False), "pages": list(pages)}


async def bibtex(server: Server, params: PapersBibtex) -> dict[str, str]:
    """BibTeX as ADS writes it, from the stored records."""
    services = await server.ready()
    return {"bibtex": await services.bibtex(params.papers, params.key_format)}


async def remove(server: Server, params: PaperRef) -> dict[str, bool]:
    """Removes a paper, its text and its file from the library; notes on it stay."""
    services = await server.ready()
    removed = await services.remove_paper(params.paper)
    _changed(server, params.paper)
    return {"removed": removed}


def _changed(server: Server, paper_id: str) -> None:
    server.library_changed()
    server.send_notification(SERVER_NOTIFICATIONS[1], {"paperId": paper_id})


def _pdfs(names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        path = _absolute(name)
        if path.is_dir():
            found += sorted(_pdfs_below(path))
        else:
            found.append(path)
    if not found:
        raise InvalidInput("There is no PDF in " + ", ".join(names) + ".", field="paths")
    return found


def _absolute(name: str) -> Path:
    """A path of the user's; relative ones would mean the server's folder, which nobody chose."""
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise InvalidInput(f"{name} is no path: {error}", field="paths") from error
    if not path.is_absolute() or "\0" in name:
        raise InvalidInput(f"`{name}` is not an absolute path.", field="paths")
    return path


def _pdfs_below(folder: Path) -> Iterator[Path]:
    """PDFs of a folder; what can't be read or goes away meanwhile is left out."""
    for base, _, names in os.walk(folder):
        for name in names:
            if name.lower().endswith(".pdf") and os.path.isfile(path := os.path.join(base, name)):
                yield Path(path)
