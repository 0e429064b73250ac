"""Leases: who alone may continue a session. They end by themselves, and at once when their process is dead."""

from __future__ import annotations

import os
import platform
import time

import apsw

LEASE_S = 30.0
"How long a lease lasts without being renewed."


def acquire(connection: apsw.Connection, name: str, owner: str) -> bool:
    """Takes a lease that is free, over, or ours."""
    row = connection.execute("select owner, host, pid, taken, expires from leases where name = ?", (name,)).fetchone()
    if row is not None and row[0] != owner and not _is_over(*row[1:]):
        return False
    moment = time.time()
    connection.execute(
        "insert or replace into leases values (?, ?, ?, ?, ?, ?)",
        (name, owner, platform.node(), os.getpid(), moment, moment + LEASE_S),
    )
    return True


def renew(connection: apsw.Connection, name: str, owner: str) -> bool:
    """Prolongs our lease; False if it is not ours any more."""
    moment = time.time()
    connection.execute(
        "update leases set taken = ?, expires = ? where name = ? and owner = ?", (moment, moment + LEASE_S, name, owner)
    )
    return connection.changes() > 0


def release(connection: apsw.Connection, name: str, owner: str) -> None:
    """Gives our lease back."""
    connection.execute("delete from leases where name = ? and owner = ?", (name, owner))


def _is_over(host: str, pid: int, taken: float, expires: float) -> bool:
    moment = time.time()
    if not taken - 5.0 <= moment < expires:  # before `taken`: the clock was set back
        return True
    return host == platform.node() and not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # there is no harmless probe; the lease runs out by itself
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
