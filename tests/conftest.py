"""What all tests share: asyncio as the only back end, no socket beyond loopback, the shared data where it exists."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis  # noqa: F401 - imported early: its late import by the plugin can fail on CPython 3.11
import pytest
import pytest_socket

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    for name in list(os.environ):
        if name.startswith(("ASTRORESEARCH_", "OPENAI_", "ADS_")):
            del os.environ[name]


def pytest_runtest_setup(item: pytest.Item) -> None:
    pytest_socket.socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs beside the checkout; tests that need it are skipped where it is missing."""
    path = REPO.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the folder of real inputs (../shared/data) is not here")
    return path
