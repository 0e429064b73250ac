"""`astroresearch serve`: the language server on standard input and output."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astroresearch.lsp.server import Server
    from astroresearch.lsp.services import Services, Startup


def serve() -> None:
    """Runs until the editor says `exit` or closes the stream; never returns."""
    from astroresearch.lsp.stdio import claim_stdio

    incoming, out = claim_stdio()
    # Ctrl-C in a terminal reaches the whole process group; whoever started the server decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    import anyio

    from astroresearch.lsp.server import Server

    configure_log()
    code = anyio.run(Server(build).run, incoming, out)
    sys.stderr.flush()
    os._exit(code)  # the reader thread may still sit in a read of standard input


async def build(server: Server, startup: Startup) -> Services:
    """Everything behind the protocol; its imports take a while and happen in a thread."""
    import anyio.to_thread

    app = await anyio.to_thread.run_sync(importlib.import_module, "astroresearch.app")
    services: Services = await app.assemble(server, startup)
    return services


def configure_log() -> None:
    """Logs to standard error: standard output belongs to the editor. Secrets are blanked."""
    from astroresearch.config import folders, load

    settings = load(where=folders())
    logging.basicConfig(
        level=settings.text("log.level"), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True
    )
    redactor.secrets.update(settings.secrets())
    for handler in logging.getLogger().handlers:
        handler.addFilter(redactor)
    for name in ("httpx2", "httpcore2", "openai", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("stamina").setLevel(
        logging.ERROR
    )  # that a try failed is no news: the last failure is told in words
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # its complaints are answered by lsp/transport.py


class Redactor(logging.Filter):
    """Blanks known secrets in every line of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record's message where it holds a secret."""
        text = record.getMessage()
        if any(secret in text for secret in self.secrets):
            for secret in self.secrets:
                text = text.replace(secret, "…")
            record.msg, record.args = text, ()
        return True


redactor = Redactor()
