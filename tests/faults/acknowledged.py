"""What a child process was told is safe, and whether a library still has it."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from astroresearch.store.database import Store

REPO = Path(__file__).resolve().parents[2]
CHILD = REPO / "tests" / "fakes" / "store_child.py"


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(REPO / "server"), "PYTHONUNBUFFERED": "1"} | more


def command(mode: str, path: Path, *rest: str) -> list[str]:
    return [sys.executable, str(CHILD), mode, str(path), *rest]


class Acknowledged:
    """The `ack` lines of one or several children."""

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}
        self.papers: set[str] = set()
        self.sessions: set[str] = set()
        self.by_session: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def take(self, lines: Iterable[str]) -> None:
        for line in lines:
            match line.split():
                case ["ack", "note", note, size]:
                    self.notes[note] = int(size)
                case ["ack", "paper" | "vectors", paper, _]:
                    self.papers.add(paper)
                case ["ack", "session", session]:
                    self.sessions.add(session)
                case ["ack", kind, session, value]:
                    self.by_session[session][kind].append(value)

    async def lost(self, store: Store) -> list[str]:
        """A line for everything that is not there any more, or that does not fit together."""
        out = await store.check()
        for note, size in self.notes.items():
            found = await store.notes.get(note)
            if found is None or len(found.text) != size:
                out.append(f"note {note} is lost")
        for paper in self.papers:
            if len(await store.passages.of_paper(paper)) != 8 or len(await store.passages.pages(paper)) != 8:
                out.append(f"text of {paper} is lost")
        out += [f"session {s} is lost" for s in self.sessions if await store.sessions.get(s) is None]
        for session, kinds in self.by_session.items():
            out += await self._lost_of_session(store, session, kinds)
        return out

    async def _lost_of_session(self, store: Store, session: str, kinds: dict[str, list[str]]) -> list[str]:
        messages = await store.sessions.messages(session)
        asked = {m.turn_id for m in messages if m.role == "user"}
        answered = {m.tool_call_id for m in messages if m.role == "tool"}
        open_calls = {c.id for c in await store.sessions.open_calls(session) if c.started}
        record = await store.sessions.get(session)
        events = await store.sessions.events(session, limit=10**9)
        out = [f"message {m} is lost" for m in kinds["message"] if m not in asked]
        out += [f"start of {c} is lost" for c in kinds["started"] if c not in answered | open_calls]
        out += [f"result of {c} is lost" for c in kinds["finished"] if c not in answered]
        if record is None or record.turn_count < len(kinds["turn"]):
            out.append(f"turns of {session} are lost")
        if kinds["events"] and len(events) < int(kinds["events"][-1]):
            out.append(f"events of {session} are lost")
        if [e["seq"] for e in events] != list(range(1, len(events) + 1)):
            out.append(f"events of {session} have gaps")
        return out
