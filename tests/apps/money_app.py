"""Tasks on a type of the app's own, which JSON knows by the app's encoder and decoder."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from headrace import App, Task


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.cents == other.cents

    def __hash__(self) -> int:
        return hash(self.cents)


def to_cents(money: Money) -> int:
    return money.cents


async def double(money: Money) -> list[Money]:
    return [money, Money(2 * money.cents)]


def double_in_thread(money: Money) -> list[Money]:
    return [money, Money(2 * money.cents)]


def double_in_process(money: Money) -> list[Money]:
    return [money, Money(2 * money.cents)]


def declare(app: App[None]) -> list[Task[[Money], list[Money]]]:
    return [
        app.task(double),
        app.task(double_in_thread),
        app.task(executor="process")(double_in_process),
    ]


@asynccontextmanager
async def opened(url: str, *, encode: Callable[[Any], Any] = to_cents) -> AsyncIterator[App[None]]:
    async with App(
        url,
        tenant=f"test-{secrets.token_hex(6)}",
        encoders={Money: encode},
        decoders={Money: Money},
    ) as app:
        yield app
