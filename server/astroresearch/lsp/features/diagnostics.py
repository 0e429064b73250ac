"""Diagnostics: pulled where the editor can, else pushed. Codes are `astroresearch.tex.*` and `astroresearch.bib.*`."""

from __future__ import annotations

from typing import Protocol

import anyio
import anyio.to_thread
from lsprotocol import types

from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host
from astroresearch.manuscript.check import Finding, check_bib, check_tex
from astroresearch.manuscript.project import Project

QUIET_S = 0.2
"A push waits for a pause of this length in the typing."
MAX_FINDINGS = 2_000
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


class Pushing(Host, Protocol):
    """A server that can push."""

    def text_document_publish_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        """Sends the notification."""
        ...


async def diagnostic(server: Host, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
    """All findings of one file, with an id that tells whether they changed."""
    items = await findings(server, params.text_document.uri)
    result = str(
        hash(
            tuple(
                (d.code, d.message, d.range.start.line, d.range.start.character, d.range.end.character) for d in items
            )
        )
    )
    if params.previous_result_id == result:
        return types.RelatedUnchangedDocumentDiagnosticReport(result)
    return types.RelatedFullDocumentDiagnosticReport(items, result_id=result)


async def publish(server: Pushing, uri: str) -> None:
    """Pushes the findings of a file and of the other open files of its manuscript, once the typing pauses."""
    document = server.documents.get(uri)
    if document is None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))
        return
    version = document.version
    await anyio.sleep(QUIET_S)
    if server.documents.get(uri) is not document or document.version != version:
        return
    await _push(server, uri)
    project = await server.projects.project(uri)
    for other in server.documents:
        path = server.projects.path(other.uri)
        if other.uri != uri and (path in project.tex or path in project.bibs):
            await _push(server, other.uri)


async def _push(server: Pushing, uri: str) -> None:
    document = server.documents.get(uri)
    if document is None:
        return
    version = document.version
    items = await findings(server, uri)
    if server.documents.get(uri) is document and document.version == version:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, items, version))


async def findings(server: Host, uri: str) -> list[types.Diagnostic]:
    """Checks one file in a worker thread."""
    project = await server.projects.project(uri)
    path = server.projects.path(uri)
    if path not in project.tex and path not in project.bibs:
        return []

    def check() -> list[types.Diagnostic]:
        found = check_bib(project, path) if is_bib(path) else check_tex(project, path)
        view = server.projects.view(path, server.projects.text(project, path))
        return [_diagnostic(server, project, f, view.range(f.start, f.end)) for f in found[:MAX_FINDINGS]]

    return await anyio.to_thread.run_sync(check)


def _diagnostic(server: Host, project: Project, finding: Finding, where: types.Range) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(server.projects.location(project, place.path, place.start, place.end), text)
        for place, text in finding.related
    ]
    return types.Diagnostic(
        where,
        finding.message,
        _SEVERITY[finding.severity],
        code=f"astroresearch.{finding.code}",
        source="AstroResearch",
        related_information=related or None,
        data={"name": finding.name, "suggestion": finding.suggestion},
    )
