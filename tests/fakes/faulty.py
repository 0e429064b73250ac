"""A web server on 127.0.0.1 that misbehaves on purpose: each path is one fault. It counts what it was asked and with which headers."""

from __future__ import annotations

import asyncio
import email.utils
import functools
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Self

Reply = Callable[[asyncio.StreamWriter], None]


def http(status: int, body: bytes = b"", *headers: tuple[str, str], length: bool = True) -> bytes:
    """One answer as bytes."""
    lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in headers)]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@functools.cache
def gzip_bomb(megabytes: int) -> bytes:
    """That many megabytes of zeros, packed."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(megabytes)) + packer.flush()


def gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(body) + packer.flush()


def http_date(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


def fixed() -> dict[str, bytes]:
    """The faults that are one answer."""
    html = b"<html><body>Sign in</body></html>"
    pdf = ("Content-Type", "application/pdf")
    return {
        "/ok": http(200, b"ok"),
        "/latin": http(200, "Könyves".encode("latin-1"), ("Content-Type", "text/plain; charset=latin-1")),
        "/wrong_charset": http(200, "Könyves".encode(), ("Content-Type", "text/plain; charset=klingon")),
        "/gzip": http(200, gzipped(b"packed"), ("Content-Encoding", "gzip")),
        "/gzip_cut": http(200, gzipped(b"packed" * 99)[:-9], ("Content-Encoding", "gzip")),
        "/gzip_lie": http(200, b"not packed", ("Content-Encoding", "gzip")),
        "/brotli": http(200, b"xx", ("Content-Encoding", "br")),
        "/gzip_bomb": http(200, gzip_bomb(256), ("Content-Encoding", "gzip")),
        "/claims_2gb": http(200, b"%PDF-", ("Content-Length", str(2 << 30)), pdf, length=False),
        "/429_date": http(429, b"", ("Retry-After", http_date(3600))),
        "/429_absent": http(429, b'{"error": "Too many requests"}', ("X-RateLimit-Remaining", "4864")),
        "/429_day": http(429, b"", ("Retry-After", "86400")),
        "/500": http(500, b"boom"),
        "/503": http(503, html),
        "/401": http(401, b'{"error": "Unauthorized"}'),
        "/404": http(404, b'{"error": "Not found"}'),
        "/loop": http(302, b"", ("Location", "/loop2")),
        "/loop2": http(302, b"", ("Location", "/loop")),
        "/to_link_local": http(302, b"", ("Location", "http://169.254.169.254/latest/meta-data/")),
        "/to_private": http(302, b"", ("Location", "http://10.0.0.1/")),
        "/to_file": http(302, b"", ("Location", "file:///etc/passwd")),
        "/to_other_loopback": http(302, b"", ("Location", "http://127.0.0.1:9/")),
        "/to_loopback_name": http(302, b"", ("Location", "http://localhost:9/")),
        "/to_ok": http(307, b"", ("Location", "/ok")),
        "/html_as_pdf": http(200, html, pdf),
        "/empty": http(200, b"", pdf),
        "/bad_json": http(200, b'{"response": oops}', ("Content-Type", "application/json")),
        "/html_as_json": http(200, html, ("Content-Type", "application/json")),
        "/bad_xml": http(200, b"<feed><entry></feed>", ("Content-Type", "application/atom+xml")),
        "/entities": http(
            200, b'<!DOCTYPE f [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><feed>&b;</feed>', ("Content-Type", "text/xml")
        ),
        "/not_http": b"SSH-2.0-OpenSSH_9.2\r\n",
    }


class Faulty:
    """`async with Faulty() as f:`; `f.url(path)`; `f.routes[path] = bytes` adds an answer; `f.asked` and `f.headers` count."""

    def __init__(self) -> None:
        self.routes: dict[str, bytes] = fixed()
        self.asked: Counter[str] = Counter()
        self.targets: list[str] = []
        self.headers: dict[str, dict[str, str]] = {}
        self.close_after: set[str] = {"/not_http", "/claims_2gb"}
        self.open = 0
        self.most_open = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pair(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    def url(self, path: str) -> str:
        return self.base + path

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits until a request, or the end of one, made this true."""
        async with self._changed:
            await self._changed.wait_for(true)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            writer.close()
            await self._tell()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = head[0].split(" ")[1]
        path = target.partition("?")[0]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        if length := int(headers.get("content-length", "0")):
            await reader.readexactly(length)
        self.asked[path] += 1
        self.targets.append(target)
        self.headers[path] = headers
        await self._tell()
        slow = getattr(self, "_" + path.strip("/").replace("/", "_"), None)
        if slow is not None and path not in self.routes:
            await slow(writer)
            return False
        writer.write(self.routes.get(path, http(404)))
        await writer.drain()
        return path not in self.close_after

    async def _hang(self, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def _hang_body(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"", ("Content-Length", "100"), length=False))
        await asyncio.sleep(3600)

    async def _drip(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"", ("Content-Length", "100000"), length=False))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def _short(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"%PDF-1.4 short", ("Content-Length", "100000"), length=False))

    async def _cut(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"8\r\n%PDF-1.4\r\nffff\r\nabc", ("Transfer-Encoding", "chunked"), length=False))

    async def _reset(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"x" * 10, ("Content-Length", "1000"), length=False))
        await writer.drain()
        writer.transport.abort()

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def _endless(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, b"", ("Connection", "close"), length=False))
        while True:
            writer.write(b"\0" * (1 << 18))
            await writer.drain()

    async def _header_flood(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(200_000):
            writer.write(b"X-%d: y\r\n" % number)
            if number % 1000 == 0:
                await writer.drain()

    async def _429_once(self, writer: asyncio.StreamWriter) -> None:
        first = self.asked["/429_once"] == 1
        writer.write(http(429, b"", ("Retry-After", "0")) if first else http(200, b"ok"))
        await writer.drain()

    async def _500_once(self, writer: asyncio.StreamWriter) -> None:
        writer.write(http(500) if self.asked["/500_once"] == 1 else http(200, b"ok"))
        await writer.drain()
