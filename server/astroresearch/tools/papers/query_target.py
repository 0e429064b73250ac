"""What a celestial object is and where."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from astroresearch.domain.plain import plain
from astroresearch.domain.target import Target
from astroresearch.engine.tool import Arguments, Kind, Tool, ToolContext, ToolOutput
from astroresearch.tools.ports import ToolServices


class QueryTargetArguments(Arguments):
    """An object's name."""

    name: str = Field(
        min_length=1, max_length=120, description="Name of a star, galaxy, cluster, … such as `NGC 1275`."
    )


class QueryTarget(Tool[QueryTargetArguments, ToolServices]):
    """Position, type, aliases and measurements of one object."""

    name = "query_target"
    description = "Resolves an object's name by SIMBAD, NED and VizieR: coordinates (ICRS, J2000), type, aliases, redshift, magnitudes."
    kind: ClassVar[Kind] = "fetch"
    arguments = QueryTargetArguments
    reads_untrusted = True
    default_decision = "allow"

    def title(self, args: QueryTargetArguments) -> str:
        """Names the object."""
        return f"Look up {args.name}"

    def is_concurrency_safe(self, args: QueryTargetArguments) -> bool:
        """Look-ups never disturb one another."""
        return True

    def rule_value(self, args: QueryTargetArguments) -> str:
        """The name."""
        return args.name

    async def execute(self, args: QueryTargetArguments, context: ToolContext[ToolServices]) -> ToolOutput:
        """Resolves it."""
        target = await context.services.objects.resolve(args.name)
        return ToolOutput(
            record(target),
            metadata={"target": plain(target)},
            taint_source=f"{target.resolver}'s answer on {target.query}",
        )


def record(target: Target) -> str:
    """An object in a few lines; what is not known is left out."""
    moving = target.proper_motion_mas_yr
    facts = [
        f"{target.name} (asked as {target.query}; {target.resolver}{', from the cache' if target.cached else ''})",
        f"RA {target.ra_deg:.6f}°, Dec {target.dec_deg:+.6f}° (ICRS, J2000)",
        target.object_type and f"Type: {target.object_type}",
        target.morphology and f"Morphology: {target.morphology}",
        target.spectral_type and f"Spectral type: {target.spectral_type}",
        target.redshift is not None and f"Redshift: {target.redshift:g}",
        target.velocity_km_s is not None and f"Radial velocity: {target.velocity_km_s:g} km/s",
        target.parallax_mas is not None and f"Parallax: {target.parallax_mas:g} mas",
        moving is not None and f"Proper motion: {moving[0]:g}, {moving[1]:g} mas/yr",
        bool(target.magnitudes)
        and "Magnitudes: " + ", ".join(f"{band} {value:g}" for band, value in target.magnitudes),
        bool(target.aliases) and "Aliases: " + ", ".join(target.aliases[:15]),
        target.references is not None and f"References: {target.references}",
    ]
    return "\n".join(str(fact) for fact in facts if fact)
