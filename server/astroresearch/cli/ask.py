"""`ask`: one question to the agent, with its timeline on standard error and the answer on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click

from astroresearch.cli.commands import json_option
from astroresearch.cli.output import FAILED, OK, Output, run, warm_up, workspace_of
from astroresearch.cli.timeline import TimelinePrinter
from astroresearch.lsp.client import Client, connect


@click.command()
@click.argument("question")
@click.option(
    "--workspace", default=None, type=click.Path(exists=True, file_okay=False), help="The manuscript's folder."
)
@click.option("--file", "file", default=None, type=click.Path(exists=True, dir_okay=False), help="The open file.")
@click.option("--session", default=None, help="Go on with this conversation.")
@click.option("--mode", default="agent", show_default=True, type=click.Choice(["agent", "plan"]))
@click.option("--model", default=None, help="Use this model for the question.")
@click.option(
    "--yes-to", "yes_to", multiple=True, metavar="NAME", help="Allow this tool without asking; may be repeated."
)
@click.option("--quiet", is_flag=True, help="Print the answer only.")
@json_option
def ask(
    question: str, workspace: str | None, file: str | None, session: str | None, mode: str, model: str | None,
    yes_to: tuple[str, ...], quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Ask the research agent. It reads the workspace and the library, searches, and answers with checked quotes.

    On a terminal it asks before it changes anything; without one, what would ask is refused and the answer says so,
    unless `--yes-to NAME` allows it.
    """
    out = Output(as_json)
    params = {"text": question, "sessionId": session, "mode": mode, "model": model}
    run(out, _ask, out, params, workspace_of(workspace), file, frozenset(yes_to), quiet)


async def _ask(
    out: Output, params: dict[str, Any], workspace: Path, file: str | None, yes_to: frozenset[str], quiet: bool
) -> int:
    terminal = sys.stdin.isatty()
    experimental = {"timeline": True, "permission": terminal or bool(yes_to), "askUser": terminal}
    handlers = {
        "astroresearch/permission/request": lambda asked: _permission(asked, yes_to, terminal),
        "astroresearch/user/ask": _question,
    }
    async with connect(workspace, experimental=experimental, on_request=handlers) as client:
        if file is not None:
            uri = await client.open_document(Path(file).resolve())
            params["context"] = {"textDocument": {"uri": uri}}
        await warm_up(client)
        answer = await _send(client, out, params, quiet)
    if out.as_json:
        out.row("answer", answer, "")
    else:
        click.echo(answer["answer"])
        if not quiet:
            click.secho(f"[{answer['stopReason']}; go on with --session {answer['sessionId']}]", err=True, dim=True)
    return FAILED if answer["stopReason"] == "error" else OK


async def _send(client: Client, out: Output, params: dict[str, Any], quiet: bool) -> Any:
    printer = TimelinePrinter(err=True)

    def progress(value: Mapping[str, Any]) -> None:
        if (event := value.get("event")) is None:
            return
        if out.as_json:
            out.row("event", {"event": event}, "")
        elif not quiet:
            printer.event(event)

    client.progress["ask"] = progress
    body = {key: value for key, value in params.items() if value is not None}
    answer = await client.request("astroresearch/chat/send", {**body, "workDoneToken": "ask"})
    printer.close()
    return answer


async def _permission(asked: Mapping[str, Any], yes_to: frozenset[str], terminal: bool) -> Mapping[str, str]:
    if asked["tool"] in yes_to:
        return {"id": asked["id"], "choice": "once"}
    if not terminal:
        return {"id": asked["id"], "choice": "deny", "reason": "nobody is there to ask"}
    click.secho(f"\n{asked['title']}\n{asked['detail']}", err=True, bold=True)
    if asked.get("reason"):
        click.secho(asked["reason"], err=True)
    options = {option["id"]: option["label"] for option in asked["options"]}
    choice = await anyio.to_thread.run_sync(
        lambda: click.prompt("Allow?", type=click.Choice(list(options)), default="deny", err=True),
        abandon_on_cancel=True,
    )
    return {"id": asked["id"], "choice": choice}


async def _question(asked: Mapping[str, Any]) -> Mapping[str, str]:
    text = asked["text"] + (f" ({' / '.join(asked['choices'])})" if asked["choices"] else "")
    answer = await anyio.to_thread.run_sync(lambda: click.prompt(text, err=True), abandon_on_cancel=True)
    return {"id": asked["id"], "answer": answer}
