"""`permissions list | revoke`."""

from __future__ import annotations

from pathlib import Path

import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FINDINGS, OK, Output, run, workspace_of
from astroresearch.lsp.client import connect

_workspace = click.option(
    "--workspace", default=None, type=click.Path(exists=True, file_okay=False), help="By default the current folder."
)


@click.group()
def permissions() -> None:
    """List what you allowed the agent in a workspace, and take it back."""


@permissions.command("list")
@_workspace
@json_option
def list_(workspace: str | None, as_json: bool) -> None:
    """List the rules that you allowed with "in this workspace"."""
    run(out := Output(as_json), _list, out, workspace_of(workspace))


async def _list(out: Output, workspace: Path) -> int:
    async with connect(workspace) as client:
        answer = await client.request("astroresearch/permissions/list", {})
    for grant in answer["grants"]:
        out.row("grant", grant, grant["rule"])
    return OK if answer["grants"] else FINDINGS


@permissions.command()
@click.argument("rule")
@_workspace
@json_option
def revoke(rule: str, workspace: str | None, as_json: bool) -> None:
    """Take a rule back, as `list` shows it."""
    run(out := Output(as_json), _revoke, out, rule, workspace_of(workspace))


async def _revoke(out: Output, rule: str, workspace: Path) -> int:
    async with connect(workspace) as client:
        answer = await client.request("astroresearch/permissions/revoke", {"rule": rule})
    out.row("revoked", {"rule": rule, **answer}, "Taken back." if answer["revoked"] else "No such rule was allowed.")
    return OK if answer["revoked"] else FINDINGS
