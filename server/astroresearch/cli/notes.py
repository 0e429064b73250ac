"""`notes list | add | show | delete | export`."""

from __future__ import annotations

import sys
from typing import Any

import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FINDINGS, OK, Output, run
from astroresearch.lsp.client import connect


@click.group()
def notes() -> None:
    """List, add, show, delete and export notes."""


async def _request(out: Output, method: str, params: dict[str, Any], show: Any) -> int:
    async with connect(None) as client:
        answer = await client.request(f"astroresearch/notes/{method}", params)
    return int(show(out, answer) or OK)


@notes.command("list")
@click.option("--paper", default="", help="Only notes on this paper.")
@click.option("--key", "cite_key", default="", help="Only notes on this cite key.")
@click.option("--tag", default="")
@click.option("--query", default="", help="Full-text search.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(paper: str, cite_key: str, tag: str, query: str, limit: int, as_json: bool) -> None:
    """List notes, newest first."""
    out = Output(as_json)
    if query:
        run(out, _request, out, "search", {"query": query, "limit": min(limit, 200)}, _show_all)
    params = {"paper": paper, "citeKey": cite_key, "tag": tag, "limit": limit}
    run(out, _request, out, "list", params, _show_all)


def _show_all(out: Output, answer: dict[str, Any]) -> int:
    for note in answer["notes"]:
        out.row("note", note, _line(note))
    return OK if answer["notes"] else out.nothing("There is no such note.")


@notes.command()
@click.argument("text")
@click.option("--paper", default="", help="Any identifier of a paper.")
@click.option("--page", default=0, type=click.IntRange(0))
@click.option("--quote", default="", help="Words of the page that the note is about; they are checked.")
@click.option("--key", "cite_key", default="")
@click.option("--tag", "tags", multiple=True)
@json_option
def add(text: str, paper: str, page: int, quote: str, cite_key: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Save a note. `-` reads the text from standard input."""
    if text == "-":
        text = sys.stdin.read()
    out = Output(as_json)
    params = {"text": text, "paper": paper, "page": page, "quote": quote, "citeKey": cite_key, "tags": list(tags)}
    run(out, _request, out, "create", params, _show_one)


@notes.command()
@click.argument("note_id")
@json_option
def show(note_id: str, as_json: bool) -> None:
    """Show one note."""
    run(out := Output(as_json), _request, out, "get", {"id": note_id}, _show_one)


def _show_one(out: Output, note: dict[str, Any]) -> None:
    out.row("note", note, _line(note))


@notes.command()
@click.argument("note_id")
@json_option
def delete(note_id: str, as_json: bool) -> None:
    """Delete one note."""
    run(out := Output(as_json), _request, out, "delete", {"id": note_id}, _show_deleted)


def _show_deleted(out: Output, answer: dict[str, Any]) -> int:
    out.row("deleted", answer, "Deleted." if answer["deleted"] else "There is no such note.")
    return OK if answer["deleted"] else FINDINGS


@notes.command()
@click.option("--paper", default="")
@click.option("--key", "cite_key", default="")
@click.option("--tag", default="")
@json_option
def export(paper: str, cite_key: str, tag: str, as_json: bool) -> None:
    """Print notes as Markdown."""
    out = Output(as_json)
    run(out, _request, out, "export", {"paper": paper, "citeKey": cite_key, "tag": tag}, _show_markdown)


def _show_markdown(out: Output, answer: dict[str, Any]) -> None:
    out.row("markdown", answer, answer["markdown"])


def _line(note: dict[str, Any]) -> str:
    anchor = note["citeKey"] or (f"{note['paperId']}" + (f", p. {note['page']}" if note["page"] else ""))
    quote = (
        f"\n    “{note['quote']}”" + ("" if note["quoteVerified"] else " (not found in the paper)")
        if note["quote"]
        else ""
    )
    tags = "  " + " ".join(f"#{tag}" for tag in note["tags"]) if note["tags"] else ""
    return f"{note['id']}  {anchor}{tags}{quote}\n    {note['text']}"
