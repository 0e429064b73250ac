"""`astroresearch demo`: plays the main job with sample papers."""

from __future__ import annotations

from pathlib import Path

import click

from astroresearch.cli.output import Output, run


@click.command()
@click.option(
    "--dir",
    "folder",
    default="astroresearch-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the sample manuscript and the library are put; made anew each time.",
)
@click.option("--live", is_flag=True, help="Use the real ADS, arXiv, Sesame and SIMBAD instead of the stand-in.")
def demo(folder: Path, live: bool) -> None:  # fmt: skip
    """Play the main job: import papers, ask, check quotes, resolve an object, take a note, cite.

    Needs no account, no key and no network; with --live it asks the real services.
    """
    from astroresearch.demo.tour import tour

    run(Output(False), tour, folder.absolute(), live)
