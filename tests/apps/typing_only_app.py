"""A task whose annotation names what only type checkers import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace import App

if TYPE_CHECKING:
    from tests.apps.later_app import Order

app = App("memory://")


@app.task
async def ship(order: Order) -> None: ...
