"""The command line."""


def main() -> None:
    """Entry point."""
    raise SystemExit("astroresearch: not yet")
