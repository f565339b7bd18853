"""One session of Spark for the tests of a process, on each kind of storage that processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace import SyncApp
from tests.spark.support.sessions import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the session of this process: two cores, and three tries for each task of Spark."""
    spark = session("local[2,3]", scratch=tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()


@pytest.fixture(params=["redis", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty storage."""
    if request.param == "file":
        return f"file://{tmp_path}/data"
    found: str = request.getfixturevalue("redis_url")
    return found


@pytest.fixture
def app(url: str) -> Iterator[SyncApp[None]]:
    """Return an app on that storage; closed at the end."""
    with SyncApp(url) as app:
        yield app
