"""The commands; each talks to the real language server, as an editor does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from astroresearch import __version__

_LAZY = {
    "demo": ("astroresearch.cli.demo", "demo", "Play the main job with sample papers: no account, key or network."),
    "ask": ("astroresearch.cli.ask", "ask", "Ask the research agent about a manuscript or the library."),
    "add": ("astroresearch.cli.papers", "add", "Add papers: PDF files, folders, arXiv ids, bibcodes, DOIs."),
    "search": ("astroresearch.cli.papers", "search", "Search ADS and arXiv for papers."),
    "passages": ("astroresearch.cli.papers", "passages", "Search the text of the library."),
    "papers": ("astroresearch.cli.papers", "papers", "List the papers of the library."),
    "export": ("astroresearch.cli.papers", "export", "Print BibTeX of papers of the library."),
    "target": ("astroresearch.cli.papers", "target", "Resolve the name of a celestial object."),
    "notes": ("astroresearch.cli.notes", "notes", "List, add, show, delete and export notes."),
    "sessions": ("astroresearch.cli.sessions", "sessions", "List, show, audit, export and delete conversations."),
    "permissions": (
        "astroresearch.cli.permissions",
        "permissions",
        "List what you allowed the agent, and take it back.",
    ),
    "tools": ("astroresearch.cli.admin", "tools", "List the agent's tools."),
    "check": (
        "astroresearch.cli.check",
        "check",
        "Report what is wrong in .tex and .bib files: for CI and pre-commit.",
    ),
    "trust": ("astroresearch.cli.admin", "trust", "Trust a folder: its settings, skills and hooks are then used."),
    "doctor": ("astroresearch.cli.admin", "doctor", "Say what is configured, what is missing, and how to mend it."),
}


class _Group(click.Group):
    """Imports a command's module when it is run, so that `--help` and each command stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["serve", *_LAZY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "serve":
            return _serve
        if cmd_name not in _LAZY:
            return None
        module, name, _ = _LAZY[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [("serve", "Run the language server on standard input and output: what editors start.")]
        rows += [(name, doc) for name, (_, _, doc) in _LAZY.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command("serve")
def _serve() -> None:
    """Run the language server on standard input and output: what editors start."""
    from astroresearch.cli.serve import serve

    serve()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def group() -> None:
    """A research agent for astronomers who write LaTeX.

    Everything here talks to the same language server that editors use. Exit codes: 0 fine, 1 findings or not found,
    2 wrong use, 3 a service or model failed. `--json` prints one JSON object a line (docs/cli.md).
    """


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` for a command."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")(function)
