"""`tools`, `trust`, `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import OK, Output, run
from astroresearch.config import folders
from astroresearch.config import trust as remember_trust
from astroresearch.lsp.client import connect


@click.command()
@json_option
def tools(as_json: bool) -> None:
    """List the agent's tools, what each may do, and whether it asks first."""
    run(out := Output(as_json), _tools, out)


async def _tools(out: Output) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/tools/list", {})
    for tool in answer["tools"]:
        first = tool["description"].split("\n")[0]
        out.row("tool", tool, f"{tool['name']:<20} {tool['decision']:<6} {tool['effect']:<16} {first}")
    return OK


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def trust(folder: Path, as_json: bool) -> None:
    """Trust a folder and what is below it: its settings, skills and hooks are then used."""
    real = remember_trust(folder, folders())
    Output(as_json).row("trusted", {"path": str(real)}, f"Trusted: {real}")


@click.command()
@click.option("--workspace", type=click.Path(exists=True, file_okay=False), default=None)
@json_option
def doctor(workspace: str | None, as_json: bool) -> None:
    """Say what is configured, what is missing, and how to mend it."""
    run(out := Output(as_json), _doctor, out, workspace)


async def _doctor(out: Output, workspace: str | None) -> int:
    async with connect(Path(workspace).resolve() if workspace else None) as client:
        status = await client.request("astroresearch/status", {})
    lines = [f"AstroResearch {status['version']}"]
    for name in ("model", "ads", "keyring", "library", "embedder", "workspace"):
        part: dict[str, Any] = status.get(name) or {}
        mark = "✓" if part.get("ok") else "–"
        lines.append(f"{mark} {name:<10} {part.get('text', '')}")
        if part.get("hint"):
            lines.append(f"  {'':<10} {part['hint']}")
    lines += [f"  allowed in this workspace: {rule}" for rule in status.get("grants", [])]
    lines += [f"! {problem['where']}: {problem['message']}" for problem in status.get("problems", [])]
    out.row("status", status, "\n".join(lines))
    return OK
