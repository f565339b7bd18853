"""One session of Spark for the tests of a process, on each kind of storage that processes share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from headrace import SyncApp
from tests.spark.support.servers import connect_server
from tests.spark.support.sessions import COMPILED, FAST, QUICK, session


class ByFileAndServer(LoadFileScheduling):
    """Gives a file to one process, and all that needs a server of Spark Connect to one, too.

    A second server costs as much as many tests. What needs one says "connect" in its name.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "connect" if "connect" in nodeid else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndServer:
    """Share the tests out so."""
    return ByFileAndServer(config, log)


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """Have all processes of Spark start fast."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK.items():
            patch.setenv(name, value)
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Let pyspark 4.1 leave sockets open, as it does whenever rows come to the driver."""
    if pyspark.__version__.startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the session of this process: two cores, and three tries for each task of Spark."""
    spark = session("local[2,3]", scratch=tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Have Spark compile expressions while the test lasts, as it does for users."""
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield
    for name in COMPILED:
        spark.conf.set(name, FAST[name])


@pytest.fixture(scope="session")
def connect_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one server of Spark Connect for this process, and return its address."""
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        port = asyncio.run(server.says(r"Connect server started at: 127\.0\.0\.1:(\d+)"))
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def connect_session(connect_address: str) -> Iterator[ConnectSession]:
    """Return the session of this process on that server."""
    session = ConnectSession.builder.remote(connect_address).create()
    yield session
    session.stop()


@pytest.fixture
def connect(connect_session: ConnectSession, monkeypatch: pytest.MonkeyPatch) -> ConnectSession:
    """Return that session, and have pyspark make what is of Spark Connect while the test lasts."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return connect_session


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
