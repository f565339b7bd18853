"""A module that takes 256 MiB while it is imported."""

from __future__ import annotations

from headrace import App

ROOM = len(bytearray(256 * 1024 * 1024))

app = App(tenant="process-tests")


@app.task(queue="cpu", executor="process")
def work() -> int:
    return ROOM
