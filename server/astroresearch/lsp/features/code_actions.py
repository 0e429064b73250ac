"""Code actions: quick fixes for findings, and ways from the text to the library, the services and the agent.

An action is either an edit of the text, or a command: one that the server runs itself (`astroresearch.bib.insert`), or one that the
editor's own AstroResearch commands run where it has them. Nothing here waits for the network.
"""

from __future__ import annotations

import re
from typing import Any

from lsprotocol import types

from astroresearch.domain.identifiers import looks_like
from astroresearch.lsp.projects import is_bib
from astroresearch.lsp.spots import Host, spot_at
from astroresearch.lsp.text import TextDocument
from astroresearch.manuscript import latex
from astroresearch.manuscript.citations import identifiers
from astroresearch.manuscript.unicode import plain

MAX_TEXT = 2_000
ACT_COMMAND = "_astroresearch.act"
"Run by lsp/features/actions.py, or by a front end of ours."
_QUICK = types.CodeActionKind.QuickFix
_REWRITE = types.CodeActionKind.RefactorRewrite
_SOURCE = types.CodeActionKind.Source


async def code_action(server: Host, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """The actions for a selection or cursor."""
    uri = params.text_document.uri
    document = server.documents.get(uri)
    if document is None:
        return None
    actions: list[types.CodeAction] = []
    fixed: set[str] = set()
    for diagnostic in params.context.diagnostics:
        actions += _fixes(server, document, diagnostic, fixed)
    spot = await spot_at(server, uri, params.range.start, fresh=False)
    if spot is not None and spot.kind == "key":
        definitions = spot.project.find(spot.name)
        if not definitions and spot.name not in fixed and spot.name != "*":
            actions += [_add_entry(document, spot.name), *_nearest(server, document, spot.range, spot)]
        entry = definitions[0].entry if definitions else None
        if entry is not None:
            actions += _paper_actions(server, document, spot.name, identifiers(entry))
    if not is_bib(server.projects.path(uri)):
        actions += _text_actions(server, document, params.range)
    only = params.context.only
    return [a for a in actions if not only or any(_below(a.kind, kind) for kind in only)] or None


def _below(kind: str | None, wanted: str) -> bool:
    return kind is not None and (kind == wanted or kind.startswith(wanted + ".") or not wanted)


def _kind(base: str, name: str) -> str:
    return f"{getattr(base, 'value', base)!s}.astroresearch.{name}"


def _fixes(
    server: Host, document: TextDocument, diagnostic: types.Diagnostic, fixed: set[str]
) -> list[types.CodeAction]:
    data = diagnostic.data if isinstance(diagnostic.data, dict) else {}
    name, near = str(data.get("name", "")), str(data.get("suggestion", ""))
    if diagnostic.code != "astroresearch.tex.undefined-key" or not name:
        return []
    fixed.add(name)
    actions = [_add_entry(document, name, diagnostic)]
    if near:
        replace = _replace(server, document, diagnostic.range, name, near)
        replace.diagnostics = [diagnostic]
        actions.insert(0 if not looks_like(name) else 1, replace)
    return actions


def _nearest(server: Host, document: TextDocument, where: types.Range, spot: Any) -> list[types.CodeAction]:
    near = spot.project.index.nearest(spot.name) if "index" in spot.project.__dict__ else ""
    return [_replace(server, document, where, spot.name, near)] if near else []


def _replace(server: Host, document: TextDocument, where: types.Range, old: str, new: str) -> types.CodeAction:
    edit = types.TextEdit(where, new)
    if server.supports("workspace", "workspace_edit", "document_changes"):
        ref = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        change = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(ref, [edit])])
    else:
        change = types.WorkspaceEdit(changes={document.uri: [edit]})
    return types.CodeAction(f"Replace `{old}` by `{new}`", kind=_kind(_QUICK, "replaceKey"), edit=change)


def _add_entry(document: TextDocument, name: str, diagnostic: types.Diagnostic | None = None) -> types.CodeAction:
    kind = looks_like(name)
    title = f"Add entry from {'arXiv' if kind == 'arxiv' else 'ADS'} for `{name}`"
    if kind is None:
        title = f"Look for a paper for `{name}` at ADS and arXiv…"
        action = _acting(
            title,
            "findEntry",
            {"query": _as_query(name), "key": name, "textDocument": {"uri": document.uri}},
            _kind(_QUICK, "findEntry"),
        )
    else:
        arguments = {"paper": name, "textDocument": {"uri": document.uri}}
        command = types.Command(title, command="astroresearch.bib.insert", arguments=[arguments])
        action = types.CodeAction(title, kind=_kind(_QUICK, "addEntry"), command=command)
    if diagnostic is not None:
        action.diagnostics = [diagnostic]
        action.is_preferred = kind is not None or None
    return action


def _as_query(key: str) -> str:
    """`Smith2019` → `Smith 2019`: author and year, which ADS and arXiv understand."""
    return " ".join(re.findall(r"[A-Za-z]+|\d{4}", key)) or key


def _acting(title: str, action: str, argument: dict[str, Any], kind: str) -> types.CodeAction:
    command = types.Command(title, command=ACT_COMMAND, arguments=[{"action": action, **argument}])
    return types.CodeAction(title, kind=kind, command=command)


def _paper_actions(server: Host, document: TextDocument, key: str, ids: Any) -> list[types.CodeAction]:
    name = ids.bibcode or ids.doi or (f"arXiv:{ids.arxiv}" if ids.arxiv else "")
    note = _acting(
        f"Write a note on `{key}`",
        "note",
        {"text": "", "citeKey": key, "paper": name, "uri": document.uri},
        _kind(_SOURCE, "note"),
    )
    notes = [note] if server.client_declares("timeline") else []  # a note needs a place to type it
    if not name:
        return notes
    fetch = _acting(
        f"Download `{key}` into the library",
        "download",
        {"paper": name},
        _kind(_SOURCE, "download"),
    )
    return [fetch, *notes]


def _text_actions(server: Host, document: TextDocument, where: types.Range) -> list[types.CodeAction]:
    start, end = document.offset(where.start), document.offset(where.end)
    masked, _, _ = latex.mask(document.text[max(0, start - 20_000) : end + 20_000])
    base = max(0, start - 20_000)
    first, last = latex.sentence_at(masked, start - base)
    sentence = plain(_without_cites(masked[first:last]))[:MAX_TEXT]
    actions: list[types.CodeAction] = []
    context = {"textDocument": {"uri": document.uri}, "version": document.version, "range": _range_json(where)}
    if len(sentence.split()) >= 3:
        actions.append(
            _acting(
                "Find citations for this sentence",
                "findCitations",
                {"query": sentence[:300], "textDocument": {"uri": document.uri}, "range": _range_json(where)},
                _kind(_SOURCE, "findCitations"),
            )
        )
    selected = document.text[start:end].strip()
    if selected:
        if len(selected) <= 100 and "\n" not in selected:
            actions.append(
                _acting(
                    f"Look up the object `{plain(selected)}`",
                    "lookUp",
                    {"name": plain(selected)},
                    _kind(_SOURCE, "lookUpObject"),
                )
            )
        question = f"About this passage of my manuscript:\n\n{selected[:MAX_TEXT]}"
        arguments = {"text": question, "context": context}
        actions.append(_acting("Ask AstroResearch about the selection", "ask", arguments, _kind(_SOURCE, "ask")))
        if server.client_declares("timeline"):  # a note needs a place to type it
            context_of_note = {"line": where.start.line, "context": selected[:MAX_TEXT]}
            note = {"text": "", "uri": document.uri, **context_of_note}
            actions.append(_acting("Write a note on this passage", "note", note, _kind(_SOURCE, "note")))
    return actions


def _range_json(where: types.Range) -> dict[str, Any]:
    return {
        "start": {"line": where.start.line, "character": where.start.character},
        "end": {"line": where.end.line, "character": where.end.character},
    }


def _without_cites(text: str) -> str:
    scanned = latex.scan(text)
    for citation in reversed(scanned.citations):
        text = text[: citation.start] + text[citation.end :]
    return text


async def resolve(server: Host, action: types.CodeAction) -> types.CodeAction:
    """All actions are complete as listed."""
    return action
