"""The guard at the socket: an httpx2 transport whose every connection goes to an address that was checked just before.

Imported with the first request, since httpx2 takes a tenth of a second to import.
"""

from __future__ import annotations

from collections.abc import Iterable

import httpcore2
import httpx2

from astroresearch.sources.guard import AddressGuard

_SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only; TLS still verifies the name, which httpcore2 takes from the URL."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Tries the host's addresses in order."""
        try:
            addresses = await self._guard.addresses(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} could not be resolved") from error
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[_SocketOption] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Never: no service of ours is a file."""
        raise httpcore2.ConnectError("Unix sockets are not used")

    async def sleep(self, seconds: float) -> None:
        """As the inner back end sleeps."""
        await self._inner.sleep(seconds)


def guarded_client(guard: AddressGuard) -> httpx2.AsyncClient:
    """A client that follows no redirect, reads no proxy or .netrc from the environment, keeps no cookie worth having."""
    transport = httpx2.AsyncHTTPTransport(trust_env=False)
    # httpx2 has no parameter for the network back end; tests/unit/sources/test_http.py holds that this one is in use.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=httpx2.create_ssl_context(),
        max_connections=20,
        max_keepalive_connections=8,
        keepalive_expiry=15.0,
        network_backend=GuardedBackend(guard),
    )
    return httpx2.AsyncClient(
        transport=transport, timeout=httpx2.Timeout(None, connect=10.0), follow_redirects=False, trust_env=False
    )
