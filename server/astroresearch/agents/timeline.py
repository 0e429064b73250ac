"""A turn's events on their way out: numbered, coalesced, redacted, handed to the sink, and stored as sent."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio

from astroresearch.agents.redact import Redactor
from astroresearch.engine.events import Event, MessageDelta, Stamped, ThoughtDelta, TurnDone, to_wire
from astroresearch.engine.turn import Emit
from astroresearch.errors import AstroResearchError, StoreError

Sink = Callable[[dict[str, Any]], None]
StoreEvents = Callable[[Sequence[dict[str, Any]]], Awaitable[None]]

DELTA_INTERVAL_S = 1 / 30
STORE_INTERVAL_S = 0.25
_log = logging.getLogger(__name__)
_Delta = ThoughtDelta | MessageDelta


def now() -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Timeline:
    """One turn's events, subagents included. Emitting never blocks and never raises; `run` and `close` do the waiting.

    Deltas of one agent and kind are joined: the first of a block goes out at once, later ones at most 30 times a second,
    and everything that waits goes out before any other event. What the sink gets is what is stored.
    """

    def __init__(
        self, *, turn_id: str, next_seq: int, sink: Sink, store: StoreEvents, redactor: Redactor | None = None
    ) -> None:
        self.turn_id = turn_id
        self.next_seq = next_seq
        self.done = False
        self._sink = sink
        self._store = store
        self._redactor = redactor or Redactor()
        self._waiting: tuple[type[_Delta], str, str] | None = None
        self._last_delta = -1.0
        self._unsaved: list[dict[str, Any]] = []
        self._wake = anyio.Event()
        self._saving = anyio.Lock()

    def emitter(self, agent: str) -> Emit:
        """The function through which one agent emits."""

        def emit(event: Event) -> None:
            self._take(event, agent)

        return emit

    def _take(self, event: Event, agent: str) -> None:
        if self.done:
            _log.warning("An event came after the turn's end and was left out: %s", type(event).__name__)
            return
        if isinstance(event, (ThoughtDelta, MessageDelta)):
            self._take_delta(event, agent)
            return
        self._flush_delta(whole=True)
        self._send(event, agent)
        self.done = isinstance(event, TurnDone)

    def _take_delta(self, event: _Delta, agent: str) -> None:
        kind = type(event)
        if self._waiting is not None and self._waiting[:2] != (kind, agent):
            self._flush_delta(whole=True)
        before = self._waiting[2] if self._waiting is not None else ""
        self._waiting = (kind, agent, before + event.text)
        if anyio.current_time() - self._last_delta >= DELTA_INTERVAL_S:
            self._flush_delta()
        else:
            self._wake.set()

    def _flush_delta(self, *, whole: bool = False) -> None:
        """Sends what waits; unless `whole`, an end that may be the head of a secret is kept back."""
        if self._waiting is None:
            return
        kind, agent, text = self._waiting
        keep = 0 if whole else self._redactor.held(text)
        out, rest = text[: len(text) - keep], text[len(text) - keep :]
        self._waiting = (kind, agent, rest) if rest else None
        if out:
            self._last_delta = anyio.current_time()
            self._send(kind(out), agent)

    def _send(self, event: Event, agent: str) -> None:
        body = self._redactor.plain(to_wire(Stamped(self.next_seq, self.turn_id, agent, now(), event)))
        self.next_seq += 1
        self._unsaved.append(body)
        self._sink(body)
        self._wake.set()

    async def run(self) -> None:
        """Sends late deltas and stores batches until cancelled: start it beside the turn."""
        saved = anyio.current_time()
        while True:
            await self._wake.wait()
            await anyio.sleep(DELTA_INTERVAL_S)
            self._wake = anyio.Event()
            self._flush_delta()
            if self._unsaved and anyio.current_time() - saved >= STORE_INTERVAL_S - DELTA_INTERVAL_S:
                await self.save()
                saved = anyio.current_time()
            elif self._unsaved or self._waiting is not None:
                self._wake.set()

    async def close(self) -> None:
        """Sends and stores the rest; what can't be stored is given up with a line in the log."""
        self._flush_delta(whole=True)
        await self.save()
        if self._unsaved:
            _log.error("%d events of turn %s could not be stored.", len(self._unsaved), self.turn_id)

    async def save(self) -> None:
        """Stores what was sent so far; waits for the store's answer."""
        if not self._unsaved:
            return
        with anyio.CancelScope(shield=True):
            async with self._saving:  # one writer at a time, or a batch would be stored twice
                batch = list(self._unsaved)
                try:
                    await self._store(batch)
                except StoreError as error:
                    _log.warning("Events wait to be stored: %s", error)
                    return
                except AstroResearchError as error:  # the session is gone or somebody else's: trying again can't help
                    _log.warning("Events could not be stored: %s", error)
                del self._unsaved[: len(batch)]
