"""The composition root: reads the settings and joins store, sources, models, tools, agents and server. Only it knows all."""

from __future__ import annotations
