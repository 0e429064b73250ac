"""The timeline on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import click

_MARKS = {"completed": "✓", "failed": "✗", "cancelled": "■", "denied": "⊘", "interrupted": "!"}


class TimelinePrinter:
    """Prints events as they come: thoughts dim, calls with their results, quotes with page and check."""

    def __init__(self, *, err: bool, indent: str = "", show_answer: bool = False) -> None:
        self._err = err
        self._indent = indent
        self._show_answer = show_answer
        self._open = ""
        self._calls: dict[str, str] = {}

    def event(self, event: Mapping[str, Any]) -> None:
        """One event."""
        kind = event["type"]
        if kind in ("thought.delta", "message.delta"):
            self._delta(kind, event["text"])
            return
        self.close()
        if kind == "tool.start":
            self._calls[event["id"]] = event["name"]
            self._line(f"→ {event.get('title') or event['name']}  ", event["name"], fg="cyan")
        elif kind == "tool.end":
            self._tool_end(event)
        elif kind in ("notice", "error"):
            text = event.get("text") or f"{event.get('message', '')} {event.get('hint', '')}"
            self._line(f"! {text}", fg="yellow" if kind == "notice" else "red")
        elif kind == "plan":
            for item in event["items"]:
                self._line(f"  [{'x' if item['status'] == 'completed' else ' '}] {item['content']}", dim=True)
        elif kind in ("subagent.start", "subagent.end"):
            self._line(f"◦ {event.get('name', '')} {event.get('task') or event.get('summary', '')}", dim=True)

    def close(self) -> None:
        """Ends a line of deltas."""
        if self._open:
            self._open = ""
            click.echo(err=self._err)

    def _delta(self, kind: str, text: str) -> None:
        if kind == "message.delta" and not self._show_answer:
            return
        if self._open != kind:
            self.close()
            self._open = kind
            click.echo(self._indent, nl=False, err=self._err)
        click.secho(text.replace("\n", f"\n{self._indent}"), nl=False, err=self._err, dim=kind == "thought.delta")

    def _tool_end(self, event: Mapping[str, Any]) -> None:
        name = self._calls.get(event["id"], "")
        preview = " ".join(str(event.get("preview", "")).split())
        mark = _MARKS.get(event["status"], "?")
        colour = "green" if event["status"] == "completed" else "red"
        self._line(f"{mark} {name} ({event.get('durationMs', 0)} ms): {preview[:160]}", fg=colour)
        for citation in (event.get("metadata") or {}).get("citations", [])[:3]:
            check = "✓ found on the page" if citation["verified"] else "✗ not found"
            quote = textwrap.shorten(citation["quote"], 240)
            self._line(f"    “{quote}”")
            self._line(f"     {citation['label'] or citation['title']}, p. {citation['page']}  {check}", dim=True)

    def _line(self, text: str, extra: str = "", **style: Any) -> None:
        click.echo(
            self._indent + click.style(text, **style) + (click.style(extra, dim=True) if extra else ""), err=self._err
        )
