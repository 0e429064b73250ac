"""A process that uses a library and says on its standard output what it was told is safe, so that a test can kill it.

    store_child.py zygote DB          for each line on stdin: fork a child that works until it is killed
    store_child.py scenario DB        one pass over everything that is stored
    store_child.py mixed DB NAME S    works for S seconds beside others, prints one JSON object at the end
    store_child.py open DB [nobody | limit BYTES]   opens and saves a note; prints `ok` or the error

A line `ack KIND ID…` is printed once the store has said so.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
from pathlib import Path

import anyio

from astroresearch.domain.note import Note
from astroresearch.domain.paper import Identifiers, Paper
from astroresearch.domain.passage import PageRecord, Passage
from astroresearch.engine.events import MessageDelta, Stamped, to_wire
from astroresearch.engine.messages import Message, ToolCall, new_call_id
from astroresearch.engine.turn import TurnUsage
from astroresearch.errors import AstroResearchError
from astroresearch.store.database import Store
from astroresearch.store.text import now


def say(*words: object) -> None:
    os.write(1, (" ".join(str(w) for w in words) + "\n").encode())


async def save_note(store: Store, rng: random.Random) -> str:
    text = f"note {rng.random()} " + "words of a user " * rng.choice([1, 20, 800])
    note = await store.notes.create(Note(id="", text=text, tags=("t",)))
    say("ack note", note.id, len(text))
    return note.id


async def index_paper(store: Store, rng: random.Random, number: int) -> str:
    texts = [f"passage {n} of paper {number}, version {rng.random()} " + "cooling flow " * 40 for n in range(8)]
    paper = Paper(
        id="", title=f"Paper {number}", state="searchable", identifiers=Identifiers(arxiv=f"2405.{number:05d}")
    )
    pages = [PageRecord(n + 1, t, b"w" * 500) for n, t in enumerate(texts)]
    passages = [Passage(0, "", n, "", n + 1, n + 1, t, 0, len(t)) for n, t in enumerate(texts)]
    stored = await store.passages.replace(paper, pages, passages)
    say("ack paper", stored[0].paper_id, len(texts))
    await store.passages.add_vectors(
        "m", 8, [(p.id, struct.pack("8f", *(rng.random() for _ in range(8)))) for p in stored]
    )
    say("ack vectors", stored[0].paper_id, len(texts))
    return stored[0].paper_id


async def take_turn(store: Store, rng: random.Random, session: str) -> None:
    turn = f"t{rng.randrange(10**9)}"
    await store.sessions.append(session, Message("user", f"question {turn}", turn_id=turn), durable=True)
    say("ack message", session, turn)
    seq = await store.sessions.next_seq(session)
    await store.sessions.add_events(
        session, [to_wire(Stamped(seq + n, turn, "main", now(), MessageDelta(f"text {n}"))) for n in range(5)]
    )
    say("ack events", session, seq + 4)
    call = ToolCall(new_call_id(), "file_edit", "{}")
    await store.sessions.append(session, Message("assistant", "", (call,), turn_id=turn), durable=False)
    await store.sessions.tool_started(session, call, {"path": "a.tex"}, "workspace_write", turn, "main")
    say("ack started", session, call.id)
    result = Message("tool", "done", tool_call_id=call.id, name=call.name, status="completed", turn_id=turn)
    await store.sessions.tool_finished(session, call, result)
    say("ack finished", session, call.id)
    await store.sessions.append(session, Message("assistant", "An answer.", turn_id=turn), durable=False)
    await store.sessions.finish_turn(session, turn, "end_turn", TurnUsage(1, 1), "An answer.")
    say("ack turn", session, turn)


async def work(path: Path, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    store = await Store.open(path)
    session = (await store.sessions.create("A session")).id
    say("ack session", session)
    for number in range(rounds):
        for _ in range(3):
            await save_note(store, rng)
        await take_turn(store, rng, session)
        await index_paper(store, rng, number % 20)
    await store.back_up()
    await store.aclose()
    say("finished")


async def mixed(path: Path, name: str, seconds: float) -> None:
    rng = random.Random(name)
    errors: list[str] = []
    notes: list[str] = []
    papers: list[str] = []
    saves: list[float] = []
    try:
        store = await Store.open(path)
        session = (await store.sessions.create(name)).id
        end = time.monotonic() + seconds
        number = turns = 0
        say("ready")
        sys.stdin.readline()
        while time.monotonic() < end:
            begin = time.monotonic()
            notes.append(await save_note(store, rng))
            saves.append(time.monotonic() - begin)
            if number % 4 == 0:
                await take_turn(store, rng, session)
                turns += 1
            if number % 10 == 0:
                papers.append(await index_paper(store, rng, (number // 10) % 10))
            number += 1
        await store.aclose()
    except AstroResearchError as error:
        errors.append(f"{type(error).__name__}: {error}")
    saves.sort()
    say(
        "result",
        json.dumps(
            {
                "notes": notes,
                "papers": sorted(set(papers)),
                "errors": errors,
                "turns": turns,
                "session": session,
                "p99_ms": 1000 * saves[int(0.99 * len(saves))],
            }
        ),
    )


async def open_once(path: Path) -> None:
    try:
        store = await Store.open(path)
        try:
            await store.notes.create(Note(id="", text="x" * 1000))
        finally:
            await store.aclose()
        say("ok")
    except AstroResearchError as error:
        say("error", type(error).__name__, str(error))


def zygote(path: Path) -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            anyio.run(work, path, int(line), 10_000)
            os._exit(0)
        say("pid", pid)
        os.waitpid(pid, 0)
        say("dead", pid)


def main() -> None:
    mode, path, *rest = sys.argv[1:]
    if mode == "zygote":
        zygote(Path(path))
    elif mode == "scenario":
        anyio.run(work, Path(path), 1, 3)
    elif mode == "mixed":
        anyio.run(mixed, Path(path), rest[0], float(rest[1]))
    elif mode == "open":
        if "limit" in rest:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (int(rest[-1]), int(rest[-1])))
        if "nobody" in rest and os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        anyio.run(open_once, Path(path))


if __name__ == "__main__":
    main()
