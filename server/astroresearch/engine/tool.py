"""What a tool is. One class in one file under tools/; the executor injects the context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from astroresearch.engine.model import ToolDefinition

Effect = Literal["none", "library_write", "workspace_write", "exec", "egress", "memory"]
Kind = Literal["read", "search", "edit", "execute", "think", "fetch", "other"]
Decision = Literal["deny", "ask", "allow"]


class Arguments(BaseModel):
    """Base of a tool's typed parameters. Unknown fields are ignored; the executor tells the model of them."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=False, frozen=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """A tool's own opinion on one call; `reason` is shown to the user (ask) or the model (deny)."""

    decision: Decision
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A tool's result."""

    content: str
    "For the model."
    is_error: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    "Plain JSON for front ends: hits, citations, a diff, …"
    tainted: bool | None = None
    "Whether it holds a stranger's text; None: as the tool's `reads_untrusted` says."
    taint_source: str = ""
    "Where that text comes from, for people: `PDF of Fabian 2012`."
    ends_turn: bool = False


ProgressReport = Callable[[str, float | None], None]

ServicesT = TypeVar("ServicesT")
ArgsT = TypeVar("ArgsT", bound=Arguments)


def _no_progress(text: str, fraction: float | None) -> None:
    return None


@dataclass
class ReadState:
    """What this session has read of a file: for `unchanged` stubs and for the rule that an edit needs a prior read."""

    version: str
    "Buffer version or content hash."
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass
class ToolContext(Generic[ServicesT]):
    """What a running tool may use. One per call."""

    services: ServicesT
    session_id: str
    turn_id: str
    agent: str
    call_id: str
    silent: bool = False
    "Nobody can be asked."
    tainted: bool = False
    "A stranger's text is in the context of this turn."
    taint_sources: tuple[str, ...] = ()
    thinking: bool = False
    depth: int = 0
    "0 for the main agent, 1 for its subagents."
    reads: dict[str, ReadState] = field(default_factory=dict)
    "Keyed by canonical path; lives as long as the session is open."
    progress: ProgressReport = _no_progress
    extra: Mapping[str, Any] = field(default_factory=dict)
    "What the front end sent along with the turn: open file, cursor, cite keys."


class Tool(ABC, Generic[ArgsT, ServicesT]):
    """A tool with its traits. Instances are stateless: all state lives in the services and the context."""

    name: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[Kind] = "other"
    arguments: type[ArgsT]
    interrupt_behavior: ClassVar[Literal["cancel", "block"]] = "cancel"
    "`block`: finishes in spite of a cancel (writers), though not beyond its time-out."
    effect: ClassVar[Effect] = "none"
    reads_untrusted: ClassVar[bool] = False
    causes_sibling_abort: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    "None: the setting `agent.tool_timeout_s`."
    max_result_chars: ClassVar[int | None] = None
    "Longer results are persisted and replaced by a stub. None: `Limits.max_result_chars`; tools that page set their own."
    default_decision: ClassVar[Decision] = "ask"
    "What holds when no rule matches."

    def title(self, args: ArgsT) -> str:
        """A line for people that says what this call does."""
        return self.name.replace("_", " ")

    def is_concurrency_safe(self, args: ArgsT) -> bool:
        """Whether the call may overlap with any other."""
        return False

    def resources(self, args: ArgsT) -> frozenset[str] | None:
        """What the call touches, for calls that are not safe: disjoint ones may overlap. None: everything."""
        return None

    def rule_value(self, args: ArgsT) -> str:
        """What a rule's pattern is matched against: a canonical path, a host, a command. Empty: nothing to match."""
        return ""

    def rule_names(self, args: ArgsT, context: ToolContext[ServicesT]) -> Sequence[str]:
        """All canonical names of what `rule_value` names, the one for new rules first; a rule may match any of them.

        File tools give the resolved path relative to the workspace, then absolute, so that `..` and links can't dodge a rule.
        """
        value = self.rule_value(args)
        return (value,) if value else ()

    async def check_permissions(self, args: ArgsT, context: ToolContext[ServicesT]) -> Rule | None:
        """The tool's own deny, ask or allow for this call; None leaves it to the rules."""
        return None

    def taint_exempt(self, args: ArgsT, context: ToolContext[ServicesT]) -> bool:
        """For effect `egress`: whether this call carries too little to leak anything (see docs/architecture.md)."""
        return False

    async def describe(self, args: ArgsT, context: ToolContext[ServicesT]) -> str:
        """What will happen, in full, for a permission question: the diff, the host, the command."""
        return self.title(args)

    @abstractmethod
    async def execute(self, args: ArgsT, context: ToolContext[ServicesT]) -> ToolOutput:
        """Does it. Any exception becomes an error result; `AstroResearchError` keeps its sentence."""

    def definition(self) -> ToolDefinition:
        """What the model sees."""
        return ToolDefinition(self.name, self.description, schema_of(self.arguments))


_schemas: dict[type[Arguments], Mapping[str, Any]] = {}


def schema_of(arguments: type[Arguments]) -> Mapping[str, Any]:
    """The JSON Schema of a tool's parameters, without the titles that say nothing. Built once; not to be changed."""
    if (known := _schemas.get(arguments)) is not None:
        return known
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for prop in schema.get("properties", {}).values():
        prop.pop("title", None)
    _schemas[arguments] = schema
    return schema


AnyTool = Tool[Any, Any]


class Registry:
    """Tools by name; definitions always come sorted by name, so that a provider's prompt cache can hit."""

    def __init__(self, tools: Sequence[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: AnyTool) -> None:
        """Adds or replaces."""
        self._tools[tool.name] = tool

    def get(self, name: str) -> AnyTool | None:
        """The tool of that name; a wrong case is forgiven."""
        return self._tools.get(name) or next((t for n, t in self._tools.items() if n.lower() == name.lower()), None)

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._tools))

    def without(self, *names: str) -> Registry:
        """A copy that lacks these."""
        return Registry([t for n, t in self._tools.items() if n not in names])

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model sees of all of them."""
        return tuple(self._tools[name].definition() for name in self.names())
