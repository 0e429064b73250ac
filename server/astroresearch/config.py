"""Every setting: its name, type, default, environment variable and meaning; where settings come from and who wins.

Order, later wins (docs/configuration.md): defaults, the user's `config.toml`, `.astroresearch/config.toml` of a trusted
workspace, the environment, the editor's configuration. Secrets, the base URLs of services and models, and the data folder
never come from a workspace.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from astroresearch.errors import InvalidInput

ADS_URL = "https://api.adsabs.harvard.edu/v1"
ARXIV_URL = "https://export.arxiv.org"
SESAME_URL = "https://cds.unistra.fr/cgi-bin/nph-sesame"
SIMBAD_URL = "https://simbad.cds.unistra.fr/simbad/sim-tap"
OPENAI_URL = "https://api.openai.com/v1"


class Secret:
    """A secret that can't be printed, logged or serialised by accident; `reveal()` is the only way in."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself: for the header of a request, for nothing else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


@dataclass(frozen=True)
class Setting:
    """One setting as the user sees it."""

    key: str
    "Dotted name in TOML and in the editor's configuration (there prefixed by `astroresearch.`)."
    type: Literal["str", "int", "float", "bool", "list", "table"]
    default: Any
    doc: str
    env: tuple[str, ...] = ()
    "Environment variables, first one set wins."
    user_only: bool = False
    "Never read from a workspace: secrets and everything that decides where data is sent."
    choices: tuple[str, ...] = ()
    secret: bool = False
    files_only: bool = False
    "A table that only the two config.toml files may hold. Both count: the workspace's entries come after the user's."


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "model.name",
        "str",
        "",
        "The language model. Empty: none; answers are quotes from your library.",
        ("ASTRORESEARCH_MODEL",),
        user_only=True,
    ),
    Setting(
        "model.base_url",
        "str",
        OPENAI_URL,
        "Base URL of any OpenAI-compatible endpoint.",
        ("OPENAI_BASE_URL",),
        user_only=True,
    ),
    Setting(
        "model.api_key",
        "str",
        "",
        "Key of the endpoint. Better kept in the editor's store, the keyring or the environment.",
        ("OPENAI_API_KEY",),
        user_only=True,
        secret=True,
    ),
    Setting("model.context_window", "int", 128_000, "Tokens that fit into one request."),
    Setting("model.max_output_tokens", "int", 0, "Limit of one answer in tokens; 0 leaves it to the endpoint."),
    Setting(
        "model.thinking_style",
        "str",
        "none",
        "How this endpoint switches reasoning on.",
        choices=("none", "enable_thinking", "thinking_type", "chat_template", "reasoning_effort"),
    ),
    Setting(
        "model.fallback",
        "str",
        "",
        "Another model of the same endpoint, tried when the first fails before any output.",
        ("ASTRORESEARCH_FALLBACK_MODEL",),
        user_only=True,
    ),
    Setting("model.price_input", "float", 0.0, "Price of a million input tokens, to show costs; 0 shows none."),
    Setting("model.price_output", "float", 0.0, "Price of a million output tokens."),
    Setting(
        "model.extra_body", "table", {}, "Further fields of each request, for endpoints that need them.", user_only=True
    ),
    Setting("model.idle_timeout_s", "float", 60.0, "Give up on a stream after this many seconds without payload."),
    Setting(
        "model.script",
        "str",
        "",
        "A JSON file of scripted replies: the deterministic model that tests and demos use.",
        ("ASTRORESEARCH_SCRIPT",),
        user_only=True,
    ),
    Setting(
        "ads.token",
        "str",
        "",
        "Token of the ADS API (https://ui.adsabs.harvard.edu/user/settings/token).",
        ("ADS_API_TOKEN", "ADS_DEV_KEY"),
        user_only=True,
        secret=True,
    ),
    Setting("ads.url", "str", ADS_URL, "Base URL of the ADS API.", ("ASTRORESEARCH_ADS_URL",), user_only=True),
    Setting(
        "arxiv.url",
        "str",
        ARXIV_URL,
        "Base URL of the arXiv API; PDFs come from the same host.",
        ("ASTRORESEARCH_ARXIV_URL",),
        user_only=True,
    ),
    Setting(
        "sesame.url",
        "str",
        SESAME_URL,
        "Base URL of the Sesame name resolver.",
        ("ASTRORESEARCH_SESAME_URL",),
        user_only=True,
    ),
    Setting(
        "simbad.url",
        "str",
        SIMBAD_URL,
        "Base URL of SIMBAD's TAP service.",
        ("ASTRORESEARCH_SIMBAD_URL",),
        user_only=True,
    ),
    Setting("agent.max_steps", "int", 50, "Model calls of one turn at most."),
    Setting("agent.max_turn_tokens", "int", 1_000_000, "Input and output tokens of one turn at most."),
    Setting("agent.max_concurrent_tools", "int", 4, "Tools that run side by side at most."),
    Setting("agent.tool_timeout_s", "float", 120.0, "Time-out of a tool that does not set its own."),
    Setting("agent.question_timeout_s", "float", 300.0, "How long the agent waits for your answer to a question."),
    Setting(
        "permissions.edits",
        "str",
        "ask",
        "Whether edits of manuscript files ask first.",
        choices=("ask", "accept"),
        user_only=True,
    ),
    Setting("permissions.deny", "list", [], "Rules `tool` or `tool(pattern)` that are always refused."),
    Setting("permissions.ask", "list", [], "Rules that always ask."),
    Setting("permissions.allow", "list", [], "Rules that are allowed without asking.", user_only=True),
    Setting(
        "hooks",
        "table",
        {},
        "Commands that see what the agent does and may stop or change it: see Hooks. Not from the editor.",
        files_only=True,
    ),
    Setting(
        "library.embedder",
        "str",
        "minilm",
        "Model for search by meaning; `none` leaves full-text search alone.",
        choices=("minilm", "none"),
        user_only=True,
    ),
    Setting("library.max_pdf_mb", "int", 100, "Larger PDFs are refused."),
    Setting("skills.paths", "list", [], "Further folders with skills.", user_only=True),
    Setting("diagnostics.enabled", "bool", True, "Whether .tex and .bib files get diagnostics."),
    Setting(
        "log.level",
        "str",
        "WARNING",
        "Level of the log on standard error.",
        ("ASTRORESEARCH_LOG",),
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        user_only=True,
    ),
)

_BY_KEY = {s.key: s for s in SETTINGS}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "list": list,
    "table": dict,
}
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "table": "a table",
}


@dataclass(frozen=True)
class Folders:
    """Where this user's files live. `ASTRORESEARCH_HOME` moves all of them together."""

    data: Path
    config: Path
    state: Path

    @property
    def database(self) -> Path:
        """The library's SQLite file."""
        return self.data / "library.db"

    @property
    def papers(self) -> Path:
        """One folder a paper, named by its id."""
        return self.data / "papers"

    @property
    def tool_results(self) -> Path:
        """Long results of tools, written once."""
        return self.data / "tool-results"

    @property
    def config_file(self) -> Path:
        """The user's settings."""
        return self.config / "config.toml"

    @property
    def grants_file(self) -> Path:
        """Permission rules that the user allowed, by workspace."""
        return self.state / "granted-permissions.toml"

    @property
    def trust_file(self) -> Path:
        """Real paths of trusted workspaces, one a line."""
        return self.state / "trusted-workspaces"


def folders(env: Mapping[str, str] = os.environ) -> Folders:
    """The user's folders, by `ASTRORESEARCH_HOME` or the platform's conventions. Creates nothing."""
    if home := env.get("ASTRORESEARCH_HOME"):
        root = Path(home).expanduser().absolute()
        return Folders(root, root, root)
    dirs = platformdirs.PlatformDirs("astroresearch", appauthor=False)
    return Folders(dirs.user_data_path, dirs.user_config_path, dirs.user_state_path)


@dataclass(frozen=True)
class Problem:
    """A setting that could not be used, and what happened instead."""

    where: str
    message: str


class Settings:
    """The settings in force: `settings["model.name"]`, each with the place it came from."""

    def __init__(
        self,
        values: Mapping[str, Any],
        origins: Mapping[str, str],
        problems: tuple[Problem, ...],
        tables: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {},
    ) -> None:
        self._values = dict(values)
        self._tables = dict(tables)
        self.origins = dict(origins)
        self.problems = problems

    def __getitem__(self, key: str) -> Any:
        return self._values.get(key, _BY_KEY[key].default)

    def text(self, key: str) -> str:
        """A setting of type str."""
        return str(self[key])

    def integer(self, key: str) -> int:
        """A setting of type int."""
        return int(self[key])

    def number(self, key: str) -> float:
        """A setting of type float."""
        return float(self[key])

    def items(self, key: str) -> tuple[str, ...]:
        """A setting of type list, as strings."""
        return tuple(str(v) for v in self[key])

    def tables(self, key: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """A `files_only` setting: (file, table) of each file that has one, the user's first."""
        return self._tables.get(key, ())

    def secret(self, key: str) -> Secret | None:
        """A secret setting, or None where it is not set."""
        value = str(self[key])
        return Secret(value) if value else None

    def with_values(self, values: Mapping[str, Any]) -> Settings:
        """A copy with some values replaced: what was chosen in a window, secrets of the keyring."""
        return Settings(self._values | dict(values), self.origins, self.problems, self._tables)

    def secrets(self) -> tuple[str, ...]:
        """All secret values in force, for the redactor of the log."""
        return tuple(v for s in SETTINGS if s.secret and (v := str(self[s.key])))


def load(
    *,
    where: Folders,
    env: Mapping[str, str] = os.environ,
    workspace: Path | None = None,
    editor: Mapping[str, Any] | None = None,
) -> Settings:
    """Reads all sources in order. Never raises for a bad value: it is left out and reported in `problems`.

    Args:
        where: The user's folders; `where.config_file` is read if it exists.
        env: The environment.
        workspace: A *trusted* workspace whose `.astroresearch/config.toml` is read; None reads none.
        editor: The editor's `astroresearch` section, nested or dotted.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    tables: dict[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {}

    def take(source: Mapping[str, Any], origin: str, *, from_workspace: bool = False) -> None:
        for key, value in _flatten(source).items():
            setting = _BY_KEY.get(key)
            if setting is None:
                problems.append(Problem(origin, f"Unknown setting `{key}`."))
            elif from_workspace and setting.user_only:
                problems.append(
                    Problem(origin, f"`{key}` is never read from a workspace; set it in your own config.toml.")
                )
            elif (bad := _misfit(setting, value)) is not None:
                problems.append(Problem(origin, bad))
            elif setting.files_only and origin == "editor":
                if value != setting.default:
                    problems.append(Problem(origin, f"`{key}` is read from config.toml only."))
            elif setting.files_only:
                tables[key] = (*tables.get(key, ()), (origin, value))
                origins[key] = origin
            else:
                values[key] = value
                origins[key] = origin

    take(_read_toml(where.config_file, problems), str(where.config_file))
    if workspace is not None:
        path = workspace / ".astroresearch" / "config.toml"
        take(_read_toml(path, problems), str(path), from_workspace=True)
    for setting in SETTINGS:
        for name in setting.env:
            if env.get(name):
                take({setting.key: _from_text(setting, env[name])}, f"environment variable {name}")
                break
    if editor:
        take({k: v for k, v in _flatten(editor).items() if v not in (None, "") and k in _BY_KEY}, "editor")
    return Settings(values, origins, tuple(problems), tables)


def _read_toml(path: Path, problems: list[Problem]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(Problem(str(path), f"Could not be read: {error}. None of it is in force."))
        return {}


def _flatten(source: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in source.items():
        name = f"{prefix}{key}"
        known = _BY_KEY.get(name)
        if isinstance(value, Mapping) and not (known and known.type == "table"):
            out |= _flatten(value, name + ".")
        else:
            out[name] = value
    return out


def _misfit(setting: Setting, value: Any) -> str | None:
    shown = "what stands there" if setting.secret else repr(value)
    if not isinstance(value, _TYPES[setting.type]) or (isinstance(value, bool) and setting.type != "bool"):
        return f"`{setting.key}` must be {_WORDS[setting.type]}, not {shown}; it is left out."
    if setting.choices and value not in setting.choices:
        return f"`{setting.key}` must be one of {', '.join(setting.choices)}, not {value!r}; it is left out."
    return None


def _from_text(setting: Setting, text: str) -> Any:
    try:
        if setting.type == "int":
            return int(text)
        if setting.type == "float":
            return float(text)
    except ValueError:
        return text  # _misfit reports it
    if setting.type == "bool":
        return text.lower() in ("1", "true", "yes", "on")
    if setting.type == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def require(key: str) -> Setting:
    """The setting of that name.

    Raises:
        InvalidInput: There is none.
    """
    try:
        return _BY_KEY[key]
    except KeyError:
        raise InvalidInput(f"There is no setting `{key}`.", hint="`astroresearch doctor` lists all of them.") from None


def granted(workspace: Path, where: Folders) -> tuple[str, ...]:
    """Permission rules that the user allowed for this workspace, by real path; the file may be edited by hand."""
    known = _read_toml(where.grants_file, []).get(str(workspace.resolve()), [])
    return tuple(str(rule) for rule in known) if isinstance(known, list) else ()


def grant(workspace: Path, rule: str, where: Folders) -> None:
    """Remembers a rule that the user allowed for this workspace."""
    everything = _grants(where)
    rules = everything.setdefault(str(workspace.resolve()), [])
    if rule not in rules:
        rules.append(rule)
        _write_grants(everything, where)


def revoke(workspace: Path, rule: str, where: Folders) -> bool:
    """Forgets a rule that the user allowed for this workspace; True if there was one."""
    everything = _grants(where)
    real = str(workspace.resolve())
    rules = everything.get(real, [])
    if rule not in rules:
        return False
    everything[real] = [kept for kept in rules if kept != rule]
    _write_grants({key: kept for key, kept in everything.items() if kept}, where)
    return True


def _grants(where: Folders) -> dict[str, list[Any]]:
    return {k: v for k, v in _read_toml(where.grants_file, []).items() if isinstance(v, list)}


def _write_grants(everything: Mapping[str, list[Any]], where: Folders) -> None:
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in sorted(everything.items())]
    where.grants_file.parent.mkdir(parents=True, exist_ok=True)
    head = '# What you allowed "in this workspace". Delete a rule or a line to take it back.\n'
    # Another window may be reading: it sees the old file or the new one.
    beside = where.grants_file.with_name(f"{where.grants_file.name}.{os.getpid()}")
    beside.write_text(head + "\n".join(lines) + "\n", "utf-8")
    beside.replace(where.grants_file)


def is_trusted(workspace: Path, where: Folders) -> bool:
    """Whether the user trusted this folder or one above it with `astroresearch trust`, by real path."""
    real = workspace.resolve()
    try:
        lines = where.trust_file.read_text("utf-8").splitlines()
    except OSError:
        return False
    trusted = {Path(line) for line in lines if line.strip()}
    return real in trusted or any(parent in trusted for parent in real.parents)


def trust(workspace: Path, where: Folders) -> Path:
    """Remembers a folder as trusted, by real path, which is returned."""
    real = workspace.resolve()
    if not is_trusted(real, where):
        where.trust_file.parent.mkdir(parents=True, exist_ok=True)
        with where.trust_file.open("a", encoding="utf-8") as file:
            file.write(f"{real}\n")
    return real
