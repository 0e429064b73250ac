"""`python -m tests.benchmarks [NAME…]`: one line a figure: name, ours, floor or peer in the same run, ratio, goal, ok or short."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from collections.abc import Iterable
from typing import Any

import tests.benchmarks as package

HEADER = f"{'figure':<58} {'ours':>12} {'reference':>12} {'ratio':>7}  {'goal':<26} verdict"


def _line(row: dict[str, Any]) -> str:
    unit = row.get("unit", "")
    reference = "–" if row.get("reference") is None else f"{row['reference']:.4g} {unit}"
    ratio = "–" if row.get("ratio") is None else f"{row['ratio']:.2f}"
    ours = f"{row['ours']:.4g} {unit}"
    return (
        f"{row['name']:<58} {ours:>12} {reference:>12} {ratio:>7}  {row['goal']:<26} {'ok' if row['ok'] else 'SHORT'}"
    )


def main(wanted: Iterable[str]) -> int:
    """Runs the named benchmarks, or all."""
    wanted = list(wanted)
    print(HEADER)
    short = 0
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        if info.name.startswith("_") or (wanted and info.name not in wanted):
            continue
        module = importlib.import_module(f"tests.benchmarks.{info.name}")
        if not hasattr(module, "measure"):
            continue
        started = time.perf_counter()
        for row in module.measure():
            short += not row["ok"]
            print(_line(row), flush=True)
        print(f"  ({info.name}: {time.perf_counter() - started:.0f} s)", file=sys.stderr, flush=True)
    print(f"{short} short." if short else "All goals are met.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
