"""A celestial object as a name resolver knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One resolved object. Positions are ICRS, J2000, in degrees."""

    query: str
    "The name as asked."
    name: str
    "The resolver's main name."
    ra_deg: float
    dec_deg: float
    resolver: str
    "Who answered: Simbad, NED or VizieR."
    object_type: str = ""
    "The resolver's own code, such as `AGN` or `G`."
    aliases: tuple[str, ...] = ()
    redshift: float | None = None
    velocity_km_s: float | None = None
    parallax_mas: float | None = None
    proper_motion_mas_yr: tuple[float, float] | None = None
    morphology: str = ""
    spectral_type: str = ""
    magnitudes: tuple[tuple[str, float], ...] = ()
    references: int | None = None
    "How many papers the resolver counts."
    fetched: str = ""
    "When it was asked, ISO 8601 in UTC."
    cached: bool = False
