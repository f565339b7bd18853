"""What one process alone may do to a tenant's archive at a time, where that can be told.

On a file system of this host, or one that it shares with others, a lock of a file tells. It is the
JVM that holds it: that is what writes, and may for a moment outlive the process that has asked it
to. Elsewhere nothing is locked: object stores have no locks, and Spark Connect does not say where
its files are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from typing import Any

from pyspark.sql import SparkSession

from headrace.errors import ArchiveInUse
from headrace.spark.pipeline.files import Files
from headrace.spark.progress import is_remote
from headrace.spark.raised import SPARK_ERRORS

_LOCKS = "_locks"
"""The folder of the locks."""


class Work(StrEnum):
    """What is done to a tenant's archive; two that do the same would spoil it."""

    ARCHIVE = "archive"
    ROLLUP = "rollup"
    UPKEEP = "upkeep"


_DOES = {
    Work.ARCHIVE: "archives",
    Work.ROLLUP: "rolls up",
    Work.UPKEEP: "compacts, or deletes old days of,",
}


@contextmanager
def held(
    spark: SparkSession, root: str | os.PathLike[str], *works: Work, tenants: Sequence[str]
) -> Iterator[None]:
    """Let nobody else do some work while a block runs; a process that dies lets go of it.

    Args:
        spark: a session.
        root: where the archive is.
        *works: what is done in the block.
        tenants: to whose part of the archive.

    Raises:
        ArchiveInUse: somebody does it already, maybe in this process.
    """
    if is_remote(spark):
        yield
        return
    files = Files(spark, root)
    with ExitStack() as locks:
        for tenant in tenants:
            for work in works:
                file = files.on_this_host(f"{_LOCKS}/tenant={tenant}/{work}")
                if file is not None and not locks.enter_context(_locked(spark, file)):
                    raise ArchiveInUse(
                        f"the archive in {os.fspath(root)} is in use: another call or process "
                        f"{_DOES[work]} tenant {tenant!r} there, and only one may at a time: wait "
                        "until it has ended, or stop it"
                    )
        yield


@contextmanager
def _locked(spark: SparkSession, file: Any) -> Iterator[bool]:
    """Lock a file of Java's while a block runs; yield whether that went well."""
    java: Any = spark._jvm.java  # noqa: SLF001 (there is no other way to it)
    # A process that closes a file loses the lock it has there, so it must not open one twice.
    known, name = java.lang.System.getProperties(), f"headrace.lock:{file.getCanonicalPath()}"
    if known.putIfAbsent(name, "held") is not None:
        yield False
        return
    try:
        file.getParentFile().mkdirs()
        opened = java.io.RandomAccessFile(file, "rw")
        try:
            yield opened.getChannel().tryLock() is not None
        finally:
            with suppress(*SPARK_ERRORS, OSError):  # the JVM may have died
                opened.close()
    finally:
        with suppress(*SPARK_ERRORS, OSError):
            known.remove(name)
