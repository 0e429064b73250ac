"""Every error that a caller may want to tell apart, as one tree.

Branches follow what a caller does with them: show the sentence to the user (all of them), give it to the model as the
result of a tool (the executor does that for all of them), retry (`ServiceError.retryable`), or stop.

    AstroResearchError
    ├── InvalidInput         the caller's input is wrong; names the field
    ├── NotFound             a well-formed name that nothing answers to
    ├── Conflict             the thing changed since it was read, or somebody else holds it
    ├── NotAllowed           a path, host or action outside what was granted
    ├── ServiceError         ADS, arXiv, CDS or another HTTP service
    │   ├── Unreachable      no route, refused, TLS, DNS
    │   ├── TimedOut         the total deadline passed
    │   ├── RateLimited      with `retry_after_s` where the service said it
    │   ├── AuthFailed       a key is missing or refused
    │   ├── BadAnswer        an answer that is not what the service documents (HTML for JSON, cut, too large)
    │   └── Blocked          the address guard refused to connect
    ├── ModelError           the language model failed; `kind` says how
    ├── DocumentError        a PDF or other document that can't be used; `reason` is a stable word
    └── StoreError           the library's database
        ├── StoreTooNew      written by a newer version
        ├── StoreDamaged     not a database, or fails its integrity check
        └── StoreUnavailable read-only, full disk, locked for too long
"""

from __future__ import annotations

from typing import ClassVar, Literal


class AstroResearchError(Exception):
    """What happened, to what; `hint` says what to do now. Both are sentences for people and hold no secrets."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InvalidInput(AstroResearchError):
    """Input that does not fit; `field` names the parameter where there is one."""

    code = "invalid_input"

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class NotFound(AstroResearchError):
    """A well-formed name that nothing answers to."""

    code = "not_found"


class Conflict(AstroResearchError):
    """The thing changed since it was read, or another process holds it."""

    code = "conflict"


class NotAllowed(AstroResearchError):
    """A path, host or action outside what the user granted."""

    code = "not_allowed"


class ServiceError(AstroResearchError):
    """An HTTP service failed; `source` is its short name (`ads`, `arxiv`, `sesame`, …)."""

    code = "service"
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, source: str, url: str = "", status: int | None = None, attempt: int = 1, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.url = url
        self.status = status
        self.attempt = attempt


class Unreachable(ServiceError):
    """No connection could be made."""

    code = "unreachable"
    retryable = True


class TimedOut(ServiceError):
    """The total deadline passed before the whole answer was there."""

    code = "timed_out"
    retryable = True


class RateLimited(ServiceError):
    """The service asked to wait; `retry_after_s` is None where it did not say how long."""

    code = "rate_limited"

    def __init__(
        self,
        message: str,
        *,
        source: str,
        url: str = "",
        status: int | None = 429,
        attempt: int = 1,
        hint: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, source=source, url=url, status=status, attempt=attempt, hint=hint)
        self.retry_after_s = retry_after_s


class AuthFailed(ServiceError):
    """A key is missing or was refused."""

    code = "auth_failed"


class BadAnswer(ServiceError):
    """The answer is not what the service documents."""

    code = "bad_answer"


class Blocked(ServiceError):
    """The address guard refused to connect: a private address, or a host that was not granted."""

    code = "blocked"


ModelErrorKind = Literal[
    "auth",  # 401, 403
    "no_model",  # 404, or none named
    "rate_limited",
    "context_length",
    "refused",  # any other 4xx
    "unavailable",  # 5xx, no connection
    "timeout",
    "broken_stream",  # cut, no finish reason, bad JSON
    "bad_answer",  # HTML, empty stream, not this protocol
]


class ModelError(AstroResearchError):
    """The language model failed. `shown` says whether any of its output was already streamed in this step."""

    code = "model"

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        hint: str = "",
        status: int | None = None,
        shown: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status
        self.shown = shown
        self.retry_after_s = retry_after_s


DocumentReason = Literal[
    "not_pdf",
    "empty",
    "encrypted",
    "damaged",
    "no_text",
    "too_large",
    "too_many_pages",
    "timeout",
    "out_of_memory",
    "crashed",
    "quarantined",
    "unreadable",
]


class DocumentError(AstroResearchError):
    """A document that can't be used; `reason` is stable, the message is for people."""

    code = "document"

    def __init__(self, message: str, *, reason: DocumentReason, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class StoreError(AstroResearchError):
    """The library's database; `path` is its file."""

    code = "store"

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


class StoreTooNew(StoreError):
    """The database was written by a newer version of AstroResearch."""

    code = "store_too_new"


class StoreDamaged(StoreError):
    """The file is not a database of ours, or fails its integrity check."""

    code = "store_damaged"


class StoreUnavailable(StoreError):
    """The database can't be used now: read-only, full disk, locked for too long."""

    code = "store_unavailable"
