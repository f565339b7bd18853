"""An app of a hundred tasks, each on a queue of its own."""

from __future__ import annotations

from headrace import App

app = App()


async def nothing() -> None:
    """Do nothing."""


for number in range(100):
    app.task(name=f"task-{number:03}", queue=f"queue-{number:03}")(nothing)
