"""A manager over a real store in a folder of its own, with a scripted model and a front end that answers by plan."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio
import pytest

from astroresearch.agents.request import AgentSettings, SendOutcome, SendRequest
from astroresearch.agents.session import SessionManager
from astroresearch.agents.skills import SkillLibrary
from astroresearch.engine.hooks import Hook, Hooks
from astroresearch.engine.model import Model
from astroresearch.engine.tool import Arguments, Effect, Registry, Tool, ToolContext, ToolOutput
from astroresearch.engine.turn import PermissionAnswer, PermissionRequest
from astroresearch.models.scripted import Scripted
from astroresearch.store.database import Store
from astroresearch.tools.persist import FileResults
from astroresearch.tools.registry import standard
from tests.fakes.services import FakeLibrary, FolderWorkspace, services

Wire = dict[str, Any]


@dataclass
class FakeFrontEnd:
    """Answers what is planned, in order; without a plan it waits until it is withdrawn."""

    silent: bool = False
    answers_in_timeline: bool = True
    choices: list[str] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)
    requests: list[PermissionRequest] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    withdrawn: int = 0

    async def permission(self, request: PermissionRequest, *, session_id: str, turn_id: str) -> PermissionAnswer | None:
        self.requests.append(request)
        if self.choices:
            return PermissionAnswer(request.id, self.choices.pop(0))  # type: ignore[arg-type]
        await self._forever()
        return None

    async def ask(
        self, question_id: str, text: str, choices: Sequence[str], *, session_id: str, turn_id: str
    ) -> str | None:
        self.questions.append(text)
        if self.answers:
            return self.answers.pop(0)
        await self._forever()
        return None

    async def _forever(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.withdrawn += 1


class NoArguments(Arguments):
    """None, but a name to tell calls apart."""

    name: str = ""


class Waiter(Tool[NoArguments, Any]):
    """Waits until it is let go, and counts who waits."""

    name = "waiter"
    description = "Waits."
    arguments = NoArguments
    default_decision = "allow"

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.release = anyio.Event()
        self.changed = anyio.Event()

    def is_concurrency_safe(self, args: NoArguments) -> bool:
        return True

    async def execute(self, args: NoArguments, context: ToolContext[Any]) -> ToolOutput:
        self.begun += 1
        self._tell()
        try:
            await self.release.wait()
        finally:
            self.ended += 1
            self._tell()
        return ToolOutput(f"waited {args.name}")

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    async def until(self, begun: int) -> None:
        with anyio.fail_after(10):
            while self.begun < begun:
                await self.changed.wait()


class Writer(Waiter):
    """The same with an effect; finishes in spite of a cancel."""

    name = "writer"
    effect: ClassVar[Effect] = "library_write"
    interrupt_behavior: ClassVar[Literal["cancel", "block"]] = "block"


class Recorder(list[Wire]):
    """A sink that can be waited on."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = anyio.Event()

    def append(self, event: Wire) -> None:
        super().append(event)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, kind: str) -> Wire:
        """The first event of this type, as soon as it is there."""
        with anyio.fail_after(10):
            while True:
                found = next((event for event in self if event["type"] == kind), None)
                if found is not None:
                    return found
                await self._changed.wait()


@dataclass
class Desk:
    """A manager with everything around it that tests look at."""

    manager: SessionManager
    store: Store
    model: Scripted
    front_end: FakeFrontEnd
    workspace: FolderWorkspace
    library: FakeLibrary
    waiter: Waiter
    writer: Writer
    events: Recorder = field(default_factory=Recorder)

    async def send(self, text: str, session_id: str | None = None, **others: Any) -> SendOutcome:
        return await self.manager.send(SendRequest(text, session_id, **others), self.events.append)

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[Wire]:
        return [event for event in self.events if event["type"] == kind]


DeskMaker = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk(tmp_path: Path) -> DeskMaker:
    """`async with desk(script, …) as d:`; may be used several times on one library."""
    return lambda *args, **others: make_desk(tmp_path, *args, **others)


@asynccontextmanager
async def make_desk(
    home: Path,
    script: Any = (),
    *,
    front_end: FakeFrontEnd | None = None,
    settings: AgentSettings | None = None,
    hooks: Sequence[Hook] = (),
    library: FakeLibrary | None = None,
    registry: Registry | None = None,
    skills: Sequence[Path] = (),
    other_model: Model | None = None,
) -> AsyncIterator[Desk]:
    """A manager in a folder of its own."""
    folder = home / "paper"
    if not folder.exists():
        folder.mkdir()
        (folder / "main.tex").write_text("\\section{Intro}\nCooling flows are old.\n")
    store = await Store.open(home / "library.db")
    model = Scripted(script, record=True)
    waiter, writer = Waiter(), Writer()
    tools = registry or standard()
    tools.add(waiter)
    tools.add(writer)
    front = front_end or FakeFrontEnd()
    shelf = library or FakeLibrary()
    workspace = FolderWorkspace(folder)
    known = SkillLibrary(skills)
    manager = SessionManager(
        sessions=store.sessions,
        models=lambda name: other_model or model,
        registry=tools,
        hooks=Hooks(hooks),
        results=FileResults(home / "tool-results"),
        front_end=front,
        skills=known,
        settings=settings,
        audit=store.audit,
    )
    manager.use(
        services(
            workspace,
            shelf,
            questions=manager.questions,
            todos=manager.todos,
            skills=known,
            spawner=manager.spawner,
        )
    )
    try:
        async with manager:
            yield Desk(manager, store, model, front, workspace, shelf, waiter, writer)
    finally:
        await store.aclose()


def check_timeline(events: Sequence[Wire]) -> None:
    """The promises of a timeline: `seq` without gaps, each begun item ends once, `session` first and `done` last in a turn."""
    seqs = [event["seq"] for event in events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    turns: dict[str, list[Wire]] = {}
    for event in events:
        turns.setdefault(event["turnId"], []).append(event)
    for turn in turns.values():
        types = [event["type"] for event in turn]
        assert types[0] == "session"
        assert types[-1] == "done"
        assert types.count("done") == 1
        for begin, end in (("tool.start", "tool.end"), ("subagent.start", "subagent.end")):
            begun = sorted(event["id"] for event in turn if event["type"] == begin)
            assert begun == sorted(event["id"] for event in turn if event["type"] == end)
        for kind in ("permission", "question"):
            asked = [event for event in turn if event["type"] == kind]
            resolved = sorted(event["id"] for event in asked if "resolved" in event)
            assert sorted(event["id"] for event in asked if "resolved" not in event) == resolved


def check_history(messages: Sequence[Any]) -> None:
    """I1 and I2 on the stored messages, in whatever order results were stored within a step."""
    calls = [call.id for message in messages for call in message.tool_calls]
    results = [message.tool_call_id for message in messages if message.role == "tool"]
    assert sorted(calls) == sorted(results)
    assert len(set(calls)) == len(calls)


def strip(text: str) -> str:
    """White space folded."""
    return re.sub(r"\s+", " ", text).strip()
