"""Name resolution at the CDS: Sesame (SIMBAD, NED, VizieR) by our own client, then SIMBAD for what Sesame leaves out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio

from astroresearch.config import SESAME_URL
from astroresearch.domain.target import Target
from astroresearch.errors import BadAnswer, InvalidInput, NotFound, ServiceError, TimedOut, Unreachable
from astroresearch.sources import sesame
from astroresearch.sources.http import Http, Request

SESAME_MIRROR = "http://vizier.cfa.harvard.edu/viz-bin/nph-sesame"
SIMBAD_BUDGET_S = 8.0
MAX_NAME = 200
_COLUMNS = "main_id, otype, rvz_redshift, rvz_radvel, plx_value, pmra, pmdec, morph_type, sp_type, nbref"

log = logging.getLogger(__name__)


class Cds:
    """Client of Sesame and SIMBAD."""

    def __init__(self, http: Http, sesame_url: str, simbad_url: str) -> None:
        self._http = http
        self._bases = [sesame_url.rstrip("/")]
        if self._bases == [SESAME_URL]:
            self._bases.append(SESAME_MIRROR)
        self._simbad_url = simbad_url.rstrip("/")

    async def resolve(self, name: str, *, extras: bool = True) -> Target:
        """The object of that name. What SIMBAD adds is a gift: its failure never loses Sesame's answer.

        Raises:
            InvalidInput: No name, or one that can't be.
            NotFound: Nobody knows it; names the services that were asked.
            ServiceError: Sesame can't be asked.
        """
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput("An object's name has 1 to 200 printable characters.", field="name")
        answer = await self._sesame(name)
        if answer.target is None:
            asked = [one for one in ("SIMBAD", "NED", "VizieR") if one.lower() not in map(str.lower, answer.failed)]
            missing = f" {' and '.join(answer.failed)} could not be asked." if answer.failed else ""
            raise NotFound(
                f"{_and(asked) or 'Nobody'} (by Sesame): no object `{name}` is known.{missing}",
                hint="Check the spelling; catalogue names need their prefix, such as `NGC 1275`.",
            )
        target = replace(answer.target, fetched=datetime.now(UTC).isoformat(timespec="seconds"))
        if extras and target.resolver == "Simbad" and _incomplete(target):
            target = await self._with_simbad(target)
        return target

    async def _sesame(self, name: str) -> sesame.SesameAnswer:
        failure: ServiceError | None = None
        for base in self._bases:
            try:
                answer = await self._http.fetch(
                    Request(f"{base}/-oI/SNV?{quote(name, safe='')}", "sesame", max_bytes=1_000_000, attempts=2)
                )
                return sesame.parse(answer.text(), name)
            except (Unreachable, TimedOut, BadAnswer) as error:
                failure = failure or error
        assert failure is not None
        raise failure

    async def _with_simbad(self, target: Target) -> Target:
        query = f"SELECT {_COLUMNS} FROM basic JOIN ident ON oidref = oid WHERE id = '{target.name.replace(chr(39), chr(39) * 2)}'"
        with anyio.move_on_after(SIMBAD_BUDGET_S):
            row = await anyio.to_thread.run_sync(partial(_ask_simbad, self._simbad_url, query), abandon_on_cancel=True)
            return _filled(target, row) if row else target
        return target


def _ask_simbad(url: str, query: str) -> Mapping[str, Any] | None:
    """One row of SIMBAD's `basic`, or None. Blocking; imports astroquery, which takes most of a second."""
    import requests
    from astroquery.simbad import SimbadClass
    from pyvo.dal import DALServiceError, TAPService
    from pyvo.dal.exceptions import DALAccessError

    session = requests.Session()
    session.trust_env = False
    session.request = partial(session.request, timeout=SIMBAD_BUDGET_S)  # type: ignore[method-assign]

    class Simbad(SimbadClass):  # type: ignore[misc]
        """SIMBAD at another address; astroquery accepts only its two known servers."""

        tap = TAPService(url, session=session)
        hardlimit = 100_000
        "Else astroquery asks the service for it."

    try:
        table = Simbad().query_tap(query, maxrec=1)
    except (DALServiceError, DALAccessError, requests.RequestException, ValueError, OSError) as error:
        log.info("SIMBAD gave no more: %s", type(error).__name__)
        return None
    finally:
        Simbad.clear_cache()
    if not len(table):
        return None
    return {name: _value(table[name][0]) for name in table.colnames}


def _value(cell: Any) -> Any:
    """A cell of astropy's as plain Python; masked is None."""
    import numpy

    if cell is numpy.ma.masked:
        return None
    return cell.item() if hasattr(cell, "item") else cell


def _filled(target: Target, row: Mapping[str, Any]) -> Target:
    """What the object lacks, out of SIMBAD's row."""

    def number(name: str) -> float | None:
        value = row.get(name)
        return float(value) if isinstance(value, (int, float)) and value == value else None

    def text(name: str) -> str:
        return str(row.get(name) or "").strip()

    pm = (number("pmra"), number("pmdec"))
    count = number("nbref")
    return replace(
        target,
        object_type=target.object_type or text("otype"),
        redshift=_either(target.redshift, lambda: number("rvz_redshift")),
        velocity_km_s=_either(target.velocity_km_s, lambda: number("rvz_radvel")),
        parallax_mas=_either(target.parallax_mas, lambda: number("plx_value")),
        proper_motion_mas_yr=target.proper_motion_mas_yr
        or ((pm[0], pm[1]) if pm[0] is not None and pm[1] is not None else None),
        morphology=target.morphology or text("morph_type"),
        spectral_type=target.spectral_type or text("sp_type"),
        references=target.references if target.references is not None else int(count) if count is not None else None,
    )


def _either(value: float | None, other: Callable[[], float | None]) -> float | None:
    return value if value is not None else other()


def _incomplete(target: Target) -> bool:
    return target.redshift is None or target.references is None or not target.object_type


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
