"""From the text that a model wrote to a tool's typed arguments: strictly, or with a complaint that it can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from astroresearch.engine.tool import AnyTool, Arguments, schema_of
from astroresearch.engine.untrusted import plain, sane
from astroresearch.errors import InvalidInput

_SHOWN = 120
_MAX_COMPLAINTS = 5


@dataclass(frozen=True, slots=True)
class Parsed:
    """Arguments that fit."""

    args: Arguments
    raw: Mapping[str, Any]
    "As the model gave them."
    unknown: Sequence[str] = ()
    "Fields that the tool does not have."


def parse(tool: AnyTool, text: str) -> Parsed:
    """Reads a call's arguments.

    Raises:
        InvalidInput: They are not one JSON object, or do not fit; the message names the field and what is expected.
    """
    return fit(tool, _object(tool, text))


def fit(tool: AnyTool, raw: Mapping[str, Any]) -> Parsed:
    """Checks an object against the tool's parameters.

    Raises:
        InvalidInput: It does not fit.
    """
    try:
        args: Arguments = tool.arguments.model_validate(dict(raw))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        first = ".".join(str(part) for part in details[0]["loc"])
        said = "; ".join(_complaint(d["loc"], d["msg"], d["input"], d["type"]) for d in details[:_MAX_COMPLAINTS])
        raise InvalidInput(
            f"The arguments of `{tool.name}` do not fit: {said}.", hint=_expected(tool), field=first
        ) from None
    fields = type(args).model_fields
    known = set(fields) | {f.alias for f in fields.values() if f.alias}
    return Parsed(args, raw, tuple(str(name) for name in raw if name not in known))


def _object(tool: AnyTool, text: str) -> dict[str, Any]:
    if text.strip() in ("", "null"):
        if _required(tool):
            raise InvalidInput(f"`{tool.name}` was called without arguments.", hint=_expected(tool))
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The arguments of `{tool.name}` are not valid JSON ({_reason(error)}); nothing was run. They began with "
            f"{text[:_SHOWN]!r} and ended with {text[-40:]!r}.",
            hint="Send them again, complete, as one JSON object; if they were cut, ask for less at once.",
        ) from None
    if isinstance(value, str):
        raise InvalidInput(
            f"The arguments of `{tool.name}` are a JSON string, not an object: they seem to be encoded twice.",
            hint=_expected(tool),
        )
    if not isinstance(value, dict):
        raise InvalidInput(
            f"The arguments of `{tool.name}` are a JSON {_kind(value)}, not an object.", hint=_expected(tool)
        )
    return {sane(name): plain(given) for name, given in value.items()}


def _required(tool: AnyTool) -> Sequence[str]:
    return tuple(schema_of(tool.arguments).get("required", ()))


def _expected(tool: AnyTool) -> str:
    properties = schema_of(tool.arguments).get("properties", {})
    required = _required(tool)
    parts = [f"`{name}` ({_type(spec)}{', required' if name in required else ''})" for name, spec in properties.items()]
    return f"Expected: {', '.join(parts)}." if parts else "It takes no arguments: send {}."


def _type(spec: Mapping[str, Any]) -> str:
    if "enum" in spec:
        return "one of " + ", ".join(map(str, spec["enum"]))
    if "anyOf" in spec:
        return " or ".join(_type(s) for s in spec["anyOf"])
    return str(spec.get("type", "object"))


def _complaint(loc: tuple[int | str, ...], message: str, given: object, kind: str) -> str:
    name = ".".join(str(part) for part in loc) or "the object"
    if kind == "missing":
        return f"`{name}` is required"
    return f"`{name}`: {message[:1].lower()}{message[1:]} (given: {sane(repr(given))[:_SHOWN]})"


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _kind(value: object) -> str:
    return {list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}.get(
        type(value), "value"
    )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {repeated!r} stands twice")
    return found
