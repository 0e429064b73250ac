"""Everything that features use beyond the documents; app.py builds it in the background after `initialized`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from astroresearch.agents.session import SessionManager
    from astroresearch.config import Folders, Settings
    from astroresearch.domain.paper import Paper
    from astroresearch.engine.tool import AnyTool, Registry
    from astroresearch.library.answer import Answerer
    from astroresearch.library.notes import Notes
    from astroresearch.library.search import Catalogue
    from astroresearch.library.shelf import Shelf
    from astroresearch.library.targets import Targets
    from astroresearch.lsp.server import Server


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A language model that can be chosen."""

    name: str
    active: bool
    kind: str
    "openai, extractive, scripted."
    reason: str = ""


class Admin(Protocol):
    """What the composition root does for status, models and secrets."""

    async def status(self) -> Mapping[str, Any]:
        """`{version, model, ads, keyring, library, embedder, workspace, grants, problems}`, for people and for `doctor`."""
        ...

    async def library_status(self) -> Mapping[str, Any]:
        """`{papers, pages, passages, vectors, embedder, notes, path}`."""
        ...

    def models(self) -> list[ModelInfo]:
        """The models that can be chosen."""
        ...

    def outlook(self, tool: AnyTool) -> str:
        """`allow`, `ask` or `deny`: what the rules in force say of every call of this tool."""
        ...

    def choose_model(self, name: str) -> None:
        """For this window. Raises `NotFound`."""
        ...

    def set_secret(self, key: str, value: str) -> None:
        """Keeps a secret in memory and puts it into force."""
        ...

    def grants(self) -> list[dict[str, Any]]:
        """What the user has allowed, `{rule, scope, agent, sessionId}` each."""
        ...

    async def revoke(self, rule: str) -> bool:
        """Takes a rule back at once and for good; False if nothing was allowed by it."""
        ...

    def reload(self, editor: Mapping[str, Any]) -> None:
        """Puts changed settings of the editor into force."""
        ...


@dataclass
class Services:
    """The product behind the protocol."""

    settings: Settings
    folders: Folders
    catalogue: Catalogue
    shelf: Shelf
    answerer: Answerer
    notes: Notes
    targets: Targets
    sessions: SessionManager
    tools: Registry
    admin: Admin
    close: Callable[[], Awaitable[None]]
    bibtex: Callable[[list[str], str], Awaitable[str]]
    "BibTeX of stored papers (none: all) with a key format."
    bibtex_of: Callable[[Paper], Awaitable[str]]
    list_papers: Callable[[int, int], Awaitable[tuple[list[Any], int]]]
    remove_paper: Callable[[str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Startup:
    """What the editor said at `initialize`."""

    roots: tuple[Path, ...]
    editor: Mapping[str, Any]
    "The `astroresearch` section of the editor's configuration."
    trusted: bool | None
    "The editor's own word on trust (VS Code); None where it has none."
    client_name: str


Build = Callable[["Server", Startup], Awaitable[Services]]
