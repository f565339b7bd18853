"""What Spark reads ended jobs with, once or as a stream.

How far a read goes is fixed on the driver when it is planned, so a task that Spark runs again reads
the same places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from headrace.spark import cursors
from headrace.spark.cursors import Cursors, Piece
from headrace.spark.options import ReadOptions, check_unending
from headrace.spark.records import batch_of
from headrace.spark.storages import storage_of
from headrace.storage.blocking import BlockingStorage
from headrace.storage.steps import at_once


def batch_reader(options: ReadOptions) -> DataSourceReader:
    """Return what reads the jobs that have ended by now.

    Raises:
        InvalidOption: offsets are not valid.
    """
    return RecordReader(options)


def stream_reader(options: ReadOptions) -> DataSourceStreamReader:
    """Return what reads jobs as they end.

    Raises:
        InvalidOption: offsets are not valid, or an end is said.
    """
    return RecordStreamReader(options)


class RecordReader(DataSourceReader):
    """Reads the ended jobs that there are."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._starting = _offsets(options, "startingOffsets", options.starting)
        self._ending = _offsets(options, "endingOffsets", options.ending)

    def partitions(self) -> list[InputPartition]:
        """Return what each task is to read: pieces of each queue and state."""
        options, storage = self._options, _storage(self._options)
        queues = _queues(options, storage)
        is_late = options.starting == "latest"
        sought = [queue for queue in queues if is_late or not self._is_said(queue)]
        newest = cursors.latest(storage, sought, options.states)
        after = newest if is_late else _starting(options, queues, self._starting)
        until = {name: {**newest.get(name, {}), **self._ending.get(name, {})} for name in queues}
        found = cursors.pieces(
            after, until, since_ms=options.starting_ms, before_ms=options.ending_ms
        )
        parts = math.ceil(options.min_partitions / max(len(found), 1))
        return [
            InputPartition(piece)
            for whole in found
            for piece in cursors.split(storage, whole, parts)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, a batch for each page."""
        return _read(self._options, getattr(partition, "value", None))

    def _is_said(self, queue: str) -> bool:
        """Whether the options say where the read of a queue ends, in each state."""
        return set(self._options.states) <= set(self._ending.get(queue, {}))


class RecordStreamReader(DataSourceStreamReader):
    """Reads jobs as they end. Each end comes once."""

    def __init__(self, options: ReadOptions) -> None:
        check_unending(options)
        self._options = options
        self._starting = _offsets(options, "startingOffsets", options.starting)
        self._seen: Cursors = {}

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        options, storage = self._options, _storage(self._options)
        queues = _queues(options, storage)
        if options.starting == "latest":
            return cursors.latest(storage, queues, options.states)
        return cursors.rising({}, _starting(options, queues, self._starting))

    def latestOffset(self, start: Cursors | None = None, limit: object = None) -> dict[str, Any]:
        """Return how far jobs have ended; Spark 4.1 passes no start."""
        storage = _storage(self._options)
        newest = cursors.latest(storage, _queues(self._options, storage), self._options.states)
        found = cursors.rising(cursors.rising(self._seen, start or {}), newest)
        self._seen = found
        return found

    def partitions(self, start: Cursors, end: Cursors) -> list[InputPartition]:
        """Return what each task is to read: a piece for each queue and state that has any."""
        self._seen = cursors.rising(self._seen, end)
        found = cursors.pieces(start, end, since_ms=self._options.starting_ms)
        return [InputPartition(piece) for piece in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, a batch for each page."""
        return _read(self._options, getattr(partition, "value", None))


def _read(options: ReadOptions, piece: Piece | None) -> Iterator[pa.RecordBatch]:
    if piece is None:  # Spark's own part of a read that has none; of pyspark 4.1 it is None itself
        return
    for page in cursors.pages(_storage(options), piece):
        yield batch_of(options.tenant, page)


def _storage(options: ReadOptions) -> BlockingStorage:
    return storage_of(options.url, options.tenant)


def _queues(options: ReadOptions, storage: BlockingStorage) -> list[str]:
    return list(options.queues) or at_once(storage.queues())


def _offsets(options: ReadOptions, name: str, said: str) -> Cursors:
    if not said.lstrip().startswith("{"):
        return {}
    return cursors.read_cursors(said, options.queues, options.states, name=name)


def _starting(options: ReadOptions, queues: Sequence[str], said: Cursors) -> Cursors:
    """Return where a read begins that does not begin with what ends from now on."""
    if not options.starting_ms:
        return said
    return {
        queue: {
            state.value: cursors.cursor_at(queue, state, options.starting_ms - 1)
            for state in options.states
        }
        for queue in queues
    }
