"""`python -m astroresearch` is the same program as `astroresearch`."""

from astroresearch.cli import main

if __name__ == "__main__":
    main()
