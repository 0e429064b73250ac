"""The composition root: reads the settings and joins store, sources, models, tools, agents and server. Only it knows all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from lsprotocol import types as T

from astroresearch import __version__, config
from astroresearch.agents import hooks as configured_hooks
from astroresearch.agents.session import AgentSettings, SessionManager
from astroresearch.agents.skills import SkillLibrary, places
from astroresearch.config import Folders, Settings, folders
from astroresearch.domain.paper import Paper
from astroresearch.engine.hooks import Hooks
from astroresearch.engine.model import Model
from astroresearch.engine.permissions import Grant, PermissionRules
from astroresearch.engine.tool import AnyTool
from astroresearch.engine.turn import Limits
from astroresearch.errors import InvalidInput, NotFound, StoreDamaged, StoreUnavailable
from astroresearch.library.acquire import Acquirer
from astroresearch.library.answer import Answerer
from astroresearch.library.export import bibtex
from astroresearch.library.index import Indexer
from astroresearch.library.notes import Notes
from astroresearch.library.parse import PdfLimits, PdfParser
from astroresearch.library.retrieve import Retriever
from astroresearch.library.search import Catalogue
from astroresearch.library.shelf import Shelf
from astroresearch.library.targets import Targets
from astroresearch.lsp.documents import EditorWorkspace
from astroresearch.lsp.frontend import EditorFrontEnd
from astroresearch.lsp.protocol import SERVER_NOTIFICATIONS
from astroresearch.lsp.server import Server
from astroresearch.lsp.services import ModelInfo, Services, Startup
from astroresearch.models.extractive import Extractive
from astroresearch.models.local_embed import LocalEmbedder
from astroresearch.models.openai_chat import OpenAIChat
from astroresearch.models.profiles import ModelProfile
from astroresearch.models.scripted import Scripted
from astroresearch.sources.ads import Ads
from astroresearch.sources.arxiv import Arxiv
from astroresearch.sources.cds import Cds
from astroresearch.sources.guard import loopback_pairs
from astroresearch.sources.http import Http
from astroresearch.store.database import Store
from astroresearch.tools import registry
from astroresearch.tools.persist import FileResults
from astroresearch.tools.ports import ToolServices

log = logging.getLogger(__name__)
KEYRING_SERVICE = "astroresearch"
SECRETS = ("model.api_key", "ads.token")
_TOPICS = {"papers": 1, "passages": 1, "notes": 2, "sessions": 3}
"Topic of the store → index into SERVER_NOTIFICATIONS."


async def assemble(server: Server, startup: Startup) -> Services:
    """Builds everything behind the protocol for one editor window.

    Raises:
        StoreError: The library can't be opened; the sentence says why and what to do.
    """
    where = folders()
    models = Models(server, startup, where, await _keyring_secrets())
    settings = models.settings
    store = await _open_store(server, where)
    http = Http(loopback_pairs(settings.text(f"{name}.url") for name in ("ads", "arxiv", "sesame", "simbad")))
    catalogue = Catalogue(
        store.papers, store.cache, _ads(http, settings), Arxiv(http, settings.text("arxiv.url")), store.notes
    )
    embedder = LocalEmbedder() if settings.text("library.embedder") != "none" else None
    parser = PdfParser(PdfLimits(max_bytes=settings.integer("library.max_pdf_mb") * 1024 * 1024))
    indexer = Indexer(store.passages, embedder)
    answerer = Answerer(Retriever(store.passages, embedder), store.papers, store.passages)
    acquirer = Acquirer(
        http, where.papers, arxiv_url=settings.text("arxiv.url"), ads_url=settings.text("ads.url"),
        max_pdf_mb=settings.integer("library.max_pdf_mb"),
    )  # fmt: skip
    shelf = Shelf(where.data, store.papers, store.passages, parser, indexer, catalogue, acquirer)
    notes = Notes(store, catalogue, answerer)
    targets = Targets(store.cache, Cds(http, settings.text("sesame.url"), settings.text("simbad.url")))
    root = startup.roots[0] if startup.roots else None
    trusted_root = root if server.trusted else None
    skills = SkillLibrary(
        places(
            config=where.config, workspace=trusted_root, trusted=trusted_root is not None,
            further=_user_paths(settings.items("skills.paths")),
        )
    )  # fmt: skip
    front_end = EditorFrontEnd(server, settings.number("agent.question_timeout_s"))
    workspace = EditorWorkspace(server, [where.papers, where.tool_results, *skills.folders])
    hooks = Hooks()
    sessions = SessionManager(
        sessions=store.sessions, models=models.find, registry=registry.standard(), hooks=hooks,
        results=FileResults(where.tool_results), front_end=front_end, skills=skills,
        settings=agent_settings(settings, root, where), audit=store.audit,
    )  # fmt: skip
    sessions.use(
        ToolServices(
            catalogue=catalogue, files=shelf, passages=answerer, notes=notes, objects=targets, workspace=workspace,
            questions=sessions.questions, todos=sessions.todos, skills=skills, spawner=sessions.spawner,
        )
    )  # fmt: skip
    await _keep_open(server, sessions)
    admin = Admin(server, models, store, catalogue, http, embedder, where, sessions, root, hooks)
    server.spawn(indexer.run)
    server.spawn(store.maintain)
    server.spawn(_tell_changes, server, store)

    async def close() -> None:
        await parser.aclose()
        if embedder is not None:
            await embedder.aclose()
        await http.aclose()
        await store.aclose()

    async def export(papers: list[str], key_format: str) -> str:
        return bibtex(await _papers(store, catalogue, papers), keys=_key_format(key_format))

    async def export_one(paper: Paper) -> str:
        return bibtex([paper])

    async def list_papers(limit: int, offset: int) -> tuple[list[Any], int]:
        return await store.papers.list(limit, offset), await store.papers.count()

    return Services(
        settings=settings, folders=where, catalogue=catalogue, shelf=shelf, answerer=answerer, notes=notes,
        targets=targets, sessions=sessions, tools=registry.standard(), admin=admin, close=close, bibtex=export,
        bibtex_of=export_one, list_papers=list_papers, remove_paper=shelf.remove,
    )  # fmt: skip


class Models:
    """The settings in force in this window and the language model that they name."""

    def __init__(self, server: Server, startup: Startup, where: Folders, secrets: Mapping[str, str]) -> None:
        self._server = server
        self._where = where
        self._root = startup.roots[0] if startup.roots else None
        self._editor: Mapping[str, Any] = startup.editor
        self._secrets = dict(secrets)
        self._chosen = ""
        self._made: dict[str, Model] = {}
        self.settings = self._load()

    def reload(self, editor: Mapping[str, Any]) -> None:
        """Takes the editor's changed section."""
        self._editor = editor
        self.settings = self._load()
        self._made.clear()

    def set_secret(self, key: str, value: str) -> None:
        """Takes a secret; an empty one is forgotten."""
        self._secrets.pop(key, None)
        if value:
            self._secrets[key] = value
        self.settings = self._load()
        self._made.clear()

    def choose(self, name: str) -> None:
        """Chooses a model for this window."""
        self._chosen = name

    def active(self) -> str:
        """The name of the model in force; `extractive` where none is configured."""
        return self._chosen or self.settings.text("model.name") or "extractive"

    def find(self, name: str | None) -> Model:
        """The model of that name, or the one in force.

        Raises:
            NotFound: A script is named that is not there.
        """
        wanted = name or self.active()
        model = self._made.get(wanted)
        if model is None:
            model = self._made[wanted] = self._make(wanted)
        return model

    def prices(self) -> tuple[float, float] | None:
        """Price of a million input and output tokens, where they are set."""
        prices = (self.settings.number("model.price_input"), self.settings.number("model.price_output"))
        return prices if any(prices) else None

    def _make(self, name: str) -> Model:
        if name == "extractive":
            return Extractive()
        if name == "scripted":
            path = self.settings.text("model.script")
            if not path:
                raise NotFound("The model `scripted` needs a script.", hint="Set ASTRORESEARCH_SCRIPT to a JSON file.")
            return Scripted.from_file(Path(path))
        values = {"model.name": name}
        return OpenAIChat(ModelProfile.from_settings(self.settings.with_values(values)))

    def _load(self) -> Settings:
        workspace = self._root if self._root is not None and self._server.trusted else None
        settings = config.load(where=self._where, workspace=workspace, editor=self._editor)
        return settings.with_values({k: v for k, v in self._secrets.items() if not settings.secret(k)})


class Admin:
    """Status, models and secrets (fits `lsp.services.Admin`)."""

    def __init__(
        self, server: Server, models: Models, store: Store, catalogue: Catalogue, http: Http,
        embedder: LocalEmbedder | None, where: Folders, sessions: SessionManager, root: Path | None, hooks: Hooks,
    ) -> None:  # fmt: skip
        self._server = server
        self._models = models
        self._store = store
        self._catalogue = catalogue
        self._http = http
        self._embedder = embedder
        self._where = where
        self._sessions = sessions
        self._root = root
        self._hooks = hooks
        self._hook_problems: tuple[config.Problem, ...] = ()
        self._use_hooks()

    async def status(self) -> Mapping[str, Any]:
        """What is configured, what is missing, how to mend it; each part `{ok, text, hint}`."""
        settings = self._models.settings
        library = await self.library_status()
        text = f"{library['papers']} papers, {library['passages']} passages, {library['notes']} notes in {self._where.data}"
        return {
            "version": __version__,
            "model": self._model_status(),
            "ads": _part(
                bool(settings.secret("ads.token")),
                "token set" if settings.secret("ads.token") else "no token: searches go to arXiv alone",
                ""
                if settings.secret("ads.token")
                else "Get one at https://ui.adsabs.harvard.edu/user/settings/token "
                "and set ADS_API_TOKEN, or use your editor's command.",
            ),
            "keyring": await _keyring_status(),
            "library": _part(True, text),
            "embedder": _embedder_status(self._embedder, library),
            "workspace": self._workspace_status(),
            "grants": list(config.granted(self._root, self._where)) if self._root is not None else [],
            "problems": [{"where": p.where, "message": p.message} for p in (*settings.problems, *self._hook_problems)],
        }

    def _model_status(self) -> dict[str, Any]:
        name = self._models.active()
        if name == "extractive":
            return _part(
                False,
                "none: answers are quotes from your library",
                "Name one (ASTRORESEARCH_MODEL or [model] name in config.toml) and give its key: docs/configuration.md.",
                name=name,
            )
        origin = self._models.settings.origins.get("model.name", "chosen in this window")
        return _part(True, f"{name} ({origin})", name=name)

    def _workspace_status(self) -> dict[str, Any]:
        roots = self._server.startup.roots
        if not roots:
            return _part(True, "no folder is open")
        if self._server.trusted:
            return _part(True, f"{roots[0]} (trusted)")
        hint = f"Its settings and skills are not used. To use them: astroresearch trust '{roots[0]}'"
        return _part(False, f"{roots[0]} (not trusted)", hint)

    async def library_status(self) -> Mapping[str, Any]:
        """How much is in the library."""
        counts = await self._store.passages.counts()
        return {
            **counts,
            "papers": await self._store.papers.count(),
            "notes": await self._store.notes.count(),
            "embedder": self._embedder.name if self._embedder is not None else "",
            "path": str(self._where.database),
        }

    def outlook(self, tool: AnyTool) -> str:
        """`allow`, `ask` or `deny`: what the rules in force say of every call of this tool."""
        return _rules(self._models.settings).outlook(tool)

    def models(self) -> list[ModelInfo]:
        """The models that can be chosen."""
        active = self._models.active()
        configured = self._models.settings.text("model.name")
        names = dict.fromkeys(n for n in (configured, self._models.settings.text("model.fallback"), active) if n)
        found = [
            ModelInfo(n, n == active, "scripted" if n == "scripted" else "openai") for n in names if n != "extractive"
        ]
        reason = "" if configured else "No language model is configured."
        return [*found, ModelInfo("extractive", active == "extractive", "extractive", reason)]

    def choose_model(self, name: str) -> None:
        """For this window."""
        self._models.choose(name)

    def set_secret(self, key: str, value: str) -> None:
        """Keeps a secret in memory and puts it into force."""
        if key not in SECRETS:
            raise InvalidInput(f"`{key}` is no secret of ours.", field="key")
        self._models.set_secret(key, value)
        self._apply()

    def reload(self, editor: Mapping[str, Any]) -> None:
        """Puts changed settings of the editor into force."""
        self._models.reload(editor)
        self._apply()

    def _apply(self) -> None:
        settings = self._models.settings
        self._catalogue.ads = _ads(self._http, settings)
        self._sessions.configure(agent_settings(settings, self._root, self._where))
        self._use_hooks()

    def _use_hooks(self) -> None:
        settings = self._models.settings
        around = configured_hooks.Surroundings(
            self._root, self._sessions.redactor, settings.secrets(), registry.standard().names()
        )
        found, self._hook_problems = configured_hooks.configured(settings, around)
        self._hooks.configure(found)

    def grants(self) -> list[dict[str, Any]]:
        """What the user has allowed: in this workspace, and in the sessions of this window."""
        stored = config.granted(self._root, self._where) if self._root is not None else ()
        rows = [{"rule": rule, "scope": "workspace", "agent": "", "sessionId": ""} for rule in stored]
        for session_id, grant in self._sessions.all_grants():
            if not (grant.scope == "workspace" and grant.rule in stored):
                rows.append({"rule": grant.rule, "scope": grant.scope, "agent": grant.agent, "sessionId": session_id})
        return rows

    async def revoke(self, rule: str) -> bool:
        """Takes a rule back at once and for good."""
        held = await self._sessions.revoke_everywhere(rule)
        stored = self._root is not None and config.revoke(self._root, rule, self._where)
        return held or stored


def _part(ok: bool, text: str, hint: str = "", **more: Any) -> dict[str, Any]:
    return {"ok": ok, "text": text, "hint": hint, **more}


def _embedder_status(embedder: LocalEmbedder | None, library: Mapping[str, Any]) -> dict[str, Any]:
    if embedder is None:
        return _part(True, "off: full-text search alone")
    return _part(True, f"{embedder.name}; {library['vectors']} of {library['passages']} passages have vectors")


def _ads(http: Http, settings: Settings) -> Ads | None:
    token = settings.secret("ads.token")
    return Ads(http, settings.text("ads.url"), token) if token is not None else None


def agent_settings(settings: Settings, workspace: Path | None, where: Folders) -> AgentSettings:
    """What is the same for all turns of this window."""
    granted = config.granted(workspace, where) if workspace is not None else ()

    def keep(grant: Grant) -> None:
        if grant.scope == "workspace" and workspace is not None:
            config.grant(workspace, grant.rule, where)

    prices = (settings.number("model.price_input"), settings.number("model.price_output"))
    return AgentSettings(
        limits=Limits(
            max_steps=settings.integer("agent.max_steps"),
            max_turn_tokens=settings.integer("agent.max_turn_tokens"),
            max_concurrent_tools=settings.integer("agent.max_concurrent_tools"),
            tool_timeout_s=settings.number("agent.tool_timeout_s"),
        ),
        workspace=str(workspace) if workspace is not None else "",
        prices=prices if any(prices) else None,
        secrets=settings.secrets(),
        rules=_rules(settings),
        granted=granted,
        on_grant=keep,
        question_timeout_s=settings.number("agent.question_timeout_s"),
    )


def _rules(settings: Settings) -> PermissionRules:
    return PermissionRules(
        deny=settings.items("permissions.deny"),
        ask=settings.items("permissions.ask"),
        allow=settings.items("permissions.allow"),
        edits="accept" if settings.text("permissions.edits") == "accept" else "ask",
    )


async def _keep_open(server: Server, sessions: SessionManager) -> None:
    """Holds the sessions' task group in a task of its own until the server ends; returns when it is open."""
    opened = anyio.Event()

    async def hold() -> None:
        async with sessions:
            opened.set()
            await anyio.sleep_forever()

    server.spawn(hold)
    await opened.wait()


async def _open_store(server: Server, where: Folders) -> Store:
    try:
        await anyio.to_thread.run_sync(_make_folders, where)
    except OSError as error:
        raise StoreUnavailable(
            f"The data folder {where.data} can't be made: {error.strerror}.",
            path=str(where.data),
            hint="Make it writable, or set ASTRORESEARCH_HOME to another folder.",
        ) from error
    try:
        return await Store.open(where.database)
    except StoreDamaged as error:
        # The broken file was moved aside: say so, and go on with an empty library.
        server.window_show_message(T.ShowMessageParams(T.MessageType.Error, f"AstroResearch: {error}"))
        return await Store.open(where.database)


def _user_paths(names: tuple[str, ...]) -> list[Path]:
    return [Path(name).expanduser() for name in names]


def _make_folders(where: Folders) -> None:
    for folder in (where.data, where.papers, where.tool_results):
        folder.mkdir(parents=True, exist_ok=True)


async def _papers(store: Store, catalogue: Catalogue, names: list[str]) -> list[Paper]:
    if names:
        return [await catalogue.get(name, online=False) for name in names]
    found: list[Paper] = []
    while batch := await store.papers.list(500, len(found)):
        found += batch
    return found


def _key_format(name: str) -> Any:
    known = {"bibcode": "bibcode", "authoryear": "author_year", "author_year": "author_year"}
    try:
        return known[name.lower()]
    except KeyError:
        raise InvalidInput(
            f"`{name}` is no key format.", hint="Use bibcode or authoryear.", field="keyFormat"
        ) from None


async def _tell_changes(server: Server, store: Store) -> None:
    """Tells this window what other windows changed."""
    async for topics in store.changes():
        server.library_changed()
        for index in {_TOPICS[topic] for topic in topics if topic in _TOPICS}:
            server.send_notification(SERVER_NOTIFICATIONS[index], {})


async def _keyring_secrets() -> dict[str, str]:
    """Secrets of the system's keyring; none where there is no keyring or it does not answer at once."""
    with anyio.move_on_after(2):
        return await anyio.to_thread.run_sync(_read_keyring, abandon_on_cancel=True)
    return {}


async def _keyring_status() -> dict[str, Any]:
    with anyio.move_on_after(2):
        if name := await anyio.to_thread.run_sync(_keyring_name, abandon_on_cancel=True):
            return _part(True, name)
        return _part(False, "this system has none", "Keep keys in your editor's store or in the environment.")
    return _part(False, "it does not answer", "Unlock it, or keep keys in your editor's store or in the environment.")


def _keyring_name() -> str:
    """Empty where no keyring is there."""
    import keyring
    from keyring.backends import fail, null

    ring = keyring.get_keyring()
    return "" if isinstance(ring, (fail.Keyring, null.Keyring)) else str(ring.name)


def _read_keyring() -> dict[str, str]:
    import keyring
    import keyring.errors

    found: dict[str, str] = {}
    try:
        for key in SECRETS:
            if value := keyring.get_password(KEYRING_SERVICE, key):
                found[key] = value
    except (keyring.errors.KeyringError, OSError, RuntimeError) as error:
        log.info("The keyring is not used: %s", error)
    return found
