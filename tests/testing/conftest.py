"""A kit around the shop's app, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.testing import Kit
from tests.apps import shop_app


@pytest.fixture(autouse=True)
def shop() -> None:
    shop_app.reset()


@pytest.fixture
async def kit() -> AsyncIterator[Kit]:
    async with Kit(shop_app.app) as kit:
        yield kit
