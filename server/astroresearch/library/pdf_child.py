"""The child process that opens PDFs: `python -m astroresearch.library.pdf_child`. Nothing else imports pymupdf.

It reads one request a frame (JSON: path, max_pages, cpu_s) and answers with one frame a page and a last frame. A frame is a
JSON object, its length before it; boxes of words travel behind the JSON as bytes. It limits itself before the first document and
trusts nothing it reads; its parent trusts nothing it says.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, BinaryIO

from astroresearch.library.pdf_extract import classify, extract

try:
    import resource
except ImportError:  # Windows has no such limits; the parent's time-out remains
    resource = None  # type: ignore[assignment]

HEAVY = ("pymupdf.layout", "onnxruntime", "pymupdf4llm", "networkx", "numpy", "yaml", "tabulate", "PIL", "pandas")
"What pymupdf imports for its layout models and plain text does not need: 0.65 s and 90 MB of the start."


def write_frame(out: BinaryIO, head: dict[str, Any], body: bytes = b"") -> None:
    """Length, length of the JSON, JSON, body."""
    text = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")
    out.write((4 + len(text) + len(body)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + body)
    out.flush()


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """The next request, or None at the end."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    data: dict[str, Any] = json.loads(stream.read(int.from_bytes(head, "big")))
    return data


def isolate(memory_mb: int) -> None:
    """Limits on memory, files and processes; no network where the system allows it; the end of the parent ends us."""
    if sys.platform == "linux":
        _linux()
    if resource is None:
        return
    _limit(resource.RLIMIT_AS, memory_mb << 20)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, 64)


def _limit(what: int, value: int) -> None:
    try:
        resource.setrlimit(what, (value, value))
    except (ValueError, OSError):
        return


def _linux() -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    new_net, new_user = 0x40000000, 0x10000000
    if libc.unshare(new_net) != 0:
        libc.unshare(new_user | new_net)


def allow_cpu(seconds: int) -> None:
    """From now on, so many seconds of CPU; then the kernel ends this process."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + seconds + 1, hard))


def serve(mupdf: Any, stream: BinaryIO, out: BinaryIO) -> None:
    """Answers requests until the end of the input."""
    while (request := read_frame(stream)) is not None:
        allow_cpu(int(request.get("cpu_s", 30)))
        try:
            last = extract(mupdf, request, lambda head, body: write_frame(out, head, body))
        except Exception as error:  # noqa: BLE001 - whatever MuPDF raises becomes a reason for the parent
            refused = classify(error)
            last = {"end": True, "reason": refused.reason, "detail": refused.detail}
        last["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0
        last["cpu"] = time.process_time()
        write_frame(out, last)


def main() -> None:
    """Moves the pipe away from fd 1, loads MuPDF without its layout models, isolates itself and serves."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ["PYMUPDF_MESSAGE"] = "fd:2"
    for name in HEAVY:
        sys.modules[name] = None  # type: ignore[assignment]
    import pymupdf

    for name in HEAVY:
        del sys.modules[name]
    pymupdf.TOOLS.mupdf_display_errors(False)  # type: ignore[no-untyped-call]
    pymupdf.TOOLS.mupdf_display_warnings(False)  # type: ignore[no-untyped-call]
    isolate(int(os.environ.get("ASTRORESEARCH_PDF_MEMORY_MB", "1536")))
    write_frame(out, {"ready": True, "cpu": time.process_time()})
    serve(pymupdf, sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
