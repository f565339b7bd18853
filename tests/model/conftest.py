"""A driver on an empty storage of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.model.driver import Driver
from tests.model.subjects import ModelSubject, RedisSubject, SqliteSubject
from tests.support.redis_server import RedisServer

KINDS = ("redis", "memory", "file")


@pytest.fixture(params=KINDS)
def make_subject(request: pytest.FixtureRequest) -> Callable[[], ModelSubject]:
    """Return what opens an empty storage of the kind that the test is run with."""
    kind = request.param
    if kind != "redis":
        return lambda: SqliteSubject(kind)
    server: RedisServer = request.getfixturevalue("redis_server")
    return lambda: RedisSubject(server.url)


@pytest.fixture
def driver(make_subject: Callable[[], ModelSubject]) -> Iterator[Driver]:
    """Return a driver, which compares all that there is after every call."""
    driver = Driver(make_subject, Counter())
    yield driver
    driver.close()
