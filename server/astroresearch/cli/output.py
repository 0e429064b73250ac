"""What commands print: sentences and tables for people, or one JSON object a line with `--json`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio
import click

from astroresearch.lsp.client import Client, RemoteError

OK, FINDINGS, WRONG_USE, FAILED = 0, 1, 2, 3
"Exit codes; also: not found is 1."
WARM_UP_S = 3.0


class Output:
    """One command's way to speak."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._unfinished = False

    def row(self, kind: str, body: Mapping[str, Any], text: str) -> None:
        """One result: `text` for people, else `{"type": kind, …}`."""
        self._end_progress()
        click.echo(json.dumps({"type": kind, **body}, ensure_ascii=False) if self.as_json else text)

    def note(self, text: str) -> None:
        """Something beside the results: standard error for people, a `notice` line in JSON."""
        self._end_progress()
        if self.as_json:
            click.echo(json.dumps({"type": "notice", "text": text}, ensure_ascii=False))
        else:
            click.secho(text, err=True, dim=True)

    def nothing(self, text: str) -> int:
        """Says that nothing was found; the exit code for it."""
        self.note(text)
        return FINDINGS

    def progress(self, text: str) -> None:
        """What happens right now: one line of a terminal that the next one overwrites; nothing elsewhere."""
        if not self.as_json and sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r{text[:width]:<{width}}", err=True, nl=False)
            self._unfinished = True

    def _end_progress(self) -> None:
        if self._unfinished:
            self._unfinished = False
            click.echo("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", err=True, nl=False)

    def fail(self, error: Exception, code: int) -> None:
        """The error, and the end of the process."""
        if self.as_json:
            click.echo(json.dumps({"type": "error", "message": str(error)}, ensure_ascii=False))
        else:
            click.secho(f"astroresearch: {error}", err=True, fg="red")
        sys.exit(code)


def run(out: Output, main: Callable[..., Coroutine[Any, Any, int | None]], *args: Any) -> NoReturn:
    """Runs a command's coroutine and turns its errors into sentences and exit codes."""
    try:
        code = anyio.run(partial(main, *args))
    except BaseException as problem:
        error = _first(problem)
        if isinstance(error, RemoteError):
            code = FINDINGS if error.kind == "not_found" else WRONG_USE if error.remote_code == -32602 else FAILED
            out.fail(error, code)
        if isinstance(error, KeyboardInterrupt):
            out.fail(click.ClickException("Interrupted."), 130)
        raise
    sys.exit(code or OK)


async def warm_up(client: Client) -> None:
    """Gives search by meaning a moment to start: a query itself never waits for it, and a command lives for one query only."""
    with anyio.move_on_after(WARM_UP_S):
        while True:
            answer = await client.request("astroresearch/library/search", {"query": "warm up", "limit": 1})
            if answer["mode"] == "hybrid" or not answer["notice"]:
                return
            await anyio.sleep(0.1)


def _first(problem: BaseException) -> BaseException:
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    return problem


def workspace_of(value: str | None) -> Path:
    """The folder of `--workspace`, absolute; the current one by default."""
    return Path(value or ".").resolve()
