"""The data source ``headrace``: jobs are written, and events and ended jobs are read.

It reads the options and hands each direction on. What that needs is imported when it is asked for:
an executor that writes imports nothing of what reads.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from headrace.errors import InvalidOption
from headrace.spark.options import ReadOptions, WriteOptions, read_options, write_options
from headrace.spark.requirements import check_pyspark


class HeadraceDataSource(DataSource):
    """The data source ``headrace``, see the guide on Spark.

    Raises:
        MissingRequirement: pyspark or pyarrow is missing or too old.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        check_pyspark()
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return what stands in ``format(...)``."""
        return "headrace"

    def schema(self) -> StructType:
        """Return the columns of what is read: events, or ended jobs.

        Raises:
            InvalidOption: an option of a read is not known or not valid.
        """
        return _schema(read_options(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch.

        Raises:
            InvalidOption: an option is not known or not valid, or a schema was said.
        """
        options = self._to_read(schema)
        if options.read == "events":
            from headrace.spark.event_readers import batch_reader
        else:
            from headrace.spark.record_readers import batch_reader
        return batch_reader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads a stream; for the rest as `reader`."""
        options = self._to_read(schema)
        if options.read == "events":
            from headrace.spark.event_readers import stream_reader
        else:
            from headrace.spark.record_readers import stream_reader
        return stream_reader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 (Spark's)
        """Return what writes a batch.

        Raises:
            InvalidOption: an option is not known or not valid, or the mode is not ``append``.
            InvalidRows: a column is missing, not known, or of another type.
            StorageError: the storage can't be reached, or can't be used.
        """
        from headrace.spark.writers import batch_writer

        return batch_writer(self._to_write(is_overwriting=overwrite), schema)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 (Spark's)
    ) -> DataSourceStreamWriter:
        """Return what writes a stream; for the rest as `writer`."""
        from headrace.spark.writers import stream_writer

        return stream_writer(self._to_write(is_overwriting=overwrite), schema)

    def _to_read(self, schema: StructType) -> ReadOptions:
        options = read_options(self.options)
        own = _schema(options).simpleString()
        if schema.simpleString() != own:
            raise InvalidOption(
                f"what headrace reads has columns of its own, {own}: leave .schema(...) out, and "
                ".select(...) what you need"
            )
        return options

    def _to_write(self, *, is_overwriting: bool) -> WriteOptions:
        if is_overwriting:
            raise InvalidOption(
                "a queue is never overwritten, only added to: say .mode('append'), or for a stream "
                ".outputMode('append'). To empty it first, purge it: `headrace queue purge`"
            )
        return write_options(self.options)


def register(spark: SparkSession) -> None:
    """Make ``format("headrace")`` known to a session that has not found it by itself.

    Spark registers it in every session where the package is installed beside pyspark. But it looks
    for what it writes with in the session of the thread, and only the thread that made a session
    has one: before a ``save()`` in another thread, call this there.
    """
    # Of all public calls this is the one that makes the session that of the thread.
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(HeadraceDataSource)


def _schema(options: ReadOptions) -> StructType:
    if options.read == "events":
        from headrace.spark.events import spark_schema
    else:
        from headrace.spark.records import spark_schema
    return spark_schema()
