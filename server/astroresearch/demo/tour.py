"""The main job, played from end to end by a small editor that starts the real language server."""

from __future__ import annotations

import contextlib
import difflib
import shutil
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import click

from astroresearch.cli.papers import target_lines
from astroresearch.cli.timeline import TimelinePrinter
from astroresearch.demo.papers import build_in_child
from astroresearch.demo.standin import Standin
from astroresearch.errors import Conflict
from astroresearch.lsp.client import Buffers, Client, connect

MARKER = ".astroresearch-demo"
QUESTIONS = (
    "What balances the radiative cooling in the core of the Perseus cluster?",
    "How large is the velocity dispersion that Hitomi measured in the Perseus core?",
    "What are the recession velocities of the two systems of emission lines towards NGC 1275?",
)
NOTE = "Compare the 164 km/s with what the ripples would need."
VECTORS_WAIT_S = 20


async def tour(folder: Path, live: bool) -> int:
    """Plays it in `folder`, which is made anew if it is a demo's already.

    Raises:
        Conflict: The folder exists and was not made by the demo.
    """
    started = time.monotonic()
    await anyio.to_thread.run_sync(_prepare, folder)
    _title("AstroResearch demo")
    _say(
        "The real language server, over stdio, as an editor starts it. No language model is configured: answers are quotes."
    )
    if live:
        _say("Services: the real ADS (with your token), arXiv, Sesame and SIMBAD.")
    else:
        _say(
            "Services: ADS, arXiv, Sesame and SIMBAD are played by a stand-in on 127.0.0.1 that knows a few real records."
        )
    papers = await build_in_child(folder / "papers")
    async with _services(live) as env:
        variables = {**env, "ASTRORESEARCH_HOME": str(folder / "home"), "ASTRORESEARCH_MODEL": ""}
        workspace = folder / "manuscript"
        async with connect(workspace, env=variables, takes_edits=True, experimental={"timeline": True}) as client:
            buffers = Buffers(client)
            main = await buffers.open(workspace / "main.tex")
            core = await buffers.open(workspace / "sections" / "core.tex")
            await _import(client, papers)
            session = await _ask(client, main)
            await _object(client)
            await _note(client)
            await _complete_and_hover(client, buffers, core)
            await _cite(client, buffers)
            await buffers.save()
            status = await client.request("astroresearch/library/status", {})
    _end(folder, status, session, time.monotonic() - started)
    return 0


@asynccontextmanager
async def _services(live: bool) -> AsyncIterator[Mapping[str, str]]:
    if live:
        yield {}
        return
    async with Standin() as standin:
        yield standin.env


def _prepare(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARKER).exists():
            raise Conflict(f"{folder} holds something else.", hint="Choose another folder with --dir.")
        shutil.rmtree(folder)
    (folder / "home").mkdir(parents=True)
    (folder / MARKER).write_text("Made by `astroresearch demo`; it is made anew at the next run.\n")
    with resources.as_file(resources.files("astroresearch.demo").joinpath("manuscript")) as source:
        shutil.copytree(source, folder / "manuscript")


async def _import(client: Client, papers: list[Path]) -> None:
    _title("1. Import the sample papers")
    _say(
        "Short review notes that were written for this project; they are not publications, and say so on their first page."
    )
    client.progress["import"] = lambda value: _say(f"  … {value['message']}") if value.get("message") else None
    params = {"paths": [str(p) for p in papers], "workDoneToken": "import"}
    answer = await client.request("astroresearch/papers/import", params)
    for paper in answer["imported"]:
        _say(f"  ✓ {paper['title']} ({paper['pagesCount']} pages, {paper['state']})")
    for bad in answer["failed"]:
        _say(f"  ✗ {bad['message']}")
    with anyio.move_on_after(VECTORS_WAIT_S):
        while True:
            status = await client.request("astroresearch/library/status", {})
            if status["vectors"] >= status["passages"]:
                break
            await anyio.sleep(0.3)
    _say(
        f"  Full text at once; for search by meaning, {status['vectors']} of {status['passages']} passages have vectors now."
    )


async def _ask(client: Client, uri: str) -> str:
    _title("2. Ask three questions about the manuscript")
    session = ""
    for question in QUESTIONS:
        click.secho(f"\n  ? {question}", bold=True)
        printer = TimelinePrinter(err=False, indent="    ", show_answer=True)

        def progress(value: Mapping[str, Any], printer: TimelinePrinter = printer) -> None:
            if "event" in value:
                printer.event(value["event"])

        client.progress["ask"] = progress
        params: dict[str, Any] = {"text": question, "workDoneToken": "ask", "context": {"textDocument": {"uri": uri}}}
        if session:
            params["sessionId"] = session
        answer = await client.request("astroresearch/chat/send", params)
        printer.close()
        session = str(answer["sessionId"])
        checked = sum(c["verified"] for c in answer["citations"])
        click.secho(f"    {checked} of {len(answer['citations'])} quotes were found on their page.", fg="green")
    return session


async def _object(client: Client) -> None:
    _title("3. Resolve an object")
    _say(
        textwrap.indent(target_lines(await client.request("astroresearch/targets/resolve", {"name": "NGC 1275"})), "  ")
    )


async def _note(client: Client) -> None:
    _title("4. Save a note on a quote")
    found = await client.request("astroresearch/library/ask", {"question": "velocity dispersion Hitomi", "limit": 1})
    citation = found["citations"][0] if found["citations"] else {}
    anchor = {key: citation[key] for key in ("quote", "page") if key in citation} | {
        "paper": citation.get("paperId", "")
    }
    note = await client.request("astroresearch/notes/create", {"text": NOTE, "tags": ["demo"], **anchor})
    _say(f"  “{textwrap.shorten(note['quote'], 160)}” (p. {note['page']})")
    _say(
        f"  {note['text']}  → saved as {note['id']}, quote {'found on its page' if note['quoteVerified'] else 'not found'}"
    )


async def _complete_and_hover(client: Client, buffers: Buffers, uri: str) -> None:
    _title("5. In the text: completion and hover")
    text = buffers.texts[uri]
    line, column = _find(text, "\\citep{Conselice2001}")
    at = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column + len("\\citep{Con")}}
    answer = await client.request("textDocument/completion", {**at, "context": {"triggerKind": 1}})
    items = answer["items"] if isinstance(answer, Mapping) else answer
    _say("  \\citep{Con|   completes to:")
    for item in items[:3]:
        _say(f"    {item['label']:<22} {item.get('detail', '')}")
    hover = await client.request("textDocument/hover", at)
    _say("  Hover on Conselice2001:")
    _say(textwrap.indent(hover["contents"]["value"].strip(), "    ") if hover else "    nothing")


async def _cite(client: Client, buffers: Buffers) -> None:
    _title("6. A code action that inserts a citation")
    problem = None
    for path in sorted((Path(urlsplit(next(iter(buffers.texts))).path).parent / "sections").glob("*.tex")):
        uri = path.as_uri() if path.as_uri() in buffers.texts else await buffers.open(path)
        report = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        for item in report["items"]:
            if item.get("code") == "astroresearch.tex.undefined-key":
                problem = (uri, item)
    if problem is None:
        _say("  The manuscript has no undefined key.")
        return
    uri, item = problem
    _say(f"  {Path(urlsplit(uri).path).name}:{item['range']['start']['line'] + 1}: {item['message']}")
    params = {"textDocument": {"uri": uri}, "range": item["range"], "context": {"diagnostics": [item]}}
    actions = await client.request("textDocument/codeAction", params) or []
    for action in actions[:4]:
        _say(f"    ◦ {action['title']}")
    chosen = next((a for a in actions if (a.get("command") or {}).get("command") == "astroresearch.bib.insert"), None)
    if chosen is None:
        return
    command = chosen["command"]
    answer = await client.request("workspace/executeCommand", {k: command[k] for k in ("command", "arguments")})
    _say(f"  Chosen: {chosen['title']} → key {answer['key']}")
    for changed, before, after in buffers.applied:
        _say(f"  {Path(urlsplit(changed).path).name}:")
        for row in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0):
            if row[:1] == "+" and not row.startswith("+++"):
                click.secho(f"    {row}", fg="green")


def _end(folder: Path, status: Mapping[str, Any], session: str, seconds: float) -> None:
    _title("Done")
    short = folder
    with contextlib.suppress(ValueError):
        short = folder.relative_to(Path.cwd())
    _say(
        f"In {seconds:.0f} s: {status['papers']} papers with {status['passages']} passages imported, three questions answered "
        f"with checked quotes, an object resolved, a note saved, an entry added to refs.bib."
    )
    _say("The library stays and can be used. Try next:")
    program = _program()
    there = f"ASTRORESEARCH_HOME={short / 'home'} {program}"
    for command in (
        f"{there} passages 'sound waves'",
        f"{there} ask 'What fills the bubbles?' --workspace {short / 'manuscript'}",
        f"{there} sessions show {session}",
        f"{program} doctor          # what is configured, what is missing",
        f"{program} add paper.pdf   # your own library",
    ):
        _say(f"  {command}")
    _say("In an editor: docs/user/vscode.md, docs/user/neovim.md. With a language model: docs/configuration.md.")


def _program() -> str:
    """How this program is called from here."""
    if shutil.which("astroresearch"):
        return "astroresearch"
    here = Path(sys.argv[0])
    return str(here.relative_to(Path.cwd())) if here.is_relative_to(Path.cwd()) else str(here)


def _find(text: str, needle: str) -> tuple[int, int]:
    offset = text.index(needle)
    return text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1)


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True, fg="blue")


def _say(text: str) -> None:
    click.echo(text)
