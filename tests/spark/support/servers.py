"""Spark's own servers, started from the installed pyspark: that of Connect, and a cluster."""

from __future__ import annotations

import re
import sys
from pathlib import Path

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
