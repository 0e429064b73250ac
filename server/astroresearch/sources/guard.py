"""The address guard: no connection but to public addresses, checked and pinned at the moment of connecting.

A host name says nothing of where it leads: `evil.example` may resolve to 127.0.0.1, and differently a second later. So names
are resolved here, every address is tested, and the connection goes to the tested address. This machine itself can be reached
only as an exact (host, port) that the user's own settings name.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from urllib.parse import urlsplit

import anyio

Resolver = Callable[[str, int], Awaitable[list[str]]]
"Host and port to numeric addresses. Raises `OSError` when there is none."

_LOCAL_NAMES = ("localhost", "localhost.")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The guard's own error; `sources.http` turns it into `errors.Blocked`."""


def loopback_pairs(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """The (host, port) of each base URL that names this machine; pass the user's settings, never a workspace's."""
    pairs = set()
    for url in urls:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        if host in _LOCAL_NAMES or _is_loopback_literal(host):
            pairs.add((host, parts.port or (443 if parts.scheme == "https" else 80)))
    return frozenset(pairs)


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to the public internet, looking through IPv4 inside IPv6."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not ip.is_unspecified


async def system_resolver(host: str, port: int) -> list[str]:
    """The system's own resolver, in a worker thread."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class AddressGuard:
    """Turns a host into addresses that may be connected to."""

    def __init__(self, loopback: Collection[tuple[str, int]] = (), resolver: Resolver = system_resolver) -> None:
        self.loopback = frozenset((host.lower(), port) for host, port in loopback)
        self._resolver = resolver

    async def addresses(self, host: str, port: int) -> list[str]:
        """All addresses of a host, each of them allowed.

        Raises:
            AddressRefused: One of them is not public, and (host, port) is not granted.
            OSError: The name does not resolve.
        """
        host = host.strip("[]").lower()
        found = await self._resolver(host, port)
        if not found:
            raise OSError(f"{host} has no address")
        if (host, port) in self.loopback:
            bad = [address for address in found if not ipaddress.ip_address(address).is_loopback]
        else:
            bad = [address for address in found if not is_public(address)]
        if bad:
            raise AddressRefused(f"{host} leads to {bad[0]}, which is not a public address.")
        return found


def _is_loopback_literal(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
