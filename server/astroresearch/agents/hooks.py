"""Hooks that the user configures: commands that are told of an event as JSON and may stop or change what happens.

`[[hooks.EVENT]]` in config.toml becomes `engine.hooks.Hook`s here; a bad entry is a problem to be shown, never an error.
docs/configuration.md ("Hooks") is the reference for the entries and for what a command is told and may answer.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import anyio
import anyio.abc

from astroresearch.agents.redact import Redactor
from astroresearch.config import SETTINGS, Problem, Settings
from astroresearch.engine import untrusted
from astroresearch.engine.hooks import CALLED, Hook, HookEvent, HookInput, HookOutput
from astroresearch.engine.untrusted import clean
from astroresearch.errors import InvalidInput

MAX_OUTPUT = 1_000_000
"Bytes of each of a command's two outputs."
MAX_TEXT = 10_000
"Characters of a reason or of added context."
DEFAULT_TIMEOUT_S = 60.0
GRACE_S = 0.4
"Between the polite and the final signal."
_SHORT = 12
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"})
_STOPPING = frozenset({"PreToolUse", "UserPromptSubmit"})
"Events whose `deny` keeps something from happening."
_FIELDS = frozenset({"matcher", "args", "timeout", "fail_closed", "type"})
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_SECRET_NAMES = frozenset(name for setting in SETTINGS if setting.secret for name in setting.env)


@dataclass(frozen=True)
class Surroundings:
    """What the commands of one window have in common."""

    workspace: Path | None
    "The open folder, told as `cwd`, trusted or not."
    redactor: Redactor
    secrets: Sequence[str] = ()
    "Variables that hold one of them are kept from the commands."
    tools: Sequence[str] = ()
    "Names of the tools, to find matchers that match none; empty: not looked at."


@dataclass(frozen=True)
class Command:
    """One command as a `HookFunction`."""

    event: HookEvent
    args: tuple[str, ...]
    folder: Path
    "Where it runs: beside the file that names it, so that nothing of an untrusted folder is picked up."
    around: Surroundings
    environment: Mapping[str, str] = field(repr=False, default_factory=dict)

    async def __call__(self, given: HookInput) -> HookOutput:
        """Runs it.

        Raises:
            OSError: It can't be started.
            InvalidInput: It failed, wrote too much, or wrote JSON that is no answer.
        """
        told = {
            "session_id": given.session_id,
            "cwd": str(self.around.workspace or ""),
            "hook_event_name": given.event,
            "agent_name": given.agent,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **given.payload,
        }
        text = json.dumps(self.around.redactor.plain(_plain(told)), ensure_ascii=False)
        code, out, err = await run(self.args, text.encode("utf-8", "replace"), self.folder, self.environment)
        if code == 2:
            return self._placed("deny", self._text(err) or "it gave no reason")
        if code != 0:
            said = self._text(err).strip()[:300]
            raise InvalidInput(f"it ended with {_ending(code)}{': ' + said if said else ''}")
        return self._answer(out)

    def _answer(self, out: bytes) -> HookOutput:
        try:
            found = json.loads(out)
        except (ValueError, RecursionError):
            return HookOutput()  # plain text is for the user's own eyes
        if not isinstance(found, dict):
            raise InvalidInput("its answer is JSON but no object.")
        answer: dict[str, Any] = self.around.redactor.plain(untrusted.plain(found))
        for name in ("reason", "updated_output", "context"):
            if not isinstance(answer.get(name), str | None):
                raise InvalidInput(f"`{name}` of its answer is no text.")
        decision, changed = answer.get("decision"), answer.get("updated_input")
        if decision not in (None, "allow", "ask", "deny"):
            raise InvalidInput(f"its decision is {str(decision)[:40]!r}; it may be allow, ask or deny.")
        if not isinstance(changed, dict | None):
            raise InvalidInput("`updated_input` of its answer is no object.")
        return self._placed(
            decision,
            _cut(answer.get("reason") or ""),
            updated_input=changed,
            updated_output=answer.get("updated_output"),
            context=_cut(answer.get("context") or ""),
        )

    def _placed(
        self, decision: Literal["allow", "ask", "deny"] | None, reason: str, *, context: str = "", **changes: Any
    ) -> HookOutput:
        """An objection is put where it is heard: to the model where nothing can be stopped any more, or to the user."""
        warning = ""
        if decision == "deny" and self.event in ("PostToolUse", "PostToolUseFailure"):
            context = "\n".join(part for part in (f"A hook objects: {reason}", context) if part)
        elif decision == "deny" and self.event not in (*_STOPPING, "Stop"):
            warning = f"A {self.event} hook objects: {reason}"
        return HookOutput(decision, reason, context=context, warning=warning, **changes)

    def _text(self, raw: bytes) -> str:
        return _cut(self.around.redactor.text(clean(raw.decode("utf-8", "replace"))).strip())


async def run(args: Sequence[str], given: bytes, folder: Path, env: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    """Runs a command in a process group of its own, of which nothing is left when this returns or is cancelled.

    Raises:
        OSError: It can't be started.
        InvalidInput: It wrote more than `MAX_OUTPUT`.
    """
    with anyio.CancelScope(shield=True):  # a cancel between fork and return would leave an orphan
        process = await anyio.open_process(
            list(args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(env),
            start_new_session=True,
        )
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = bytearray(), bytearray()
    polite = True
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_write, process, given)
            readers = [anyio.Event(), anyio.Event()]
            group.start_soon(_read, process, process.stdout, outputs[0], readers[0])
            group.start_soon(_read, process, process.stderr, outputs[1], readers[1])
            await process.wait()
            polite = False
            _signal(process, _KILL)  # what it left running ends with it, and with that the outputs
            with anyio.move_on_after(1):
                for reader in readers:
                    await reader.wait()
            group.cancel_scope.cancel()
    finally:
        await _end(process, polite=polite)
    if any(len(output) > MAX_OUTPUT for output in outputs):
        raise InvalidInput(f"it wrote more than {MAX_OUTPUT // 1_000} kB.")
    assert process.returncode is not None
    return process.returncode, bytes(outputs[0]), bytes(outputs[1])


async def _write(process: anyio.abc.Process, given: bytes) -> None:
    assert process.stdin is not None
    try:
        await process.stdin.send(given)
        await process.stdin.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        return  # it does not want to know


async def _read(
    process: anyio.abc.Process, stream: anyio.abc.ByteReceiveStream, into: bytearray, done: anyio.Event
) -> None:
    try:
        async for part in stream:
            into += part
            if len(into) > MAX_OUTPUT:
                _signal(process, _KILL)
                return
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
    finally:
        done.set()


async def _end(process: anyio.abc.Process, *, polite: bool) -> None:
    with anyio.CancelScope(shield=True):
        if polite and process.returncode is None:
            _signal(process, signal.SIGTERM)
            with anyio.move_on_after(GRACE_S):
                await process.wait()
        _signal(process, _KILL)
        await process.wait()
        await process.aclose()


def _signal(process: anyio.abc.Process, number: int) -> None:
    """To the whole group; where there are none (Windows), to the process."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()
    except (ProcessLookupError, PermissionError):
        return


def environment(secrets: Sequence[str]) -> dict[str, str]:
    """Ours without secrets, and without the places on PATH that depend on where a command runs."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _SECRET_NAMES and not any(_holds(value, secret) for secret in secrets)
    }
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if os.path.isabs(part))
    return kept


def _holds(value: str, secret: str) -> bool:
    # A short one, such as the `ollama` that a local endpoint takes for a key, may stand in any path.
    return value == secret or (len(secret) >= _SHORT and secret in value)


def configured(settings: Settings, around: Surroundings) -> tuple[list[Hook], tuple[Problem, ...]]:
    """The hooks of the settings, the user's first, and what is wrong with the entries that are left out or do nothing."""
    hooks: list[Hook] = []
    problems: list[Problem] = []
    env = environment(around.secrets)
    for file, table in settings.tables("hooks"):
        path = Path(file)
        folder = path.parent.parent if path.parent.name == ".astroresearch" else path.parent
        report = functools.partial(_report, problems, file)
        for event, given in table.items():
            if event not in get_args(HookEvent):
                report(f"`hooks.{event}`: there is no such event. The events are {', '.join(get_args(HookEvent))}.")
                continue
            if event not in CALLED:
                report(f"`hooks.{event}` is accepted, but this event is not called yet.")
            entries = given if isinstance(given, list) else [given]
            for number, entry in enumerate(entries, 1):
                name = f"hooks.{event}, entry {number}"
                for single in _singles(entry, name, report):
                    if hook := _hook(single, event, name, folder, around, env, report):
                        hooks.append(hook)
    return hooks, tuple(problems)


def _report(problems: list[Problem], file: str, message: str) -> None:
    problems.append(Problem(file, message))


Report = functools.partial[None]


def _singles(entry: Any, name: str, report: Report) -> Iterator[Mapping[str, Any]]:
    """An entry as it is, or each command of the nested form with the matcher above it."""
    if not isinstance(entry, Mapping):
        report(f"`{name}` must be a table, not {type(entry).__name__}; it is left out.")
        return
    if "hooks" not in entry:
        yield entry
        return
    inner = entry["hooks"]
    if not isinstance(inner, list):
        report(f"`{name}`: `hooks` must be a list of tables; it is left out.")
        return
    if others := set(entry) - {"matcher", "hooks"}:
        report(f"`{name}`: {', '.join(sorted(others))} belongs into the entries of `hooks`; it is ignored there.")
    for one in inner:
        if isinstance(one, Mapping):
            yield {"matcher": entry.get("matcher", "*"), **one}
        else:
            report(f"`{name}`: `hooks` holds {type(one).__name__}, not a table; that is left out.")


def _hook(
    entry: Mapping[str, Any], event: Any, name: str, folder: Path, around: Surroundings, env: Mapping[str, str],
    report: Report,
) -> Hook | None:  # fmt: skip
    if bad := _misfit(entry):
        report(f"`{name}`: {bad}; it is left out.")
        return None
    if unknown := set(entry) - _FIELDS:
        report(f"`{name}`: unknown {', '.join(sorted(map(repr, unknown)))} is ignored.")
    matcher, closed = entry.get("matcher") or "*", entry.get("fail_closed", False)
    if event not in _TOOL_EVENTS and matcher != "*":
        report(f"`{name}`: `matcher` is about tools and ignored for {event}.")
        matcher = "*"
    if closed and event not in _STOPPING:
        report(f"`{name}`: `fail_closed` is ignored for {event}, which stops nothing.")
        closed = False
    command = Command(event, tuple(entry["args"]), folder, around, env)
    hook = Hook(
        event,
        command,
        matcher,
        float(entry.get("timeout", DEFAULT_TIMEOUT_S)),
        closed,
        f"The {event} hook `{_shown(command.args)}`",
    )
    for arg in command.args:
        if _editable(folder / arg, around.workspace):
            report(f"`{name}`: the agent can edit {_shown([arg])!r}; keep it in .astroresearch/, where it can't.")
    if around.tools and event in _TOOL_EVENTS and not any(hook.matches(tool) for tool in around.tools):
        report(f"`{name}`: no tool is called {matcher!r}, so it never runs.")
    return hook


def _editable(path: Path, workspace: Path | None) -> bool:
    """Whether it is a file that the agent's tools may write: what runs as a hook should not be."""
    if workspace is None or not path.is_file():
        return False
    real, root = path.resolve(), workspace.resolve()
    return real.is_relative_to(root) and not real.is_relative_to(root / ".astroresearch")


def _misfit(entry: Mapping[str, Any]) -> str:
    args, timeout = entry.get("args"), entry.get("timeout", DEFAULT_TIMEOUT_S)
    if entry.get("type", "command") != "command":
        return f"`type` can only be command, not {entry['type']!r}"
    if not isinstance(args, list) or not args or not all(isinstance(a, str) for a in args) or not args[0]:
        return '`args` must be the command and its arguments, as in ["python3", "check.py"]'
    if any("\0" in a for a in args):
        return "`args` holds a null character"
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3_600:
        return "`timeout` must be a number of seconds up to 3600"
    if not isinstance(entry.get("matcher", ""), str):
        return "`matcher` must be a text"
    if not isinstance(entry.get("fail_closed", False), bool):
        return "`fail_closed` must be true or false"
    return ""


def _shown(args: Sequence[str]) -> str:
    text = clean(" ".join(args)).replace("\n", " ")
    return text if len(text) <= 80 else text[:79] + "…"


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[… cut after {MAX_TEXT} characters]"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
