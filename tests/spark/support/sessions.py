"""Sessions of Spark that start fast and keep to the loopback interface."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""What a JVM needs that lives for a minute: to look at its classes less takes less time."""

QUICK = {"SPARK_SUBMIT_OPTS": QUICK_JVM, "PYTHONPATH": str(Path(__file__).parent / "preloaded")}
"""The environment in which all of Spark's processes start fast, also those of commands."""

FAST = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "America/New_York",  # nothing may depend on it
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a short test needs: to compile less takes less time."""

COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
"""In place of these: what users have."""


def session(master: str, *, scratch: Path, **conf: str) -> SparkSession:
    """Return a new classic session.

    Args:
        master: as Spark says it, such as ``local[2]``.
        scratch: a directory for what it writes on the way.
        **conf: further settings, dots as double underscores.
    """
    # Its Python processes are this interpreter and see what this one sees.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("headrace-tests")
    settings = {
        **FAST,
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **{name.replace("__", "."): value for name, value in conf.items()},
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
