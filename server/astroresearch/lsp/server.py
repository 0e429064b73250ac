"""The language server: its list of features, its life from `initialize` to `exit`, and what features share.

`initialize` answers before anything heavy is imported: a feature's module is imported at its first use, and the services
(database, agent, models) are built in the background after `initialized`; a request that needs them waits for them.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from lsprotocol import types as T
from pygls.lsp.server import LanguageServer

from astroresearch import __version__
from astroresearch.config import folders, is_trusted
from astroresearch.errors import AstroResearchError
from astroresearch.lsp.protocol import METHODS, SERVER_NOTIFICATIONS, command_of
from astroresearch.lsp.services import Build, Services, Startup
from astroresearch.lsp.stdio import WriterThread, start_reader
from astroresearch.lsp.text import Documents
from astroresearch.lsp.transport import REQUEST_FAILED, Protocol, ResponseFailure, converter_factory

if TYPE_CHECKING:
    from astroresearch.domain.paper import Paper
    from astroresearch.lsp.projects import Projects

log = logging.getLogger(__name__)
ACT_COMMAND = "_astroresearch.act"
"What code actions call: lsp/features/actions.py."
LIBRARY_CANDIDATES = 2_000
"Papers of the library, newest first, that completion looks through."


@dataclass(frozen=True, slots=True)
class Feature:
    """One standard LSP method: `handler` is `module:function` below lsp/features."""

    method: str
    handler: str
    options: Any = None


FEATURES: tuple[Feature, ...] = (
    Feature(
        T.TEXT_DOCUMENT_COMPLETION,
        "completion:completion",
        T.CompletionOptions(trigger_characters=["{", ",", "@"], resolve_provider=True),
    ),
    Feature(T.COMPLETION_ITEM_RESOLVE, "completion:resolve"),
    Feature(T.TEXT_DOCUMENT_HOVER, "hover:hover"),
    Feature(T.TEXT_DOCUMENT_DEFINITION, "definition:definition"),
    Feature(T.TEXT_DOCUMENT_REFERENCES, "references:references"),
    Feature(T.TEXT_DOCUMENT_PREPARE_RENAME, "rename:prepare_rename"),
    Feature(T.TEXT_DOCUMENT_RENAME, "rename:rename", T.RenameOptions(prepare_provider=True)),
    Feature(
        T.TEXT_DOCUMENT_DIAGNOSTIC,
        "diagnostics:diagnostic",
        T.DiagnosticOptions(identifier="astroresearch", inter_file_dependencies=True, workspace_diagnostics=False),
    ),
    Feature(
        T.TEXT_DOCUMENT_CODE_ACTION,
        "code_actions:code_action",
        T.CodeActionOptions(
            code_action_kinds=[T.CodeActionKind.QuickFix, T.CodeActionKind.RefactorRewrite, T.CodeActionKind.Source],
            resolve_provider=True,
        ),
    ),
    Feature(T.CODE_ACTION_RESOLVE, "code_actions:resolve"),
    Feature(T.TEXT_DOCUMENT_DOCUMENT_SYMBOL, "symbols:document_symbol"),
    Feature(T.WORKSPACE_SYMBOL, "symbols:workspace_symbol"),
    Feature(T.TEXT_DOCUMENT_FOLDING_RANGE, "symbols:folding_range"),
    Feature(T.TEXT_DOCUMENT_DOCUMENT_LINK, "links:document_link"),
)


class Server(LanguageServer):
    """What a feature gets as its first argument."""

    protocol: Protocol

    def __init__(self, build: Build) -> None:
        super().__init__(
            "astroresearch", __version__, protocol_cls=Protocol, converter_factory=converter_factory, max_workers=1
        )
        self._build = build
        self._services: Services | None = None
        self._failure: AstroResearchError | None = None
        self._built = anyio.Event()
        self._startup = Startup((), {}, None, "")
        self.documents = Documents()
        self._projects: Projects | None = None
        self._known_papers: list[Paper] | None = None
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}
        "What `window/workDoneProgress/cancel` of a token stops."
        self._register()

    # -- what features use

    @property
    def projects(self) -> Projects:
        """The manuscripts around the open files; made at first use, so that `initialize` need not wait for its imports."""
        if self._projects is None:
            from astroresearch.lsp.projects import Projects

            self._projects = Projects(self.documents, self._startup.roots)
        return self._projects

    @property
    def encoding(self) -> T.PositionEncodingKind:
        """How positions are counted: utf-8, utf-16 or utf-32."""
        return T.PositionEncodingKind(self.workspace.position_encoding)

    @property
    def services(self) -> Services | None:
        """The services if they are there already; for features that can do without."""
        return self._services

    @property
    def startup(self) -> Startup:
        """What the editor said at `initialize`."""
        return self._startup

    async def ready(self) -> Services:
        """The services, once they are built.

        Raises:
            AstroResearchError: They could not be built; the sentence says why and what to do.
        """
        await self._built.wait()
        if self._services is None:
            raise self._failure or ResponseFailure(
                REQUEST_FAILED, "The server could not start its library; see its log."
            )
        return self._services

    def client_declares(self, name: str) -> bool:
        """Whether the client's `experimental.astroresearch` has this capability."""
        experimental = self.client_capabilities.experimental
        ours = _get(experimental, "astroresearch")
        return bool(_get(ours, name))

    def supports(self, *path: str) -> bool:
        """Whether the client's standard capabilities hold something true at this path (attribute names)."""
        value: Any = self.client_capabilities
        for name in path:
            value = getattr(value, name, None)
        return bool(value)

    async def call(self, method: str, params: Any) -> Any:
        """What the editor would get for this custom request: for features that build on another."""
        return await self.protocol.handlers[method](params)

    def send_notification(self, method: str, params: Any) -> None:
        """A notification to the editor."""
        self.protocol.notify(method, params)

    def send_progress(self, token: str | int, value: Any) -> None:
        """One `$/progress` value of any shape: partial results."""
        self.protocol.notify(T.PROGRESS, T.ProgressParams(token, value))

    @property
    def trusted(self) -> bool:
        """Whether the user trusts this workspace: the editor's word where it has one, else `astroresearch trust`."""
        if self._startup.trusted is not None:
            return self._startup.trusted
        where = folders()
        return bool(self._startup.roots) and all(is_trusted(root, where) for root in self._startup.roots)

    def spawn(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Runs something in the background of this server; its failure is logged and ends nothing else."""
        assert self.protocol.tasks is not None
        self.protocol.tasks.start_soon(_background, function, *args)

    async def paper_marks(self, identifiers: Any) -> dict[str, Any] | None:
        """Library and note state of a paper for hovers: `{paperId, inLibrary, notes}`; None where nothing is known yet."""
        services = self._services
        name = identifiers.bibcode or identifiers.doi or identifiers.arxiv
        if services is None or not name:
            return None
        try:
            paper = await services.catalogue.get(name, online=False)
            notes = await services.notes.list(paper=paper.id, limit=1_000)
        except AstroResearchError:  # a hover without marks is better than none
            return None
        return {"paperId": paper.id, "inLibrary": paper.state == "searchable", "notes": len(notes)}

    async def library_candidates(self, query: str) -> list[Paper]:
        """Papers of the library whose authors, title, year or names hold all words of a query; for completion."""
        services = self._services
        words = query.casefold().split()
        if services is None or not words or len(query) < 2:
            return []
        if self._known_papers is None:
            try:
                self._known_papers, _ = await services.list_papers(LIBRARY_CANDIDATES, 0)
            except AstroResearchError:  # a completion without the library is better than none
                return []
        return [paper for paper in self._known_papers if all(word in _haystack(paper) for word in words)][:10]

    def library_changed(self) -> None:
        """The library has other papers than before, by this window or another."""
        self._known_papers = None

    # -- life

    def _register(self) -> None:
        for feature in FEATURES:
            self._feature(feature.method, _lazy(self, feature.handler), feature.options)
        for method, spec in METHODS.items():
            handler = _custom(self, method)
            self.protocol.handlers[method] = handler
            if not spec.notification:
                command = command_of(method)
                self.protocol.commands[command] = _twin(handler)
                self.protocol.fm.commands[command] = handler
        act = _lazy(self, "actions:act")
        self.protocol.commands[ACT_COMMAND] = _twin(act)
        self.protocol.fm.commands[ACT_COMMAND] = act
        for method, sync in (
            (T.TEXT_DOCUMENT_DID_OPEN, self._did_open),
            (T.TEXT_DOCUMENT_DID_CHANGE, self._did_change),
            (T.TEXT_DOCUMENT_DID_CLOSE, self._did_close),
            (T.TEXT_DOCUMENT_DID_SAVE, self._did_save),
            (T.WINDOW_WORK_DONE_PROGRESS_CANCEL, self._progress_cancel),
            (T.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._folders_changed),
        ):
            self.protocol.sync_handlers[method] = sync
        for method, task in (
            (T.INITIALIZED, self._initialized),
            (T.WORKSPACE_DID_CHANGE_CONFIGURATION, self._configuration_changed),
            (T.WORKSPACE_DID_CHANGE_WATCHED_FILES, self._files_changed),
        ):
            self.protocol.handlers[method] = task
        self.feature(T.INITIALIZE)(lambda params: self._initialize(params))  # pygls sets attributes on it
        self.feature(T.TEXT_DOCUMENT_DID_SAVE, T.SaveOptions(include_text=False))(_noop)

    def _feature(self, method: str, handler: Callable[[Any], Awaitable[Any]], options: Any) -> None:
        self.protocol.handlers[method] = handler
        if options is None:
            self.feature(method)(handler)
        else:
            self.feature(method, options)(handler)

    def _initialize(self, params: T.InitializeParams) -> None:
        folders = [f.uri for f in params.workspace_folders or []] or [params.root_uri or ""]
        roots = tuple(path for uri in folders if (path := uri_to_path(uri)) is not None)
        given = params.initialization_options
        trusted = _get(given, "trusted")
        self._startup = Startup(
            roots=roots,
            editor=_plain_section(_get(given, "settings")),
            trusted=trusted if isinstance(trusted, bool) else None,
            client_name=params.client_info.name if params.client_info else "",
        )
        self.documents.encoding = str(self.encoding.value)
        if params.process_id:
            self.spawn(_watch_parent, params.process_id, self)

    async def _initialized(self, params: T.InitializedParams) -> None:
        self.spawn(_warm_up)
        await self._register_watchers()
        if self.supports("workspace", "configuration"):
            section = await self._ask_configuration()
            if section:
                self._startup = Startup(self._startup.roots, section, self._startup.trusted, self._startup.client_name)
        try:
            self._services = await self._build(self, self._startup)
        except AstroResearchError as error:
            self._failure = error
            log.error("The library could not be opened: %s", error)
            self.window_show_message(T.ShowMessageParams(T.MessageType.Error, f"AstroResearch: {error}"))
        finally:
            self._built.set()

    async def _register_watchers(self) -> None:
        if not self.supports("workspace", "did_change_watched_files", "dynamic_registration"):
            return
        watchers = [T.FileSystemWatcher(glob_pattern="**/*.{tex,bib,ltx,sty,cls,bbl}")]
        registration = T.Registration(
            "astroresearch-files",
            T.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            T.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
        )
        self.spawn(self._ask, T.CLIENT_REGISTER_CAPABILITY, T.RegistrationParams([registration]))

    async def _ask_configuration(self) -> Mapping[str, Any]:
        items = T.ConfigurationParams([T.ConfigurationItem(section="astroresearch")])
        answer = await self._ask(T.WORKSPACE_CONFIGURATION, items)
        return _plain_section(answer[0]) if isinstance(answer, (list, tuple)) and answer else {}

    async def _ask(self, method: str, params: Any) -> Any:
        from pygls.exceptions import JsonRpcException

        try:
            return await self.protocol.ask_client(method, params, timeout_s=5)
        except (TimeoutError, JsonRpcException) as error:
            log.info("The editor did not answer %s: %s", method, error)
            return None

    async def _configuration_changed(self, params: Any) -> None:
        section: Mapping[str, Any] = {}
        if self.supports("workspace", "configuration"):
            section = await self._ask_configuration()
        if not section:
            section = _plain_section(_get(getattr(params, "settings", None), "astroresearch"))
        services = await self.ready()
        services.admin.reload(section)
        self.send_notification(SERVER_NOTIFICATIONS[0], await services.admin.status())

    # -- documents

    def _did_open(self, params: T.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        self.documents.open(item.uri, item.text, item.version, item.language_id)
        self._changed(item.uri)
        self.spawn(self.projects.warm, item.uri)

    def _did_change(self, params: T.DidChangeTextDocumentParams) -> None:
        ref = params.text_document
        self.documents.change(ref.uri, ref.version, list(params.content_changes))
        self._changed(ref.uri)

    def _did_close(self, params: T.DidCloseTextDocumentParams) -> None:
        self.documents.close(params.text_document.uri)
        self._changed(params.text_document.uri)

    def _did_save(self, params: T.DidSaveTextDocumentParams) -> None:
        self.projects.changed_on_disk([params.text_document.uri])

    def _changed(self, uri: str) -> None:
        self.projects.buffer_changed(uri)
        if not self.supports("text_document", "diagnostic"):
            self.spawn(_lazy(self, "diagnostics:publish"), uri)

    async def _files_changed(self, params: T.DidChangeWatchedFilesParams) -> None:
        self.projects.changed_on_disk([change.uri for change in params.changes])
        if not self.supports("text_document", "diagnostic"):
            for document in self.documents:
                self.spawn(_lazy(self, "diagnostics:publish"), document.uri)
        elif self.supports("workspace", "diagnostics", "refresh_support"):
            self.spawn(self._ask, T.WORKSPACE_DIAGNOSTIC_REFRESH, None)

    def _folders_changed(self, params: T.DidChangeWorkspaceFoldersParams) -> None:
        gone = {folder.uri for folder in params.event.removed}
        roots = [root for root in self._startup.roots if root.as_uri() not in gone]
        roots += [path for f in params.event.added if (path := uri_to_path(f.uri)) is not None]
        self._startup = Startup(
            tuple(dict.fromkeys(roots)), self._startup.editor, self._startup.trusted, self._startup.client_name
        )
        self.projects.set_folders(self._startup.roots)

    def _progress_cancel(self, params: T.WorkDoneProgressCancelParams) -> None:
        if (stop := self.progress_cancels.get(params.token)) is not None:
            stop()

    # -- running

    async def run(self, incoming: BinaryIO, out: BinaryIO) -> int:
        """Serves one editor until `exit` or the end of the stream; returns the exit code."""
        writer = WriterThread(out)
        self.protocol.set_writer(writer)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(body: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(queue.put_nowait, body)
            except RuntimeError:  # the loop is closed: the server is gone
                return

        start_reader(incoming, deliver)
        try:
            async with anyio.create_task_group() as tasks:
                self.protocol.tasks = tasks
                while self.protocol.exit_code is None and (body := await queue.get()) is not None:
                    self.protocol.feed(body)
                tasks.cancel_scope.cancel()
        finally:
            if self._services is not None:
                with anyio.move_on_after(5, shield=True):
                    await self._services.close()
            writer.close()
        return self.protocol.exit_code if self.protocol.exit_code is not None else 0


def _haystack(paper: Paper) -> str:
    ids = paper.identifiers
    names = (ids.bibcode, ids.doi, ids.arxiv)
    return " ".join((*paper.authors, paper.title, str(paper.year), *names)).casefold()


def uri_to_path(uri: str) -> Path | None:
    """The path of a `file:` URI; None for anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if os.name == "nt" and path.startswith("/"):
        path = path[1:]
    return Path(path)


def _lazy(server: Server, handler: str) -> Callable[[Any], Awaitable[Any]]:
    async def run(params: Any) -> Any:
        return await _resolve(handler)(server, params)

    return run


def _resolve(handler: str) -> Callable[..., Awaitable[Any]]:
    module, _, name = handler.partition(":")
    found: Callable[..., Awaitable[Any]] = getattr(
        importlib.import_module(f"astroresearch.lsp.features.{module}"), name
    )
    return found


def _custom(server: Server, method: str) -> Callable[[Any], Awaitable[Any]]:
    spec = METHODS[method]

    async def run(params: Any) -> Any:
        from astroresearch.domain.plain import plain
        from astroresearch.lsp import params as shapes

        arguments = getattr(shapes, spec.params).model_validate(params if params is not None else {})
        return plain(await _resolve(spec.handler)(server, arguments))

    return run


def _twin(handler: Callable[[Any], Awaitable[Any]]) -> Callable[[list[Any]], Awaitable[Any]]:
    async def run(arguments: list[Any]) -> Any:
        return await handler(arguments[0] if arguments else {})

    return run


async def _background(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    try:
        await function(*args)
    except Exception:  # the edge: a background task has nobody to answer to
        log.exception("A background task failed")


async def _warm_up() -> None:
    """Imports what the first keystrokes need, in a thread, before they come."""
    for name in ("projects", "features.diagnostics", "features.completion", "features.hover", "features.code_actions"):
        await anyio.to_thread.run_sync(importlib.import_module, f"astroresearch.lsp.{name}")


async def _watch_parent(pid: int, server: Server) -> None:
    """Ends the server when the editor dies without closing the stream."""
    while True:
        await anyio.sleep(5)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            os._exit(1)
        except OSError:
            continue


def _noop(params: Any) -> None:
    return None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _plain_section(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
