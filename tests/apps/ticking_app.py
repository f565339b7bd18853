"""An app that declares a schedule of five occurrences a second."""

from __future__ import annotations

from headrace import App

QUEUE = "ticks"

app = App(name="ticking")


@app.every(0.2, id="tick")
@app.task(name="tick", queue=QUEUE)
async def tick() -> int:
    """Do nothing."""
    return 1
