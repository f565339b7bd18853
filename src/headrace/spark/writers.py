"""What Spark writes jobs with: directly or atomically, a batch or the micro-batches of a stream.

Spark calls `commit` and `abort` in a Python process that is neither the driver nor an executor, and
makes the writer of a stream anew for them. So all that they need is in the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from headrace.spark.columns import check_columns
from headrace.spark.known_writes import check_batch
from headrace.spark.options import WriteOptions
from headrace.spark.shipping import Shipped
from headrace.spark.writing import (
    QUERY_PROPERTY,
    Written,
    check_target,
    finish,
    give_up,
    terms_of,
    warn_of_history,
    write_partition,
)
from headrace.staging import WriteTerms

_BATCH = "streaming.sql.batchId"


def batch_writer(options: WriteOptions, schema: StructType) -> DataSourceArrowWriter:
    """Return the writer of a DataFrame, once it is known on the driver that it can be written.

    Raises:
        InvalidRows: a column is missing, not known, or of another type.
        StorageError: the storage can't be reached, or can't be used.
    """
    check_columns(schema, options)
    check_target(options)
    return BatchWriter(options, schema.fieldNames())


def stream_writer(options: WriteOptions, schema: StructType) -> DataSourceStreamArrowWriter:
    """Return the writer of a stream, likewise.

    Each micro-batch asks for one, and for another to commit: so the storage may be away for as long
    as calls are repeated.
    """
    check_columns(schema, options)
    check_target(options, for_s=options.retry_for_ms / 1000)
    return StreamWriter(options)


class PartitionMessage(WriterCommitMessage):
    """What an attempt at a partition tells the driver; of attempts that failed there is none.

    Args:
        written: what became of it.
        terms: of the write, None if it is direct.
    """

    def __init__(self, written: Written, terms: WriteTerms | None) -> None:
        self.written = written
        self.terms = terms


Messages = Sequence[PartitionMessage | None]


class BatchWriter(Shipped, DataSourceArrowWriter):
    """Writes a DataFrame.

    Args:
        options: of the write.
        columns: of the rows.
    """

    def __init__(self, options: WriteOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._terms = terms_of(options) if options.is_atomic else None
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionMessage:
        """Write one partition on an executor."""
        written = write_partition(iterator, self._options, self._terms)
        return PartitionMessage(written, self._terms)

    def commit(self, messages: Messages) -> None:
        """End a write of which all partitions were written."""
        written = list(_written(messages))
        if self._terms is not None:
            finish(self._options, self._terms, written)
        if not self._options.write_id:
            warn_of_history(self._options, sum(one.rows for one in written), self._columns)

    def abort(self, messages: Messages) -> None:
        """End a write that failed: in a partition, or in `commit`."""
        if self._terms is not None:
            give_up(self._options, self._terms, _written(messages))


class StreamWriter(Shipped, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream.

    Args:
        options: of the write.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionMessage:
        """Write one partition of a micro-batch on an executor."""
        terms = self._terms() if self._options.is_atomic else None
        return PartitionMessage(write_partition(iterator, self._options, terms), terms)

    def commit(self, messages: Messages, batchId: int) -> None:
        """End a micro-batch of which all partitions were written."""
        terms = _terms_in(messages)
        if terms is None:
            return
        check_batch(finish(self._options, terms, _written(messages)), terms)

    def abort(self, messages: Messages, batchId: int) -> None:
        """End a micro-batch that failed: in a partition, or in `commit`."""
        terms = _terms_in(messages)
        if terms is not None:
            give_up(self._options, terms, _written(messages))

    def _terms(self) -> WriteTerms:
        context = TaskContext.get()
        return terms_of(
            self._options,
            write_id=context.getLocalProperty(QUERY_PROPERTY),
            batch=int(context.getLocalProperty(_BATCH)),
        )


def _written(messages: Messages) -> Iterable[Written]:
    return (message.written for message in messages if message is not None)


def _terms_in(messages: Messages) -> WriteTerms | None:
    """Return the terms of an atomic micro-batch, which all of its messages have."""
    return next((message.terms for message in messages if message is not None), None)
