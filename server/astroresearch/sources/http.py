"""One HTTP client for every service: total deadline, size cap, retries, rate limits, guarded addresses, typed errors.

What goes wrong is always one of `errors.ServiceError`'s children, at the latest one second after the deadline. A URL in an
error or log has no query: it may hold what the user searches for. Secrets travel in a header, to their own host only.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin, urlsplit

import anyio

from astroresearch import __version__
from astroresearch.config import Secret
from astroresearch.errors import AuthFailed, BadAnswer, Blocked, RateLimited, ServiceError, TimedOut, Unreachable
from astroresearch.sources.guard import AddressGuard, AddressRefused, Resolver, system_resolver

if TYPE_CHECKING:
    import httpx2

USER_AGENT = f"AstroResearch/{__version__}"
METADATA_DEADLINE_S = 15.0
METADATA_BYTES = 10_000_000
MAX_REDIRECTS = 10
ARXIV_INTERVAL_S = 3.0
"arXiv's terms of use: one request every three seconds, one connection."

Sink = Callable[[bytes], Any]
OnBytes = Callable[[int, int | None], None]
"Bytes so far, and all of them where the service says so."


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask, of whom, and within which bounds."""

    url: str
    source: str
    "Short name of the service, for errors and rate limits: ads, arxiv, sesame, …"
    params: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    token: Secret | None = None
    "Sent as `Authorization: Bearer`, to the URL's own origin only."
    method: str = "GET"
    content: bytes | None = None
    deadline_s: float = METADATA_DEADLINE_S
    max_bytes: int = METADATA_BYTES
    attempts: int = 3
    hosts: frozenset[str] | None = None
    "Hosts that a redirect may lead to, subdomains included; None allows every public one."
    accept: frozenset[int] = frozenset()
    "Error statuses whose body the caller wants to read."


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    "Names in lower case."
    body: bytes
    url: str
    "Where it came from after redirects, without query."
    source: str

    def text(self) -> str:
        """The body in its declared charset, else UTF-8; what does not fit is replaced."""
        _, _, charset = self.headers.get("content-type", "").partition("charset=")
        try:
            return self.body.decode(charset.split(";")[0].strip(" \"'") or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            BadAnswer: It is something else; says so when that is a web page.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            what = "a web page" if looks_like_html(self.body) else "something that is not JSON"
            raise BadAnswer(
                f"{_title(self.source)} answered with {what}.", source=self.source, url=self.url, status=self.status
            ) from None


class Http:
    """Shared by all sources; open it as an async context manager, or call `aclose` at the end."""

    def __init__(
        self,
        loopback: Collection[tuple[str, int]] = (),
        *,
        user_agent: str = USER_AGENT,
        intervals: Mapping[str, float] | None = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        """Opens nothing yet.

        Args:
            loopback: The only (host, port) pairs of this machine that may be reached; see `guard.loopback_pairs`.
            user_agent: Who we say we are.
            intervals: Least seconds between two requests to a source, which then also has one connection only. The default
                is arXiv's, which a stand-in on this machine is spared.
            resolver: Host to addresses.
        """
        self.guard = AddressGuard(loopback, resolver)
        self._user_agent = user_agent
        self._gate_loopback = intervals is not None
        chosen = {"arxiv": ARXIV_INTERVAL_S} if intervals is None else intervals
        self._gates = {source: _Gate(seconds) for source, seconds in chosen.items()}
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def fetch(self, request: Request) -> Answer:
        """The whole answer, in memory. Raises `ServiceError`'s children."""
        parts: list[bytes] = []
        head = await self.stream(request, parts.append, parts.clear)
        return Answer(head.status, head.headers, b"".join(parts), head.url, head.source)

    async def stream(
        self, request: Request, sink: Sink, restart: Callable[[], Any], on_bytes: OnBytes | None = None
    ) -> Answer:
        """The answer's body into `sink`, piece by piece; `restart` is called before each attempt. Raises as `fetch`.

        Returns:
            The answer with an empty body.
        """
        import stamina

        failure: ServiceError | None = None

        def again(error: Exception) -> bool | float:
            return _wait_before_retry(error, deadline - anyio.current_time())

        async with AsyncExitStack() as stack:
            if gate := self._gate(request):
                await stack.enter_async_context(gate.turn())
            deadline = anyio.current_time() + request.deadline_s
            with anyio.move_on_after(request.deadline_s):
                retrying = stamina.retry_context(
                    on=again, attempts=request.attempts, timeout=None, wait_initial=0.3, wait_max=3.0, wait_jitter=0.2
                )
                async for attempt in retrying:
                    with attempt:
                        if attempt.num > 1 and gate:
                            await gate.pause()
                        restart()
                        try:
                            return await self._once(request, sink, on_bytes, attempt.num)
                        except ServiceError as error:
                            failure = error
                            raise
        raise failure or TimedOut(
            f"{_title(request.source)} did not answer completely within {request.deadline_s:g} s.",
            source=request.source,
            url=bare(request.url),
            hint="Try again later.",
        )

    async def _once(self, request: Request, sink: Sink, on_bytes: OnBytes | None, attempt: int) -> Answer:
        with _typed(request, attempt):
            async with self._follow(request) as (response, url):
                answer = Answer(response.status_code, dict(response.headers), b"", url, request.source)
                _raise_for_status(request, answer, attempt)
                await _read(response, request, sink, on_bytes)
                return answer

    @asynccontextmanager
    async def _follow(self, request: Request) -> AsyncIterator[tuple[httpx2.Response, str]]:
        """The first answer that is no redirect; each hop's address, host and scheme are tested."""
        client = self._open()
        url, seen = request.url, set[str]()
        params: dict[str, list[str]] | None = _grouped(request.params)
        method, content = request.method, request.content
        for _ in range(MAX_REDIRECTS + 1):
            _check_hop(request, url)
            headers = {"User-Agent": self._user_agent, "Accept-Encoding": "gzip", **request.headers}
            if request.token and _origin(url) == _origin(request.url):
                headers["Authorization"] = f"Bearer {request.token.reveal()}"
            async with client.stream(method, url, params=params, headers=headers, content=content) as response:
                target = response.headers.get("location", "")
                if response.status_code not in (301, 302, 303, 307, 308) or not target:
                    client.cookies.clear()
                    yield response, bare(url)
                    return
                url, params = urljoin(url, target), None
                if response.status_code not in (307, 308):
                    method, content = "GET", None
            if url in seen:
                break
            seen.add(url)
        raise BadAnswer(f"{_title(request.source)} redirects in a circle.", source=request.source, url=bare(url))

    def _gate(self, request: Request) -> _Gate | None:
        if not self._gate_loopback and _origin(request.url)[1:] in self.guard.loopback:
            return None
        return self._gates.get(request.source)

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            from astroresearch.sources.transport import guarded_client

            self._client = guarded_client(self.guard)
        return self._client


class _Gate:
    """One request at a time, and a pause after it."""

    def __init__(self, interval_s: float) -> None:
        self._interval = interval_s
        self._lock = anyio.Lock()
        self._last = -math.inf

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self._lock:
            await self.pause()
            try:
                yield
            finally:
                self._last = anyio.current_time()

    async def pause(self) -> None:
        await anyio.sleep(max(0.0, self._last + self._interval - anyio.current_time()))
        self._last = anyio.current_time()


def looks_like_html(body: bytes) -> bool:
    """Whether the answer is a web page, whatever it says it is."""
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html")) or b"<html" in head


def bare(url: str) -> str:
    """A URL without user, query and fragment: safe to show."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or a date), else by ADS's `X-RateLimit-Reset`; None when neither is there."""
    value = headers.get("retry-after", "").strip()
    if value.isdigit():
        return float(value)
    if value:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    reset = headers.get("x-ratelimit-reset", "").strip()
    if reset.isdigit() and headers.get("x-ratelimit-remaining", "").strip() == "0":
        return max(0.0, float(reset) - time.time())
    return None


def wait_text(seconds: float | None) -> str:
    """`Try again in 3 h.`"""
    if seconds is None:
        return "Try again in a few minutes."
    if seconds < 90:
        return f"Try again in {math.ceil(seconds)} s."
    return f"Try again in {math.ceil(seconds / 60)} min." if seconds < 5400 else f"Try again in {seconds / 3600:.0f} h."


def _wait_before_retry(error: Exception, left: float) -> bool | float:
    """Whether to try again: True by the usual back-off, a number after that many seconds."""
    if isinstance(error, RateLimited):
        wait = error.retry_after_s
        return max(wait, 0.05) if wait is not None and wait < min(left, 60.0) else False
    if isinstance(error, ServiceError):
        return error.retryable or (error.status is not None and error.status >= 500)
    return False


def _raise_for_status(request: Request, answer: Answer, attempt: int) -> None:
    status, source = answer.status, request.source
    if status < 400 or status in request.accept:
        return
    if status == 429:
        wait = retry_after(answer.headers)
        raise RateLimited(
            f"{_title(source)} asks to slow down.",
            source=source,
            url=answer.url,
            attempt=attempt,
            retry_after_s=wait,
            hint=wait_text(wait),
        )
    if status in (401, 403) and request.token:
        raise AuthFailed(
            f"{_title(source)} refuses the token.",
            source=source,
            url=answer.url,
            status=status,
            hint="Check or renew it.",
        )
    if status >= 499:  # 499: ADS is busy
        raise Unreachable(
            f"{_title(source)} has trouble (HTTP {status}).",
            source=source,
            url=answer.url,
            status=status,
            attempt=attempt,
            hint="Try again later.",
        )
    raise BadAnswer(
        f"{_title(source)} answered HTTP {status}.", source=source, url=answer.url, status=status, attempt=attempt
    )


def _check_hop(request: Request, url: str) -> None:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    source, where = request.source, bare(url)
    if parts.scheme not in ("http", "https") or not host:
        raise Blocked(
            f"{_title(source)} leads to a {parts.scheme or 'nameless'} address, not to the web.",
            source=source,
            url=where,
        )
    if request.hosts is None or url == request.url:
        return
    if not any(host == known or host.endswith("." + known) for known in request.hosts):
        raise Blocked(
            f"{_title(source)} leads to {host}, which is not one of the known hosts.", source=source, url=where
        )


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _grouped(params: Iterable[tuple[str, str]]) -> dict[str, list[str]] | None:
    out: dict[str, list[str]] = {}
    for name, value in params:
        out.setdefault(name, []).append(value)
    return out or None


async def _read(response: httpx2.Response, request: Request, sink: Sink, on_bytes: OnBytes | None) -> None:
    """The body, unpacked here so that a small answer can't become a huge one before anybody counts."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise BadAnswer(
            f"{_title(request.source)} packs its answer as {encoding}, which was not asked for.", source=request.source
        )
    total = _length(response) if encoding in ("identity", "") else None
    if total is not None and total > request.max_bytes:
        raise _too_large(request)
    unpack = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    count = 0
    async for raw in response.aiter_raw(65_536):
        for piece in _pieces(unpack, raw):
            count += len(piece)
            if count > request.max_bytes:
                raise _too_large(request)
            sink(piece)
        if on_bytes:
            on_bytes(count, total)
    if unpack is not None and not unpack.eof:
        raise BadAnswer(f"{_title(request.source)}'s answer is cut short.", source=request.source)


def _pieces(unpack: Any, raw: bytes) -> Iterable[bytes]:
    if unpack is None:
        yield raw
        return
    while raw and not unpack.eof:
        yield unpack.decompress(raw, 262_144)
        raw = unpack.unconsumed_tail


def _length(response: httpx2.Response) -> int | None:
    value = response.headers.get("content-length", "")
    return int(value) if value.isdigit() else None


def _too_large(request: Request) -> BadAnswer:
    return BadAnswer(
        f"{_title(request.source)}'s answer is larger than {request.max_bytes / 1e6:g} MB.", source=request.source
    )


@contextmanager
def _typed(request: Request, attempt: int) -> Iterator[None]:
    """Turns what httpx2, zlib and the guard raise into our tree."""
    import httpx2

    source, url = request.source, bare(request.url)
    try:
        yield
    except AddressRefused as error:
        raise Blocked(f"{_title(source)}: {error}", source=source, url=url) from None
    except httpx2.TimeoutException:
        raise TimedOut(f"{_title(source)} is too slow.", source=source, url=url, attempt=attempt) from None
    except (httpx2.ConnectError, httpx2.UnsupportedProtocol):
        raise Unreachable(
            f"{_title(source)} can't be reached ({urlsplit(url).hostname}).",
            source=source,
            url=url,
            attempt=attempt,
            hint="Check the network.",
        ) from None
    except httpx2.TransportError:
        raise Unreachable(
            f"{_title(source)} broke off the connection.", source=source, url=url, attempt=attempt
        ) from None
    except (zlib.error, httpx2.InvalidURL, httpx2.HTTPError, UnicodeError):
        raise BadAnswer(f"{_title(source)}'s answer can't be read.", source=source, url=url, attempt=attempt) from None


_TITLES = {"arxiv": "arXiv", "ads": "ADS", "sesame": "Sesame", "simbad": "SIMBAD"}


def _title(source: str) -> str:
    """A source's name as people write it."""
    return _TITLES.get(source, source)
