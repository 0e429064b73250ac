"""What the demo's stand-in knows: a few real papers and objects with their true metadata. Abstracts are left out, not invented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ARAA = "Annual Review of Astronomy and Astrophysics"
_MNRAS = "Monthly Notices of the Royal Astronomical Society"


def _record(
    bibcode: str, title: str, authors: tuple[str, ...], journal: str, pubdate: str, volume: str, pages: str, doi: str, arxiv: str = "",
    *, issue: str = "", words: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """As ADS's search API returns it. `words` are found by a search and returned as nothing."""
    record: dict[str, Any] = {
        "bibcode": bibcode,
        "identifier": [bibcode, doi, *([f"arXiv:{arxiv}"] if arxiv else [])],
        "title": [title],
        "author": list(authors),
        "year": bibcode[:4],
        "pubdate": pubdate,
        "date": f"{pubdate[:5]}{pubdate[5:7] if pubdate[5:7] != '00' else '01'}-01T00:00:00Z",
        "pub": journal,
        "bibstem": [bibcode[4:9].rstrip(".")],
        "volume": volume,
        "page": [pages.partition("-")[0]],
        "page_range": pages,
        "doctype": "article",
        "doi": [doi],
        "_words": " ".join(words),
    }
    if issue:
        record["issue"] = issue
    if arxiv:
        record["arxiv_class"] = ["astro-ph"]
    return record


PAPERS: tuple[Mapping[str, Any], ...] = (
    _record(
        "1993MNRAS.264L..25B",
        "A ROSAT HRI study of the interaction of the X-ray-emitting gas and radio lobes of NGC 1275",
        ("Boehringer, H.", "Voges, W.", "Fabian, A. C.", "Edge, A. C.", "Neumann, D. M."), _MNRAS, "1993-10-00", "264", "L25-L28",
        "10.1093/mnras/264.1.L25", words=("Perseus", "bubbles", "cavities"),
    ),
    _record(
        "1994ARA&A..32..277F", "Cooling Flows in Clusters of Galaxies", ("Fabian, A. C.",), _ARAA, "1994-00-00", "32", "277-318",
        "10.1146/annurev.aa.32.090194.001425", words=("X-ray", "review", "intracluster"),
    ),
    _record(
        "2001AJ....122.2281C", "On the Nature of the NGC 1275 System",
        ("Conselice, Christopher J.", "Gallagher, John S., III", "Wyse, Rosemary F. G."), "The Astronomical Journal", "2001-11-00",
        "122", "2281-2300", "10.1086/323534", "astro-ph/0108019", issue="5", words=("Perseus", "filaments", "galaxy"),
    ),
    _record(
        "2003MNRAS.344L..43F", "A deep Chandra observation of the Perseus cluster: shocks and ripples",
        ("Fabian, A. C.", "Sanders, J. S.", "Allen, S. W.", "Crawford, C. S.", "Iwasawa, K.", "Johnstone, R. M.", "Schmidt, R. W.",
         "Taylor, G. B."), _MNRAS, "2003-09-00", "344", "L43-L47", "10.1046/j.1365-8711.2003.06902.x", "astro-ph/0306036",
        words=("sound", "waves", "bubbles", "X-ray", "feedback"),
    ),
    _record(
        "2006PhR...427....1P", "X-ray spectroscopy of cooling clusters", ("Peterson, J. R.", "Fabian, A. C."), "Physics Reports",
        "2006-04-00", "427", "1-39", "10.1016/j.physrep.2005.12.007", "astro-ph/0512549", issue="1", words=("cooling", "flow", "flows"),
    ),
    _record(
        "2007ARA&A..45..117M", "Heating Hot Atmospheres with Active Galactic Nuclei", ("McNamara, B. R.", "Nulsen, P. E. J."), _ARAA,
        "2007-09-00", "45", "117-175", "10.1146/annurev.astro.45.051806.110625", "0709.2152",
        words=("AGN", "feedback", "clusters", "cavities", "review"),
    ),
    _record(
        "2007MNRAS.381.1381S",
        "A deeper X-ray study of the core of the Perseus galaxy cluster: the power of sound waves and the distribution of metals and "
        "cosmic rays",
        ("Sanders, J. S.", "Fabian, A. C."), _MNRAS, "2007-11-00", "381", "1381-1399", "10.1111/j.1365-2966.2007.12347.x", "0705.2712",
        words=("Chandra", "feedback"),
    ),
    _record(
        "2012ARA&A..50..455F", "Observational Evidence of Active Galactic Nuclei Feedback", ("Fabian, A. C.",), _ARAA, "2012-09-00",
        "50", "455-489", "10.1146/annurev-astro-081811-125521", "1204.4114", words=("AGN", "review"),
    ),
    _record(
        "2016Natur.535..117H", "The quiescent intracluster medium in the core of the Perseus cluster", ("Hitomi Collaboration",),
        "Nature", "2016-07-00", "535", "117-121", "10.1038/nature18627", "1607.04487", issue="7610",
        words=("turbulence", "velocity", "gas", "X-ray"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SkyObject:
    """An object as SIMBAD knows it; position ICRS J2000 in degrees."""

    name: str
    kind: str
    ra_deg: float
    dec_deg: float
    sexagesimal: str
    redshift: float
    aliases: tuple[str, ...]


OBJECTS: tuple[SkyObject, ...] = (
    SkyObject("NGC 1275", "AGN", 49.950667, 41.511694, "03:19:48.16 +41:30:42.1", 0.01756,
              ("3C 84", "NAME Perseus A", "UGC 2669", "PGC 12429")),
    SkyObject("ACO 426", "ClG", 49.9467, 41.5131, "03:19:47.2 +41:30:47", 0.0179, ("NAME Perseus Cluster", "Abell 426")),
    SkyObject("M 87", "AGN", 187.705930, 12.391123, "12:30:49.42 +12:23:28.0", 0.00428, ("NGC 4486", "3C 274", "NAME Virgo A", "UGC 7654")),
    SkyObject("M 31", "G", 10.684708, 41.268750, "00:42:44.33 +41:16:07.5", -0.001, ("NGC 224", "NAME Andromeda Galaxy", "UGC 454")),
)  # fmt: skip


def find_object(name: str) -> SkyObject | None:
    """By name or alias, whatever its spaces and case."""
    wanted = _squeezed(name)
    return next((one for one in OBJECTS if wanted in map(_squeezed, (one.name, *one.aliases))), None)


def _squeezed(name: str) -> str:
    return "".join(name.split()).casefold().removeprefix("name").replace("messier", "m")
