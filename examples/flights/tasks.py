"""What is done for each flight; ``headrace worker examples.flights.tasks:app`` runs it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace import App, FailPermanently

QUEUE = "flights"

app = App(tenant="flights")


@dataclass(frozen=True)
class Flight:
    """How a flight went; minutes and miles."""

    gained: float
    mph: float
    is_late: bool


@app.task(name="assess", queue=QUEUE, max_attempts=1)
async def assess(
    *,
    carrier: str,
    flight: int,
    distance: float,
    dep_delay: float | None,
    arr_delay: float | None,
    air_time: float | None,
) -> Flight:
    """Say how fast a flight was, and whether it made up for its delay."""
    if dep_delay is None:
        raise FailPermanently(f"{carrier} {flight} was cancelled")
    if arr_delay is None or not air_time:
        raise FailPermanently(f"{carrier} {flight} did not reach its destination")
    return Flight(
        gained=dep_delay - arr_delay,
        mph=round(60 * distance / air_time, 1),
        is_late=arr_delay > 15,
    )
