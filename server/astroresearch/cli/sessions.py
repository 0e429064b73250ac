"""`sessions list | show | audit | export | delete`."""

from __future__ import annotations

from typing import Any

import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FINDINGS, OK, Output, run
from astroresearch.lsp.client import connect


@click.group()
def sessions() -> None:
    """List, show, audit, export and delete conversations."""


@sessions.command("list")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500))
@json_option
def list_(limit: int, as_json: bool) -> None:
    """List conversations, newest first."""
    run(out := Output(as_json), _list, out, limit)


async def _list(out: Output, limit: int) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/session/list", {"limit": limit})
    for session in answer["sessions"]:
        out.row("session", session, f"{session['id']}  {session['updated'][:16]}  {session['title']}")
    return OK if answer["sessions"] else out.nothing("There is no conversation yet.")


@sessions.command()
@click.argument("session_id")
@json_option
def show(session_id: str, as_json: bool) -> None:
    """Show a conversation; with --json its timeline, an event a line."""
    run(out := Output(as_json), _show, out, session_id)


async def _show(out: Output, session_id: str) -> int:
    async with connect(None) as client:
        if not out.as_json:
            answer = await client.request("astroresearch/session/export", {"sessionId": session_id})
            click.echo(answer["markdown"])
            return OK
        following = 0
        while True:
            params: dict[str, Any] = {"sessionId": session_id, "fromSeq": following}
            answer = await client.request("astroresearch/session/events", params)
            for event in answer["events"]:
                out.row("event", {"event": event}, "")
            if not answer["events"] or answer["events"][-1]["seq"] + 1 >= answer["nextSeq"]:
                return OK
            following = answer["events"][-1]["seq"] + 1


@sessions.command()
@click.argument("session_id")
@json_option
def export(session_id: str, as_json: bool) -> None:
    """Print a conversation as Markdown."""
    run(out := Output(as_json), _export, out, session_id)


async def _export(out: Output, session_id: str) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/session/export", {"sessionId": session_id})
    out.row("markdown", answer, answer["markdown"])
    return OK


@sessions.command()
@click.argument("session_id")
@json_option
def delete(session_id: str, as_json: bool) -> None:
    """Delete a conversation for good."""
    run(out := Output(as_json), _delete, out, session_id)


async def _delete(out: Output, session_id: str) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/session/delete", {"sessionId": session_id})
    out.row("deleted", answer, "Deleted." if answer["deleted"] else "There is no such conversation.")
    return OK if answer["deleted"] else FINDINGS


@sessions.command()
@click.argument("session_id")
@json_option
def audit(session_id: str, as_json: bool) -> None:
    """Show what a conversation's agent was allowed or refused, and how it ended."""
    run(out := Output(as_json), _audit, out, session_id)


async def _audit(out: Output, session_id: str) -> int:
    async with connect(None) as client:
        answer = await client.request("astroresearch/session/audit", {"sessionId": session_id})
    for entry in answer["entries"]:
        told = entry["payload"]
        did = told.get("decision") or told.get("status") or entry["kind"]
        about = told.get("tool") or told.get("rule", "")
        asked = " (you were asked)" if told.get("asked") else ""
        why = f": {' '.join(told['reason'].split())}" if told.get("reason") else ""
        out.row("audit", entry, f"{entry['ts'][:19]}  {entry['agent']:<8} {did:<10} {about}{asked}{why}")
    return OK if answer["entries"] else FINDINGS
