"""Turns: fairness between keys.

The window of a key in a lane and tier is a gate with room for one job that is ready, however many
are active; who comes in joins the tail. So keys take turns, and no other key is looked at for it.
"""

from __future__ import annotations

from headrace.fairness import FAIR_LIMIT, is_window


def limit_in(limit: str, lane: str, tier: int) -> str:
    """Return what a limit that a job of a lane and tier asks for is called among its gates."""
    return f"{FAIR_LIMIT}:{lane}:{tier}" if limit == FAIR_LIMIT else limit


def are_among(names: str | None) -> bool:
    """Whether a job that meets these gates takes turns."""
    return names is not None and any(map(is_window, names.split("\n")))
