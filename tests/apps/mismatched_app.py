"""Tasks of each kind that return another type than they declare, also where processes find them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from headrace import App, Task


async def count() -> int:
    return "three"  # type: ignore[return-value]  # the point


def count_in_thread() -> int:
    return "three"  # type: ignore[return-value]  # the point


def count_in_process() -> int:
    return "three"  # type: ignore[return-value]  # the point


def declare(app: App[None]) -> dict[str, Task[[], Any]]:
    return {
        "count": app.task(count),
        "count_in_thread": app.task(validate=True)(count_in_thread),
        "count_in_process": app.task(executor="process")(count_in_process),
    }


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[App[None]]:
    async with App(url, tenant=f"test-{secrets.token_hex(6)}", validate=True) as app:
        yield app
