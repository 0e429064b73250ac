"""PDFs for tests, drawn by pymupdf in a process of its own: the suite's process never imports it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_DRAW = """
import json, sys
for name in ("pymupdf.layout", "onnxruntime"): sys.modules[name] = None
import pymupdf
job = json.load(sys.stdin)
doc = pymupdf.open()
for items in job["pages"]:
    page = doc.new_page(width=595, height=842)
    for item in items:
        if "rect" in item:
            page.draw_rect(pymupdf.Rect(item["rect"]), color=item["fill"], fill=item["fill"])
        if "image" in item:
            pix = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 20, 20)); pix.clear_with(item["image"])
            page.insert_image(page.rect, pixmap=pix)
        if "text" in item:
            page.insert_text(item["at"], item["text"], fontsize=item.get("size", 11), color=item.get("color", (0, 0, 0)),
                             render_mode=item.get("mode", 0))
    if job.get("rotate"): page.set_rotation(job["rotate"])
doc.set_metadata(job.get("metadata", {}))
options = {}
if job.get("password"): options = dict(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=job["password"], owner_pw="owner")
doc.save(job["path"], **options)
"""


def draw(path: Path, pages: Sequence[Sequence[Mapping[str, Any]]], **options: Any) -> Path:
    job = json.dumps({"path": str(path), "pages": pages, **options})
    subprocess.run([sys.executable, "-c", _DRAW], input=job, text=True, check=True)
    return path


def lines(
    text: Sequence[str], *, x: float = 72, y: float = 100, step: float = 14, **style: Any
) -> list[dict[str, Any]]:
    return [{"text": line, "at": (x, y + i * step), **style} for i, line in enumerate(text)]
