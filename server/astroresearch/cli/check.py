"""`check`: the diagnostics of an editor, for CI and pre-commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FINDINGS, OK, WRONG_USE, Output, run
from astroresearch.lsp.client import connect

_SEVERITY = {1: "error", 2: "warning", 3: "info", 4: "hint"}
_LEVELS = {"error": 1, "warning": 2, "info": 3, "hint": 4}


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), default=".")
@click.option(
    "--level", default="warning", show_default=True, type=click.Choice(list(_LEVELS)), help="Report these and worse."
)
@json_option
def check(path: Path, level: str, as_json: bool) -> None:
    """Report undefined and duplicate keys, broken entries and more in the .tex and .bib files of a folder.

    Exit code 1 when there are findings.
    """
    run(out := Output(as_json), _check, out, path.resolve(), _LEVELS[level])


async def _check(out: Output, path: Path, level: int) -> int:
    root = path if path.is_dir() else path.parent
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".tex", ".bib"))
    files = [p for p in files if not any(part.startswith(".") for part in p.relative_to(root).parts)]
    if not files:
        out.note(f"There is no .tex or .bib file in {path}.")
        return WRONG_USE
    findings = 0
    async with connect(root) as client:
        for file in files:
            uri = await client.open_document(file)
            report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            for item in report.get("items", []):
                if item.get("severity", 1) <= level:
                    findings += 1
                    _print(out, file.relative_to(root), item)
            await client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    out.note(f"{findings or 'No'} finding{'' if findings == 1 else 's'} in {len(files)} files.")
    return FINDINGS if findings else OK


def _print(out: Output, name: Path, item: dict[str, Any]) -> None:
    start = item["range"]["start"]
    body = {
        "file": str(name),
        "line": start["line"] + 1,
        "column": start["character"] + 1,
        "severity": _SEVERITY[item.get("severity", 1)],
        "code": item.get("code", ""),
        "message": item["message"],
    }
    text = "{file}:{line}:{column}: {severity}: {message} [{code}]".format(**body)
    out.row("finding", body, text)
