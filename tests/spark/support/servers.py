"""Spark's own servers, started from the installed pyspark: that of Connect, and a cluster."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import psutil
import pyspark

from tests.spark.support.sessions import FAST
from tests.spark.support.trees import ProcessTree
from tests.support.until import until

HOME = Path(pyspark.__file__).parent
SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
START_S = 60.0


class SparkServer(ProcessTree):
    """A JVM that says in its log where it is."""

    async def says(self, pattern: str, within: float = START_S) -> str:
        """Wait until the log has a line with a pattern, and return its first group."""
        found = await until(
            lambda: re.search(pattern, self.stderr) or self.returncode is not None,
            within=within,
            what=f"{pattern!r} is in the log of {self.argv}",
        )
        if not isinstance(found, re.Match):
            raise TypeError(f"{self.argv} has ended with {self.returncode}: {self.stderr[-2000:]}")
        return found[1]


def environment(host: str) -> dict[str, str]:
    """Return what a program of Spark is to find in its environment."""
    return {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "PYSPARK_PYTHON": sys.executable,
    }


def connect_server(directory: Path) -> SparkServer:
    """Start a server of Spark Connect on a free port of the loopback interface."""
    conf = {
        **FAST,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    # fmt: off
    return SparkServer(
        str(HOME / "bin" / "spark-submit"), "--master", "local[2,3]", *settings,
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
        directory=directory, name="connect", env=environment("127.0.0.1"),
    )
    # fmt: on


class Cluster:
    """A standalone cluster of a master and one worker on each of two hosts, all of this machine.

    Args:
        directory: where the servers write.
    """

    HOSTS = ("127.0.0.2", "127.0.0.3")

    def __init__(self, directory: Path) -> None:
        self.master: str = ""
        self._directory = directory
        self._servers = ExitStack()
        self._workers: list[SparkServer] = []

    @property
    def python_workers(self) -> list[psutil.Process]:
        """The processes of both hosts in which Spark runs Python at this moment."""
        return [process for worker in self._workers for process in worker.python_workers]

    def __enter__(self) -> Self:
        with ExitStack() as servers:
            master = servers.enter_context(self._start("master.Master", "127.0.0.1"))
            self.master = asyncio.run(master.says(r"Starting Spark master at (spark://\S+)"))
            for host in self.HOSTS:
                worker = self._start("worker.Worker", host, *self._limits, self.master)
                self._workers.append(servers.enter_context(worker))
            for worker in self._workers:
                asyncio.run(worker.says("(Successfully registered) with master"))
            self._servers = servers.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    @property
    def _limits(self) -> tuple[str, ...]:
        return ("--cores", "2", "--memory", "512m", "--work-dir", str(self._directory / "work"))

    def _start(self, kind: str, host: str, *words: str) -> SparkServer:
        # fmt: off
        return SparkServer(
            str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}",
            "--host", host, "--port", "0", "--webui-port", "0", *words,
            directory=self._directory, name=f"{kind}-{host}", env=environment(host),
        )
        # fmt: on
