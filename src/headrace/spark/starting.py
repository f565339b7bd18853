"""Starts Spark for a command: quiet, on the loopback interface, and with errors of one line."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from tempfile import TemporaryFile
from typing import IO

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError, InvalidOption
from headrace.plain import shown
from headrace.spark.raised import SPARK_ERRORS, raised_inside
from headrace.spark.requirements import check_java

LOCAL = "local[*]"
"""The master that is this machine, with all of its processors."""

_LOG_LEVEL = "spark.log.level"
_OURS = {
    "spark.app.name": "headrace",
    "spark.sql.session.timeZone": "UTC",  # of instants that are said without a zone
    "spark.ui.showConsoleProgress": "false",
}
_HERE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""What keeps Spark to this machine, where it would listen on all addresses."""

_LOGS_OF_ERRORS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""By which Spark prints an error in JSON, which it raises too."""

_IN_PASSING = re.compile(r"WARNING: |Using Spark's default |\d\d/\d\d/\d\d .* (WARN|INFO) ")


@contextmanager
def started(
    master: str = LOCAL, *, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield the session that is active, else start one and stop it at the end.

    What Spark itself would say is thrown away, unless ``conf`` has a ``spark.log.level``. An error
    of headrace that was raised in a process of Spark's is raised here again, and one of Spark's
    becomes a `HeadraceError` of one line. Starting takes seconds, and is done once a process.

    Args:
        master: as Spark says it: ``local[2]``, ``spark://host:7077``, ``yarn``; with Spark Connect
            ``sc://host``. If it is local, Spark listens on the loopback interface only.
        conf: settings of Spark, before those that are chosen here; of no effect where a session is
            active.

    Raises:
        MissingRequirement: Java is not there, or too old.
        InvalidOption: a setting is none of Spark's.
        HeadraceError: Spark did not start, or a query failed; the cause is chained.
    """
    said = _check(conf or {})
    try:
        spark = SparkSession.getActiveSession()
        if spark is not None:
            yield spark
            return
        start = _connected if master.startswith("sc://") else _classic
        with nullcontext() if _LOG_LEVEL in said else _quiet():
            spark = start(master, said)
            try:
                yield spark
            finally:
                with suppress(*SPARK_ERRORS, OSError):  # its process may have died
                    spark.stop()
    except SPARK_ERRORS as error:
        raise in_one_line(error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Throw away what is logged in this process: errors that are raised too, for the most part.

    py4j logs a call that Ctrl-C interrupts to the root logger, which prints it where it has no
    handler.
    """
    for name in _LOGS_OF_ERRORS:
        PySparkLogger.getLogger(name).disabled = True
    nowhere, root = logging.NullHandler(), logging.getLogger()
    root.addHandler(nowhere)
    try:
        yield
    finally:
        root.removeHandler(nowhere)


def in_one_line(error: Exception) -> HeadraceError:
    """Return what an error of Spark's says, or the error of ours that it came of."""
    inside = raised_inside(error)
    if inside is not None:
        return inside
    if type(error).__name__ == "Py4JNetworkError":
        return HeadraceError(
            "Spark's Java process has ended in the middle: it may need more memory, by the "
            "setting spark.driver.memory=4g; spark.log.level=WARN shows what it says"
        )
    return HeadraceError(f"Spark: {_gist(str(error))}")


def _gist(text: str) -> str:
    """Return the line of an error that says most."""
    _, _, traceback = text.rpartition("Traceback (most recent call last):\n")
    lines = [line for line in traceback.splitlines() if line.strip()]
    if traceback != text:
        lines = [line for line in lines if not line[0].isspace()]
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    return told[0].removeprefix(": ") if told else "it failed, and did not say why"


def _check(conf: Mapping[str, str]) -> dict[str, str]:
    for name in conf:
        if not name.startswith("spark."):
            raise InvalidOption(f"{shown(name)} is no setting of Spark: their names begin 'spark.'")
    return dict(conf)


def _connected(url: str, conf: dict[str, str]) -> SparkSession:
    """Return a session of Spark Connect."""
    builder = SparkSession.builder.remote(url)
    for name, value in {"spark.sql.session.timeZone": "UTC", **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _classic(master: str, conf: dict[str, str]) -> SparkSession:
    """Return a session whose driver is this process."""
    check_java()
    # pyspark-client, which can do all else, does not have these.
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    is_quiet = _LOG_LEVEL not in conf
    chosen = {**_OURS, **({_LOG_LEVEL: "OFF"} if is_quiet else {}), "spark.master": master}
    if master.startswith("local"):
        chosen.update(_HERE)
        # Else its Python processes were whatever python3 is.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf(loadDefaults=False)
    for name, value in {**chosen, **conf}.items():
        settings.set(name, value)
    with TemporaryFile() as told:
        try:
            # It would print a dozen lines before it heeds the level of its log.
            gateway = launch_gateway(settings, {"stderr": told if is_quiet else None})
        except PySparkException as error:
            raise HeadraceError(f"Spark did not start: {_complaint(told)}") from error
    return SparkSession(SparkContext(gateway=gateway, conf=settings))


def _complaint(told: IO[bytes]) -> str:
    """Return the first line that Java printed and that is no warning."""
    told.seek(0)
    lines = [line for line in told.read().decode(errors="replace").splitlines() if line.strip()]
    found = next((line for line in lines if not _IN_PASSING.match(line)), "it did not say why")
    return found.removeprefix('Exception in thread "main" ')
