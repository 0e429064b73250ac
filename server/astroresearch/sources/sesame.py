"""Sesame's answers, plain and XML, as objects. Every answer comes with HTTP 200; what was found or failed is in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from astroresearch.domain.target import Target
from astroresearch.errors import BadAnswer
from astroresearch.sources.xml import XmlRefused, parse_xml

_RESOLVERS = {"S": "Simbad", "N": "NED", "V": "VizieR"}


@dataclass(frozen=True, slots=True)
class SesameAnswer:
    """The object, or None; and the resolvers that could not be asked."""

    target: Target | None
    failed: tuple[str, ...] = ()


def parse(text: str, query: str) -> SesameAnswer:
    """Either form.

    Raises:
        BadAnswer: It is neither.
    """
    head = text.lstrip()
    if head.startswith("#"):
        return _plain(text, query)
    if "<Sesame" in head[:2_000] or "<Target" in head[:2_000]:
        return _xml(head, query)
    raise BadAnswer("Sesame answered with something that is not Sesame's.", source="sesame")


def _plain(text: str, query: str) -> SesameAnswer:
    target: Target | None = None
    failed: list[str] = []
    lines: list[str] = []
    resolver = ""
    for line in [*text.splitlines(), "#="]:
        if line.startswith("#="):
            target = target or _of_lines(lines, resolver, query)
            resolver, lines = _RESOLVERS.get(line[2:3], ""), []
        elif line.startswith("#!") and "Could not" in line:
            failed.append(_RESOLVERS.get(line[2:3], "a service"))
        else:
            lines.append(line)
    return SesameAnswer(target, tuple(failed))


def _of_lines(lines: list[str], resolver: str, query: str) -> Target | None:
    values: dict[str, str] = {}
    aliases: list[str] = []
    for line in lines:
        tag, _, value = line.partition(" ")
        if tag == "%I":
            aliases.append(_name(value))
        elif tag.startswith(("%", "#B")):
            values.setdefault(tag.lstrip("%#"), value.strip())
    place = values.get("J", "").split()
    ra, dec = (_float(part) for part in [*place, "", ""][:2])
    if ra is None or dec is None:
        return None
    target = Target(
        query=query,
        name=_name(values.get("I.0", "")) or query,
        ra_deg=ra,
        dec_deg=dec,
        resolver=resolver or "Sesame",
        object_type=values.get("C.0", values.get("C", "")).strip(),
        aliases=tuple(dict.fromkeys(filter(None, aliases))),
        parallax_mas=_float(values.get("X", "")),
        proper_motion_mas_yr=_pair(values.get("P", "")),
        morphology=_word(values.get("T", "")),
        spectral_type=_word(values.get("S", "")),
        magnitudes=(("mag", mag),) if (mag := _float(values.get("MAG", ""))) is not None else (),
        references=_int(values.get("B", "")),
    )
    kind, _, speed = values.get("V", "").partition(" ")
    return _moving(target, kind, _float(speed))


def _xml(text: str, query: str) -> SesameAnswer:
    try:
        root = parse_xml(text.encode())
    except XmlRefused as error:
        raise BadAnswer(f"Sesame's XML can't be read ({error}).", source="sesame") from None
    failed: list[str] = []
    target: Target | None = None
    for element in root.iter("Resolver"):
        name = _RESOLVERS.get(element.get("name", "")[:1], "Sesame")
        if any("Could not" in (info.text or "") for info in element.iter("INFO")):
            failed.append(name)
        target = target or _of_element(element, name, query)
    return SesameAnswer(target, tuple(failed))


def _of_element(element: Element, resolver: str, query: str) -> Target | None:
    def text(path: str) -> str:
        return " ".join((element.findtext(path) or "").split())

    ra, dec = _float(text("jradeg")), _float(text("jdedeg"))
    if ra is None or dec is None:
        return None
    pm = (_float(text("pm/pmRA")), _float(text("pm/pmDE")))
    target = Target(
        query=query,
        name=_name(text("oname")) or query,
        ra_deg=ra,
        dec_deg=dec,
        resolver=resolver,
        object_type=text("otype"),
        aliases=tuple(dict.fromkeys(_name(alias.text or "") for alias in element.iter("alias"))),
        parallax_mas=_float(text("plx/v")),
        proper_motion_mas_yr=(pm[0], pm[1]) if pm[0] is not None and pm[1] is not None else None,
        morphology=text("MType"),
        spectral_type=text("spType"),
        magnitudes=tuple(
            (mag.get("band", "mag"), value)
            for mag in element.iter("mag")
            if (value := _float(mag.findtext("v") or "")) is not None
        ),
        references=_int(text("nrefs")),
    )
    if (z := _float(text("z/v"))) is not None:
        target = _moving(target, "z", z)
    if (v := _float(text("Vel/v"))) is not None:
        target = _moving(target, "v", v)
    return target


def _moving(target: Target, kind: str, value: float | None) -> Target:
    if kind == "z":
        return replace(target, redshift=value)
    return replace(target, velocity_km_s=value) if kind == "v" else target


def _name(text: str) -> str:
    """`{NGC} 3642` → `NGC 3642`; `NGC 6079 =[G]` → `NGC 6079`."""
    text = re.sub(r"\s=\[.*\]\s*$", "", text.replace("{", "").replace("}", ""))
    return " ".join(text.split())


def _word(text: str) -> str:
    """The type itself, without the codes behind it: `A1V+A2Vm =0.0000D200… E ~` → `A1V+A2Vm`."""
    return text.partition(" =")[0].split()[0] if text.partition(" =")[0].split() else ""


def _pair(text: str) -> tuple[float, float] | None:
    parts = [_float(part) for part in text.split()[:2]]
    if len(parts) < 2 or parts[0] is None or parts[1] is None:
        return None
    return parts[0], parts[1]


def _float(text: str) -> float | None:
    parts = text.split()
    try:
        return float(parts[0]) if parts else None
    except ValueError:
        return None


def _int(text: str) -> int | None:
    parts = text.split()
    return int(parts[0]) if parts and parts[0].isdigit() else None
