"""What a provider's refusals mean: the typed error for people, whether to try again and when, what to leave out.

Pure functions of status, headers and body; nothing here sends anything.
"""

from __future__ import annotations

import email.utils
import itertools
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from astroresearch.errors import ModelError, ModelErrorKind
from astroresearch.models.profiles import Lessons, ModelProfile

MAX_WAIT_S = 60.0

_NOT_OVERFLOW = re.compile(r"rate[ _-]?limit|too many requests|throttl", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"prompt is too long|exceeds the context window|maximum context length|input token count.*exceeds the maximum"
    r"|maximum prompt length is \d+|reduce the length of the messages"
    r"|exceeds the (?:available context size|maximum allowed input length)"
    r"|longer than the model'?s context length|greater than the context length|context window exceeds limit"
    r"|exceeded model token limit|too large for model with \d+ maximum|prompt too long; exceeded"
    r"|context[_ ]length[_ ]exceeded|exceed_context_size_error|Range of input length should be"
    r"|model_context_window_exceeded|input is too long|too many tokens",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LARGE = re.compile(r"request too large.*?limit:? (\d+), requested:? (\d+)", re.IGNORECASE | re.DOTALL)
_TRY_AGAIN = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(\d+)h)?(?:(\d+)m(?!s))?\s*(?:([\d.]+)\s*(ms|s))?", re.IGNORECASE
)
_REFUSING = re.compile(
    r"extra_forbidden|not permitted|unsupported|(?:not|n't) (?:be )?support|unknown|unrecogni[sz]ed|unexpected|not allowed"
    r"|invalid|no such|unavailable|must be",
    re.IGNORECASE,
)
_KEYLIKE = re.compile(r"\b(?:sk|pk|gsk|xai|AIza|hf)[-_][\w*-]{6,}|\bBearer\s+\S+", re.IGNORECASE)
_TAGS = re.compile(r"<[^>]*>")
_NEVER_DROPPED = frozenset({"model", "messages", "stream", "tools"})


@dataclass(frozen=True)
class Refusal:
    """A provider's answer that is no answer."""

    status: int | None
    "HTTP status, or the number that an error object inside a stream gave; None where there is none."
    text: str
    "What the provider said, for people; no secrets."
    raw: str = ""
    "All of it, for matching."
    headers: Mapping[str, str] | None = None

    @property
    def overflow(self) -> bool:
        """Whether it says that the request does not fit the model's context window."""
        if (size := _TOO_LARGE.search(self.raw)) is not None:
            return int(size[2]) > int(size[1])
        return _NOT_OVERFLOW.search(self.raw) is None and _OVERFLOW.search(self.raw) is not None

    @property
    def quota(self) -> bool:
        """Whether the account is out of money, which waiting does not mend."""
        return "insufficient_quota" in self.raw or "billing" in self.raw.lower()


def refusal(status: int | None, body: Any, profile: ModelProfile, headers: Mapping[str, str] | None = None) -> Refusal:
    """Reads an error body of any of the shapes that providers send: object, list, string, HTML, nothing."""
    error = body[0] if isinstance(body, list) and body else body
    if isinstance(error, Mapping) and isinstance(error.get("error"), (Mapping, str)):
        error = error["error"]
    raw = body if isinstance(body, str) else json.dumps(body, default=str) if body else ""
    text = ""
    if isinstance(error, Mapping):
        text = next((str(error[k]) for k in ("message", "detail", "msg", "error") if error.get(k)), "")
        if status is None:
            status = _status(error.get("code")) or _status(error.get("status"))
    elif isinstance(error, str):
        text = _TAGS.sub(" ", error)
    text = " ".join(redact(text, profile).split())
    return Refusal(status, text[:500], raw, headers)


def redact(text: str, profile: ModelProfile) -> str:
    """The text without the profile's key and without what looks like one."""
    if profile.api_key:
        text = text.replace(profile.api_key.reveal(), "…")
    return _KEYLIKE.sub("…", text)


def model_error(found: Refusal, profile: ModelProfile, *, shown: bool = False) -> ModelError:
    """The typed error, with a sentence that names the model, the URL and where the key came from."""
    where = f"{profile.name} at {profile.shown_url}"
    said = f" It says: {found.text}" if found.text else ""
    kind, message, hint = _explain(found, profile, where)
    wait = retry_after(found.headers or {}, found.raw)
    return ModelError(message + said, kind=kind, hint=hint, status=found.status, shown=shown, retry_after_s=wait)


def _explain(found: Refusal, profile: ModelProfile, where: str) -> tuple[ModelErrorKind, str, str]:
    status = found.status or 0
    if found.overflow or status == 413:
        hint = f"`model.context_window` is {profile.context_window}; the endpoint's own limit may be lower."
        return "context_length", f"The request is too long for {where}.", hint
    if status in (401, 403):
        source = f" The key in use comes from {profile.key_source}." if profile.key_source else ""
        held = "refused the API key" if profile.api_key else "wants an API key, and none is set"
        hint = f"Set `model.api_key` (OPENAI_API_KEY) for this endpoint, or change `model.base_url`.{source}"
        return "auth", f"{profile.shown_url} {held} for model {profile.name}.", hint
    if status == 404:
        hint = "Check `model.name` and `model.base_url` (most base URLs end in /v1)."
        return "no_model", f"There is no model {profile.name} at {profile.shown_url}.", hint
    if status == 429:
        hint = (
            "Wait, or use another model."
            if not found.quota
            else "See the provider's billing page, or use another model."
        )
        what = "has no quota left" if found.quota else "limits the rate of requests"
        return "rate_limited", f"{profile.shown_url} {what} for model {profile.name}.", hint
    if status >= 500 or status in (408, 409, 425):
        return (
            "unavailable",
            f"{where} is not available (HTTP {status}).",
            "Try again in a while, or use another model.",
        )
    if not status:
        return "unavailable", f"{where} failed while it answered.", "Try again in a while, or use another model."
    if "enable-auto-tool-choice" in found.raw:
        hint = "Start vLLM with --enable-auto-tool-choice and --tool-call-parser."
        return "refused", f"{where} was started without tool calling.", hint
    return "refused", f"{where} refused the request (HTTP {status}).", "Check `model.name` and `model.extra_body`."


def failure(kind: ModelErrorKind, profile: ModelProfile, what: str) -> ModelError:
    """An answer that broke off, or a request that filled the window."""
    message = f"The answer of {profile.name} at {profile.shown_url} broke off: {what}"
    if kind == "context_length":
        message = f"{profile.name} at {profile.shown_url}: {what}"
    return ModelError(message, kind=kind, hint="Send the message again.")


def timed_out(profile: ModelProfile, what: str, seconds: float) -> ModelError:
    """This time passed with this (`no answer`, `nothing`)."""
    return ModelError(
        f"{profile.name} at {profile.shown_url} sent {what} for {span(seconds)}.",
        kind="timeout",
        hint="Try again, or raise `model.idle_timeout_s` for a slow model.",
    )


def no_stream(profile: ModelProfile, kind: str, head: bytes) -> ModelError:
    """The endpoint answered 200 with something else; `kind` is its content type, `head` how it starts."""
    start = redact(" ".join(head.decode("utf-8", "replace").split())[:120], profile)
    return ModelError(
        f"{profile.shown_url} did not answer with a model's stream but with {kind or 'no content type'}: “{start}”.",
        kind="bad_answer",
        hint="Check `model.base_url`; most base URLs end in /v1.",
    )


def cut_notice(profile: ModelProfile, size: int, used: int) -> str:
    """For a server that read far fewer tokens than were sent."""
    return (
        f"{profile.name} read only {used} of about {size} tokens: its server seems to cut long prompts silently. "
        "For Ollama set OLLAMA_CONTEXT_LENGTH."
    )


def span(seconds: float) -> str:
    """A time for people: `61 s`, `10 min`, `24 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def retry_after(headers: Mapping[str, str], text: str = "", now: float | None = None) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, `retry-after` (seconds or date), or words; else None."""
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    try:
        if "retry-after-ms" in lower:
            return max(0.0, float(lower["retry-after-ms"]) / 1000)
    except ValueError:
        pass
    if value := lower.get("retry-after"):
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            at = email.utils.parsedate_to_datetime(value).timestamp()
        except (ValueError, OverflowError):
            pass
        else:
            return max(0.0, at - (time.time() if now is None else now))
    match = _TRY_AGAIN.search(text)
    if match is None or not any(match.groups()):
        return None
    seconds = float(match[3] or 0) / (1000 if match[4] == "ms" else 1)
    return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + seconds


def learn(found: Refusal, body: Mapping[str, Any], lessons: Lessons) -> str | None:
    """What to leave out or put in so that the request may pass; noted in `lessons`. Returns it for people, else None.

    Only refusals of a form (400, 422 and kin) teach; one of them teaches one thing.
    """
    if found.status not in (400, 422) or found.overflow:
        return None
    raw = found.raw
    if _learn_messages(raw, body, lessons):
        return "the form of the messages"
    if _REFUSING.search(raw) is None:
        return None
    if "max_completion_tokens" in raw and "max_tokens" in body and not lessons.completion_tokens:
        lessons.completion_tokens = True
        return "`max_completion_tokens` in place of `max_tokens`"
    if "tools" in body and re.search(r"\btools?\b(?! choice)", raw) and "support" in raw.lower():
        lessons.no_tools = True
        return "no tools"
    for name in body:
        if name not in _NEVER_DROPPED and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", raw):
            lessons.dropped.add(name)
            return f"no `{name}`"
    if "tools" in body and re.search(r"(?<![\w])tools(?!\w)", raw) and "extra_forbidden" in raw:
        lessons.no_tools = True
        return "no tools"
    return None


def _learn_messages(raw: str, body: Mapping[str, Any], lessons: Lessons) -> bool:
    lower = raw.lower()
    roles = [m["role"] for m in body["messages"]]
    about_roles = "3230" in raw or ("role" in lower and "after" in lower and "tool" in lower)
    if about_roles and not lessons.answer_before_user and ("tool", "user") in itertools.pairwise(roles):
        lessons.answer_before_user = True
        return True
    if "reasoning" in lower and any("tool_calls" in m for m in body["messages"]):
        back = any(name in m for m in body["messages"] for name in ("reasoning_content", "reasoning", "reasoning_text"))
        wanted = not back and "pass" in lower and "back" in lower
        refused = back and _REFUSING.search(raw) is not None
        if (wanted or refused) and lessons.reasoning_back is not wanted:
            lessons.reasoning_back = wanted
            return True
    blank = any("tool_calls" in m and m.get("content") == "" for m in body["messages"])
    if blank and "content" in lower and re.search(r"empty|non-empty|blank|at least 1 char", lower):
        lessons.omit_empty_content = True
        return True
    return False


def _status(code: Any) -> int | None:
    try:
        number = int(code)
    except (TypeError, ValueError):
        return None
    return number if 400 <= number < 600 else None
