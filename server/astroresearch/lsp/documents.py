"""The workspace as tools see it: unsaved buffers first, then the disk; edits go through the editor, so that undo works."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from lsprotocol import types as T
from pygls.exceptions import JsonRpcException

from astroresearch.errors import Conflict, InvalidInput, NotFound
from astroresearch.lsp.text import TextDocument, path_of, range_in, uri_of
from astroresearch.tools import sandbox
from astroresearch.tools.ports import FileContent

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server

MAX_FILE = 10 * 1024 * 1024
MAX_WALK = 20_000
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".astroresearch", ".cache", ".mypy_cache"}
)
EDIT_TIMEOUT_S = 120
"An editor may ask the user before it applies an edit."


class EditorWorkspace:
    """Fits `tools.ports.Workspace` for one editor window."""

    def __init__(self, server: Server, readable: Sequence[Path]) -> None:
        self._server = server
        self._readable = tuple(readable)

    @property
    def _roots(self) -> sandbox.Roots:
        return sandbox.Roots(self._server.startup.roots, self._readable)

    @property
    def roots(self) -> Sequence[Path]:
        """Workspace folders first, then what may only be read; canonical."""
        return self._roots.canonical

    def resolve(self, path: str, *, write: bool = False) -> Path:
        """The canonical path of a name given by a model."""
        return sandbox.resolve(path, self._roots, write=write)

    async def read(self, path: Path) -> FileContent:
        """The buffer if the file is open, else the disk."""
        found = self._buffer(path)
        if found is None:
            found = await anyio.to_thread.run_sync(_read_disk, path)
        return replace(found, trusted=self._server.trusted)

    async def walk(self, base: Path) -> Sequence[Path]:
        """All files below, sorted, without what no one wants to read."""
        return await anyio.to_thread.run_sync(_walk, base)

    async def replace(self, path: Path, *, old: FileContent, new_text: str, label: str) -> FileContent:
        """Writes the change through the editor where it can, else atomically on disk."""
        now = await self.read(path)
        if now.version != old.version or now.text != old.text:
            raise Conflict(f"{path.name} changed since it was read.", hint="Read it again, then edit.")
        if self._server.supports("workspace", "apply_edit"):
            await self._apply(path, old, new_text, label)
            buffer = self._buffer(path)
            if buffer is not None and buffer.text == new_text:
                return buffer
            return FileContent(path, new_text, _disk_version(new_text), is_buffer=False)
        if old.is_buffer:
            raise Conflict(
                f"{path.name} is open with unsaved text, and this editor takes no edits.", hint="Save it first."
            )
        await anyio.to_thread.run_sync(_write_atomically, path, new_text)
        self._server.projects.changed_on_disk([uri_of(path)])
        return FileContent(path, new_text, _disk_version(new_text), is_buffer=False)

    async def _apply(self, path: Path, old: FileContent, new_text: str, label: str) -> None:
        document = self._document(path)
        uri = document.uri if document is not None else uri_of(path)
        start, end, text = smallest_change(old.text, new_text)
        where = document.range(start, end) if document is not None else range_in(old.text, start, end, self._encoding)
        version = document.version if document is not None else None
        answer = await apply_edit(self._server, {uri: (version, [T.TextEdit(where, text)])}, label)
        if answer:
            raise Conflict(
                f"The editor did not apply the edit of {path.name}: {answer}", hint="Read it again, then edit."
            )

    @property
    def _encoding(self) -> str:
        return str(self._server.encoding.value)

    def _document(self, path: Path) -> TextDocument | None:
        document = self._server.documents.by_path(path)
        if document is None:  # opened under another spelling, such as through a link
            document = next((d for d in self._server.documents if _same(path_of(d.uri), path)), None)
        return document

    def _buffer(self, path: Path) -> FileContent | None:
        document = self._document(path)
        if document is None:
            return None
        return FileContent(path, document.text, f"buffer:{document.version}", is_buffer=True)


async def apply_edit(server: Server, edits: dict[str, tuple[int | None, list[T.TextEdit]]], label: str) -> str:
    """Sends `workspace/applyEdit` with versions where the editor knows them; returns why it was refused, or nothing."""
    edit: T.WorkspaceEdit
    if server.supports("workspace", "workspace_edit", "document_changes"):
        changes: list[Any] = [
            T.TextDocumentEdit(T.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version), list(text_edits))
            for uri, (version, text_edits) in edits.items()
        ]
        edit = T.WorkspaceEdit(document_changes=changes)
    else:
        edit = T.WorkspaceEdit(changes={uri: text_edits for uri, (_, text_edits) in edits.items()})
    try:
        answer = await server.protocol.ask_client(
            T.WORKSPACE_APPLY_EDIT, T.ApplyWorkspaceEditParams(edit=edit, label=label), timeout_s=EDIT_TIMEOUT_S
        )
    except TimeoutError:
        return "it gave no answer"
    except JsonRpcException as error:
        return str(error.message)
    if answer is not None and answer.applied:
        return ""
    return (answer.failure_reason if answer is not None else "") or "the document changed meanwhile, or it was declined"


def smallest_change(old: str, new: str) -> tuple[int, int, str]:
    """The one replacement `(start, end, text)` that turns `old` into `new`, without common head and tail."""
    head = _common(old, new)
    if head and old[head - 1] == "\r":  # an edit must not start inside CRLF
        head -= 1
    tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
    return head, len(old) - tail, new[head : len(new) - tail]


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _read_disk(path: Path) -> FileContent:
    try:
        if path.is_dir():
            raise InvalidInput(f"{path.name} is a folder.", hint="Use glob_files to see what is in it.")
        if path.stat().st_size > MAX_FILE:
            raise InvalidInput(f"{path.name} is larger than {MAX_FILE // 1024 // 1024} MB.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.") from None
    except OSError as error:
        raise NotFound(f"{path} can't be read: {error.strerror}.") from error
    if b"\0" in data[:8_192]:
        raise InvalidInput(f"{path.name} is not a text file.")
    text = decode(data)
    return FileContent(path, text, _disk_version(text), is_buffer=False, writable=os.access(path, os.W_OK))


def decode(data: bytes) -> str:
    """UTF-8, else Latin-1; line ends and a byte order mark stay as they are."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _disk_version(text: str) -> str:
    return "disk:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _write_atomically(path: Path, text: str) -> None:
    encoding = "utf-8"
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        encoding = "latin-1"
    except OSError as error:
        raise NotFound(f"{path} can't be read: {error.strerror}.") from error
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{path.name} is in Latin-1 and can't hold the new text.", hint="Convert it to UTF-8 first."
        ) from None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise NotFound(f"{path.parent} can't be written: {error.strerror}.") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _walk(base: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, files in os.walk(base):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        found += [Path(folder, name) for name in sorted(files)]
        if len(found) >= MAX_WALK:
            return found[:MAX_WALK]
    return found


def _same(one: Path | None, other: Path) -> bool:
    try:
        return one is not None and os.path.realpath(one) == os.path.realpath(other)
    except OSError:
        return False
