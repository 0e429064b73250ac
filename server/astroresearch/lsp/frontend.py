"""How this editor is asked: our own requests where it declares them, else `window/showMessageRequest`, else nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types as T
from pygls.exceptions import JsonRpcException

from astroresearch.engine.turn import PermissionAnswer, PermissionRequest
from astroresearch.lsp.protocol import PREFIX

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server

_TITLES = {
    "once": "Allow once",
    "session": "Allow in this session",
    "workspace": "Allow in this workspace",
    "deny": "Deny",
}


class EditorFrontEnd:
    """Fits `agents.frontend.FrontEnd`."""

    answers_in_timeline = False

    def __init__(self, server: Server, timeout_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s

    @property
    def silent(self) -> bool:
        """Whether this editor can show no question at all."""
        return not (
            self._server.client_declares("permission")
            or self._server.client_declares("askUser")
            or self._server.supports("window", "show_message")
            or self._server.startup.client_name in _ASKABLE
        )

    async def permission(self, request: PermissionRequest, *, session_id: str, turn_id: str) -> PermissionAnswer | None:
        """Asks whether a call may run; anything but a clear yes is no answer."""
        options = ["once", "session", "workspace", "deny"] if request.offer_always else ["once", "deny"]
        if self._server.client_declares("permission"):
            answer = await self._ask(
                PREFIX + "permission/request",
                {
                    "id": request.id, "sessionId": session_id, "turnId": turn_id, "tool": request.tool,
                    "toolId": request.call_id, "agent": request.agent, "title": request.title,
                    "detail": request.detail, "reason": request.reason, "rule": request.rule,
                    "options": [{"id": o, "label": _TITLES[o]} for o in options],
                },
            )  # fmt: skip
            if not isinstance(answer, Mapping) or answer.get("choice") not in options:
                return None
            return PermissionAnswer(str(answer.get("id")), answer["choice"], str(answer.get("reason") or ""))
        text = f"{request.title}\n\n{request.detail[:1500]}" + (f"\n\n{request.reason}" if request.reason else "")
        chosen = await self._choose(text, [_TITLES[o] for o in options])
        choice = next((o for o in options if _TITLES[o] == chosen), None)
        return PermissionAnswer(request.id, choice) if choice else None  # type: ignore[arg-type]

    async def ask(
        self, question_id: str, text: str, choices: Sequence[str], *, session_id: str, turn_id: str
    ) -> str | None:
        """Asks a question of the agent. Without our own request only one with choices can be answered."""
        if self._server.client_declares("askUser"):
            answer = await self._ask(
                PREFIX + "user/ask",
                {
                    "id": question_id, "sessionId": session_id, "turnId": turn_id, "text": text,
                    "choices": list(choices),
                },
            )  # fmt: skip
            if not isinstance(answer, Mapping) or answer.get("id") != question_id:
                return None
            return str(answer.get("answer", "")) or None
        return await self._choose(text, list(choices) or ["Yes", "No"])

    async def _choose(self, text: str, titles: list[str]) -> str | None:
        actions = [T.MessageActionItem(title=title) for title in titles]
        answer = await self._ask(
            T.WINDOW_SHOW_MESSAGE_REQUEST, T.ShowMessageRequestParams(T.MessageType.Warning, text, actions)
        )
        return getattr(answer, "title", None)

    async def _ask(self, method: str, params: Any) -> Any:
        try:
            return await self._server.protocol.ask_client(method, params, timeout_s=self._timeout_s)
        except (TimeoutError, JsonRpcException):
            return None


_ASKABLE = frozenset({"Neovim"})
"Editors that answer `window/showMessageRequest` without declaring it."
