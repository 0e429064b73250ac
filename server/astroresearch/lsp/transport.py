"""JSON-RPC on top of pygls: a cancel scope for each request, an answer to each request, nothing leaked, nothing blocked.

pygls brings the message types, the capabilities and the sending; how messages are dispatched is ours, since pygls 2.1 leaves
requests with unfit parameters unanswered, runs commands on after their cancel, and keeps an entry for each notification
(docs/architecture.md, "The message loop"). Each override has a test in tests/protocol/test_transport.py.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import anyio
import anyio.abc
from cattrs import transform_error
from cattrs.errors import BaseValidationError
from lsprotocol import types as T
from pygls.exceptions import JsonRpcException
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from astroresearch.errors import AstroResearchError, InvalidInput
from astroresearch.lsp.protocol import EVENT_WORDS, METHODS, PROTOCOL_VERSION

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_FAILED = -32803
CONTENT_MODIFIED = -32801
REQUEST_CANCELLED = -32800

Handler = Callable[[Any], Awaitable[Any]]
Command = Callable[[list[Any]], Awaitable[Any]]


class ResponseFailure(Exception):
    """A handler's wish to answer with this code; raised by handlers that need another one than RequestFailed."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def converter_factory() -> Any:
    """pygls' converter, with the parameters and results of unknown methods left as plain JSON.

    pygls would turn them into named tuples and rename keys such as `class` or `some-key`.
    """
    converter = default_converter()  # type: ignore[no-untyped-call]
    for cls in (JsonRPCRequestMessage, JsonRPCNotification, JsonRPCResponseMessage):
        converter.register_structure_hook(cls, _keep_plain)
    return converter


def _keep_plain(data: dict[str, Any], cls: type[Any]) -> Any:
    fields = {"id", "method", "jsonrpc", "params", "result"} & {a.name for a in cls.__attrs_attrs__}
    return cls(**{name: data.get(name) for name in fields})


class Protocol(LanguageServerProtocol):
    """The dispatch of messages."""

    tasks: anyio.abc.TaskGroup | None = None
    exit_code: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scopes: dict[int | str, anyio.CancelScope] = {}
        self._initialized = False
        self.handlers: dict[str, Handler] = {}
        "Requests and notifications that run as tasks."
        self.sync_handlers: dict[str, Callable[[Any], None]] = {}
        "Notifications that must be handled in order, at once: document changes."
        self.commands: dict[str, Command] = {}

    @lsp_method(T.INITIALIZE)
    def lsp_initialize(self, params: T.InitializeParams) -> Any:
        """Adds what we can beyond the standard to pygls' answer."""
        result = yield from super().lsp_initialize(params)
        result.capabilities.experimental = {
            "astroresearch": {
                "protocolVersion": PROTOCOL_VERSION, "methods": sorted(METHODS), "events": list(EVENT_WORDS),
            }
        }  # fmt: skip
        return result

    # -- what arrives

    def feed(self, body: bytes) -> None:
        """Handles one message body; whatever it holds, a request gets exactly one answer."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._fail(None, PARSE_ERROR, f"The message is not JSON: {error}")
            return
        if not isinstance(data, dict):
            self._fail(None, INVALID_REQUEST, "A message must be one JSON object.")
            return
        is_request = "id" in data and "method" in data
        try:
            if is_request and (refusal := self._refusal(str(data["method"]))):
                self._fail(data["id"], *refusal)
            elif is_request:
                self._request(data)
            elif "method" in data:
                self._notification(data)
            elif "id" in data:
                self._response(data)
        except JsonRpcException as error:
            if is_request:
                self._fail(data["id"], INVALID_PARAMS, _why_invalid(error))
            else:
                log.warning("Ignored a %s that does not fit: %s", data.get("method", "response"), _why_invalid(error))

    def _refusal(self, method: str) -> tuple[int, str] | None:
        if self._shutdown:
            return INVALID_REQUEST, "The server is shutting down."
        if method == T.INITIALIZE:
            return (INVALID_REQUEST, "The server is initialized already.") if self._initialized else None
        if not self._initialized:
            return NOT_INITIALIZED, "The server is not initialized yet."
        return None

    def _request(self, data: dict[str, Any]) -> None:
        msg_id, method = data["id"], str(data["method"])
        if not isinstance(msg_id, (int, str)) or isinstance(msg_id, bool):
            self._fail(None, INVALID_REQUEST, "A request's id must be a number or a string.")
            return
        if method in (T.INITIALIZE, T.SHUTDOWN):
            message = self.structure_message(data)
            self._initialized = True
            self.handle_message(message)
            return
        handler = self._execute_command if method == T.WORKSPACE_EXECUTE_COMMAND else self.handlers.get(method)
        if handler is None:
            self._fail(msg_id, METHOD_NOT_FOUND, f"Unknown method `{method}`.")
            return
        if msg_id in self._scopes:
            self._fail(msg_id, INVALID_REQUEST, f"A request with id {msg_id!r} is running already.")
            return
        params = self.structure_message(data).params
        scope = self._scopes[msg_id] = anyio.CancelScope()
        self._group().start_soon(self._answer, msg_id, method, handler, params, scope)

    def _notification(self, data: dict[str, Any]) -> None:
        method = str(data["method"])
        if method == T.CANCEL_REQUEST:
            params = data.get("params")
            if isinstance(params, dict) and (scope := self._scopes.get(params.get("id", ""))) is not None:
                scope.cancel()
            return
        if method == T.EXIT:
            self.exit_code = 0 if self._shutdown else 1
            return
        if not self._initialized or self._shutdown:
            return
        if method in self.sync_handlers:
            try:
                self.sync_handlers[method](self.structure_message(data).params)
            except JsonRpcException:
                raise
            except Exception:  # the edge: one bad notification must not end the server
                log.exception("Handling the notification %s failed", method)
        elif (handler := self.handlers.get(method)) is not None:
            self._group().start_soon(self._run_notification, method, handler, self.structure_message(data).params)
        elif method in self.fm.builtin_features:
            self.handle_message(self.structure_message(data))

    def _response(self, data: dict[str, Any]) -> None:
        future = self._request_futures.get(data["id"])
        try:
            message = self.structure_message(data)
        except JsonRpcException as error:
            # Emacs answers requests that it does not know with null, which fits no result type.
            self._request_futures.pop(data["id"], None)
            if future is not None and not future.done():
                future.set_exception(error)
            return
        if future is None or future.done():
            self._request_futures.pop(data["id"], None)
            return
        self.handle_message(message)

    # -- running handlers

    def _group(self) -> anyio.abc.TaskGroup:
        assert self.tasks is not None, "messages are fed inside the server's task group"
        return self.tasks

    async def _answer(
        self, msg_id: int | str, method: str, handler: Handler, params: Any, scope: anyio.CancelScope
    ) -> None:
        result: Any = None
        error: T.ResponseError | None = None
        with scope:
            try:
                result = await handler(params)
            except Exception as problem:  # noqa: BLE001 - the edge: every request gets an answer
                error = response_error(problem, method)
        self._scopes.pop(msg_id, None)
        if scope.cancelled_caught:
            error = T.ResponseError(code=REQUEST_CANCELLED, message="The request was cancelled.")
        self._send_response(msg_id, result=result, error=error)

    async def _run_notification(self, method: str, handler: Handler, params: Any) -> None:
        try:
            await handler(params)
        except Exception as problem:  # the edge: a notification has nobody to answer to
            level = logging.INFO if isinstance(problem, (AstroResearchError, ResponseFailure)) else logging.ERROR
            log.log(level, "Handling the notification %s failed", method, exc_info=problem)

    async def _execute_command(self, params: T.ExecuteCommandParams) -> Any:
        command = self.commands.get(params.command)
        if command is None:
            raise ResponseFailure(INVALID_PARAMS, f"There is no command `{params.command}`.")
        return await command(list(params.arguments or []))

    # -- what is sent

    def _send_response(self, msg_id: Any, result: Any = None, error: T.ResponseError | None = None) -> None:
        if error is None:
            try:
                self._write({"jsonrpc": "2.0", "id": msg_id, "result": result})
                return
            except (TypeError, ValueError, AttributeError) as problem:
                log.error("The result of request %r can't be sent: %s", msg_id, problem)
                error = T.ResponseError(code=INTERNAL_ERROR, message="The result could not be sent; see the log.")
        body: dict[str, Any] = {"code": int(error.code), "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        self._write({"jsonrpc": "2.0", "id": msg_id, "error": body})

    def _send_data(self, data: Any) -> None:
        if data:
            self._write(data)

    def _write(self, data: Any) -> None:
        if self.writer is None:
            return
        body = json.dumps(data, default=self._serialize_message, separators=(",", ":")).encode("ascii")
        self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _fail(self, msg_id: Any, code: int, message: str) -> None:
        self._send_response(msg_id, error=T.ResponseError(code=code, message=message))

    async def ask_client(self, method: str, params: Any, *, timeout_s: float) -> Any:
        """A request to the editor, with a time-out; a cancel withdraws it.

        Raises:
            TimeoutError: No answer in time.
            JsonRpcException: The editor answered with an error, or with something that does not fit.
        """
        future: Future[Any] = self.send_request(method, params)
        msg_id = next(key for key, value in self._request_futures.items() if value is future)
        done = anyio.Event()
        future.add_done_callback(lambda _: done.set())  # answers are fed on the event loop's own thread
        try:
            with anyio.fail_after(timeout_s):
                await done.wait()
        finally:
            if not future.done():
                self._request_futures.pop(msg_id, None)
                self._result_types.pop(msg_id, None)
                self.notify(T.CANCEL_REQUEST, T.CancelParams(id=msg_id))
        return future.result()


def response_error(problem: Exception, method: str) -> T.ResponseError:
    """What the editor is told of a failure: a sentence for people, never a traceback; the log has the rest."""
    if isinstance(problem, ResponseFailure):
        return T.ResponseError(code=problem.code, message=problem.message, data=problem.data)
    if hasattr(problem, "errors") and type(problem).__module__.startswith("pydantic"):
        return T.ResponseError(code=INVALID_PARAMS, message=_fields(problem))
    if isinstance(problem, AstroResearchError):
        code = INVALID_PARAMS if isinstance(problem, InvalidInput) else REQUEST_FAILED
        data = {"kind": problem.code, "hint": problem.hint}
        return T.ResponseError(code=code, message=str(problem), data=data)
    if isinstance(problem, JsonRpcException):
        return T.ResponseError(code=REQUEST_FAILED, message=str(problem.message))
    log.error("The request %s failed", method, exc_info=problem)
    return T.ResponseError(
        code=INTERNAL_ERROR, message=f"`{method}` failed because of a fault in the server; its log has the details."
    )


def _fields(problem: Any) -> str:  # pydantic.ValidationError, which must not be imported here
    parts = [f"`{'.'.join(str(p) for p in e['loc']) or 'params'}`: {e['msg']}" for e in problem.errors()[:5]]
    return "Parameters do not fit: " + "; ".join(parts)


def _why_invalid(error: JsonRpcException) -> str:
    cause = error.__cause__
    if isinstance(cause, BaseValidationError):
        return "Parameters do not fit: " + "; ".join(transform_error(cause)[:5])
    return f"Parameters do not fit: {cause or error.message}"
