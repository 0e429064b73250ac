"""A process that runs one turn and is killed in it: `python -m tests.faults.turn_child FOLDER`.

Prints the session's id and every event that was sent, a JSON line each, as soon as it is out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from astroresearch.agents.request import SendRequest
from tests.unit.agents.conftest import make_desk

SCRIPT: list[Any] = [
    {
        "thought": "First the library.",
        "text": "I look.",
        "calls": [
            {"name": "rag_search", "arguments": {"query": "ripples"}},
            {"name": "query_target", "arguments": {"name": "NGC 1275"}},
            {"name": "save_note", "arguments": {"text": "A note"}},
        ],
    },
    "An answer in a few words.",
]


async def main(folder: Path) -> None:
    async with make_desk(folder, SCRIPT) as d:

        def sink(event: dict[str, Any]) -> None:
            print(json.dumps(event), flush=True)

        await d.manager.send(SendRequest("What are the ripples?"), sink)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
