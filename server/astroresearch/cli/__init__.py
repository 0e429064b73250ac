"""`astroresearch serve | demo | ask | add | search | …`: the command line. docs/cli.md is its reference."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. `serve` takes the shortest way, since an editor waits for it."""
    if sys.argv[1:2] == ["serve"] and not {"-h", "--help"} & set(sys.argv):
        from astroresearch.cli.serve import serve

        serve()
    else:
        from astroresearch.cli.commands import group

        group(prog_name="astroresearch")
