"""What happened to jobs, kept in Parquet files: each event and each dead letter once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
from pyspark.sql import SparkSession

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.job import DEFAULT_TENANT, check_name
from headrace.settings import check_count
from headrace.spark.pipeline.archiver import Archiver, ArchiveReport
from headrace.spark.pipeline.locks import Work, held

_MOST_ENTRIES = 10_000_000
_LEAST_EVERY_MS = 100


def archive(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    queues: Sequence[str],
    url: str = "",
    tenant: str = DEFAULT_TENANT,
    reader: str = "archive",
    events_cap: int | None = None,
    fail_on_data_loss: bool = True,
) -> ArchiveReport:
    """Add what has happened since the last run to an archive, each event and dead letter once.

    It may be killed at any point: the next call goes on with what was cut off, and adds what is not
    there yet. Nothing that it has written is ever written over. Who reads the files sees no event
    twice, and all of a run once that has ended.

    The first run of a queue begins with the first event that is kept. From then on the queue keeps
    what is not archived, up to its ``events_cap``. A root and tenant has one archiver at a time;
    another root takes another ``reader``. On a file system of this host, or one that hosts share
    with its locks, a second archiver is refused; on object stores, on HDFS and through Spark
    Connect see yourself that there is none.

    Args:
        spark: a session, classic or of Spark Connect.
        root: where the archive is, or is to be: the path or URI of a folder that Spark knows.
        queues: which, at least one.
        url: where they are; "": as the environment of each process says, see `headrace.App`.
        tenant: whose queues.
        reader: under which name the queues keep what is not archived, see `Queue.readers`.
        events_cap: raise each queue's ``events_cap``, the entries of events that it keeps for
            readers, to this; 1 to 10,000,000. What that may take of the storage's memory is logged.
            None: leave it.
        fail_on_data_loss: whether it fails where events were trimmed before they were archived, or
            numbers began anew; else it goes on with what there is, and reports how many are lost.

    Raises:
        InvalidOption: an argument is not valid, or what is kept of the archive can't be read.
        ArchiveInUse: there is another archiver of this root and tenant; nothing was changed.
        EventsLost: see ``fail_on_data_loss``; nothing was acknowledged.
        TooManyReaders: a queue has as many as it may.
        StorageError: the storage can't be reached, or can't be used.
    """
    names = _checked_queues(queues)
    with archiving(
        spark,
        root,
        url=url,
        tenant=tenant,
        reader=reader,
        events_cap=events_cap,
        fail_on_data_loss=fail_on_data_loss,
    ) as add:
        return add(names)


def follow(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    queues: Sequence[str],
    every: Duration = 10.0,
    url: str = "",
    tenant: str = DEFAULT_TENANT,
    reader: str = "archive",
    events_cap: int | None = None,
    fail_on_data_loss: bool = True,
) -> Generator[ArchiveReport, None, None]:
    """Archive again and again, as the one archiver until this is closed, and yield each report.

    Args:
        spark: as for `archive`, like all that is not named here.
        root: as for `archive`.
        queues: as for `archive`.
        every: seconds or a `timedelta` between the starts of two runs, at least 0.1; one that takes
            longer is followed by the next at once.
        url: as for `archive`.
        tenant: as for `archive`.
        reader: as for `archive`.
        events_cap: as for `archive`.
        fail_on_data_loss: as for `archive`.

    Raises:
        InvalidOption: ``every`` is not valid, or as for `archive`.
        ArchiveInUse: as for `archive`.
        EventsLost: as for `archive`.
        TooManyReaders: as for `archive`.
        StorageError: as for `archive`; call it again to go on.
    """
    pause_s = duration_ms(every, name="every", least_ms=_LEAST_EVERY_MS) / 1000
    names = _checked_queues(queues)
    with archiving(
        spark,
        root,
        url=url,
        tenant=tenant,
        reader=reader,
        events_cap=events_cap,
        fail_on_data_loss=fail_on_data_loss,
    ) as add:
        while True:
            begun = time.monotonic()
            yield add(names)
            time.sleep(max(0.0, begun + pause_s - time.monotonic()))


@contextmanager
def archiving(
    spark: SparkSession,
    root: str | os.PathLike[str],
    *,
    url: str = "",
    tenant: str = DEFAULT_TENANT,
    reader: str = "archive",
    events_cap: int | None = None,
    fail_on_data_loss: bool = True,
) -> Iterator[Callable[[Sequence[str]], ArchiveReport]]:
    """Be the archiver of a root and tenant while a block runs, and yield what archives queues.

    Arguments and errors are those of `archive`.
    """
    if events_cap is not None:
        check_count(events_cap, name="events_cap", most=_MOST_ENTRIES)
    archiver = Archiver(
        spark,
        root,
        url=url,
        tenant=check_name(tenant, what="tenant"),
        reader=check_name(reader, what="reader"),
        fails_on_loss=fail_on_data_loss,
    )
    with held(spark, root, Work.ARCHIVE, tenants=[tenant]):
        yield partial(_add, archiver, events_cap)


def _add(archiver: Archiver, events_cap: int | None, queues: Sequence[str]) -> ArchiveReport:
    """Go on with what was cut off, and add what is new."""
    if events_cap is not None:
        archiver.raise_cap(queues, events_cap)
    state = archiver.state()
    if state.plan is None or state.is_done:
        return archiver.begin(queues, state)
    resumed = archiver.go_on(state.plan)
    begun = archiver.begin(queues, archiver.state())
    return _sum(resumed, begun)


def _checked_queues(queues: Sequence[str]) -> list[str]:
    if isinstance(queues, str) or not queues:
        raise InvalidOption(f"queues={queues!r} is not valid: use a list of at least one name")
    return list(dict.fromkeys(check_name(queue, what="queue") for queue in queues))


def _sum(first: ArchiveReport, second: ArchiveReport) -> ArchiveReport:
    return msgspec.structs.replace(
        second,
        events=first.events + second.events,
        dead_letters=first.dead_letters + second.dead_letters,
        lost=first.lost + second.lost,
        until=second.until or first.until,
    )
