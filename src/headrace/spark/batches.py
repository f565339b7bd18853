"""What foreachBatch and foreachPartition call: functions that Spark can send anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, TypedDict, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StringType, StructField, StructType

from headrace.errors import InvalidOption, InvalidRows
from headrace.job import check_text
from headrace.options import spelled_out
from headrace.plain import shown
from headrace.spark.arguments import WriteArguments, options_of
from headrace.spark.columns import ASKED, INSTANT, check_columns
from headrace.spark.frames import write_frame
from headrace.spark.ids import Duplicates
from headrace.spark.options import WriteOptions
from headrace.spark.prepare import prepare
from headrace.spark.progress import is_remote
from headrace.spark.shipping import Shipped
from headrace.spark.writing import QUERY_PROPERTY, terms_of, write_partition

ROWS = 1_000
"""How many rows of a partition are checked at once."""


class RowArguments(TypedDict, total=False):
    """What `prepare` is told of each batch; columns by their names alone."""

    id: str | None
    id_from: str | Sequence[str] | None
    payload: Sequence[str] | Mapping[str, str] | None
    duplicates: Duplicates
    options: Mapping[str, str | int | float] | None


@spelled_out(WriteArguments)
def enqueue_batch(
    *,
    id: str | None = None,
    id_from: str | Sequence[str] | None = None,
    payload: Sequence[str] | Mapping[str, str] | None = None,
    duplicates: Duplicates = "collapse",
    options: Mapping[str, str | int | float] | None = None,
    per_batch: bool = True,
    query: str | None = None,
    **said: Unpack[WriteArguments],
) -> EnqueueBatch:
    """Return what ``writeStream.foreachBatch(...)`` calls to make jobs of each micro-batch.

    Spark may run a micro-batch again, with the same rows and number: after a crash, or where the
    end of its checkpoint was lost. Then it brings in nothing twice: directly by the ids of jobs, as
    long as these are kept; atomically by the number of the batch, whatever the ids.

    It may be sent to another process, and opens what it needs there, so it runs with Spark Connect
    as well.

    Args:
        id: as for `prepare`. Where neither this nor ``id_from``, ``payload`` or ``options`` is
            said, the rows are taken as `prepare` has made them.
        id_from: as for `prepare`.
        payload: as for `prepare`, columns by their names.
        duplicates: as for `prepare`, of the rows of one batch.
        options: as for `prepare`, columns by their names.
        per_batch: whether equal rows of different batches are different jobs: then ids of
            ``id_from`` are made of the stream and the number of the batch too.
        query: what the stream is called in ids and as a write; it stays when the stream starts
            again, and no other stream of the queue has it. Default: Spark's id of the query,
            which stays with its checkpoint; with Spark Connect nobody tells it, so say one there.
        **said: see `WriteArguments`.

    Raises:
        InvalidOption: an argument is not valid.
    """
    rows: RowArguments = {}
    if any(one is not None for one in (id, id_from, payload, options)):
        rows = {
            "id": id,
            "id_from": id_from,
            "payload": payload,
            "duplicates": duplicates,
            "options": options,
        }
        _check_names(rows)
    name = "" if query is None else check_text(query, what="query")
    return EnqueueBatch(options_of(said), rows, query=name, per_batch=per_batch)


class EnqueueBatch(Shipped):
    """What `enqueue_batch` returns."""

    def __init__(
        self, options: WriteOptions, rows: RowArguments, *, query: str, per_batch: bool
    ) -> None:
        self._options = options
        self._rows = rows
        self._query = query
        self._is_salted = per_batch and rows.get("id_from") is not None

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Make jobs of the rows of a micro-batch.

        Raises:
            HeadraceError: as `enqueue_dataframe`; the streaming query ends with it.
        """
        options = self._options
        is_named = self._is_salted or options.is_atomic
        query = (self._query or _query_id(df)) if is_named else ""
        if self._rows:
            salt = f"{query}:{batch_id}" if self._is_salted else None
            df = prepare(df, task=options.task or None, salt=salt, **self._rows)
        terms = None
        if options.is_atomic:
            terms = terms_of(options, write_id=f"stream:{query}", batch=batch_id)
        check_s = options.retry_for_ms / 1000
        write_frame(df, options, terms, is_named=terms is not None, check_s=check_s)


@spelled_out(WriteArguments)
def enqueue_partition(**said: Unpack[WriteArguments]) -> EnqueuePartition:
    """Return what ``DataFrame.foreachPartition(...)`` calls to make jobs of its rows, directly.

    ``prepare(df, ...).foreachPartition(enqueue_partition(queue="mails"))``. Nothing comes back:
    `enqueue_dataframe` does the same faster, and with a report. It is for code that has rows in
    the middle of a partition anyway: ``enqueue_partition(...)(rows)`` takes any rows with the
    columns that `prepare` makes.

    Args:
        **said: see `WriteArguments`; ``commit`` is ``direct``.

    Raises:
        InvalidOption: an argument is not valid.
    """
    options = options_of(said)
    if options.is_atomic:
        raise InvalidOption(
            "commit='atomic' needs the driver at the end: use enqueue_dataframe, or "
            "format('headrace')"
        )
    return EnqueuePartition(options)


class EnqueuePartition(Shipped):
    """What `enqueue_partition` returns."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def __call__(self, rows: Iterable[Row]) -> None:
        """Make jobs of rows.

        Raises:
            InvalidRows: a column or a row can't become a job; nothing of its 1,000 was sent.
            StorageError: the storage is away or refuses.
        """
        write_partition(_in_arrow(iter(rows), self._options), self._options)


def _check_names(rows: RowArguments) -> None:
    """See that columns are said by their names."""
    payload, options = rows["payload"], rows["options"]
    values = payload.values() if isinstance(payload, Mapping) else payload or ()
    for value in (*values, *(options or {}).values()):
        if not isinstance(value, str | int | float):
            raise InvalidOption(
                f"{shown(value)}: say a column by its name, since a batch is another DataFrame"
            )
    if rows["id"] is not None and rows["id_from"] is not None:
        raise InvalidOption("id and id_from: say one of them")


def _query_id(df: DataFrame) -> str:
    """Return Spark's id of the streaming query whose batch this is."""
    if is_remote(df.sparkSession):
        raise InvalidOption(
            "Spark Connect does not tell which stream this is: say enqueue_batch(query='...'), a "
            "name that stays when the stream starts again, or per_batch=False with commit='direct'"
        )
    found = df.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY)
    if not found:
        raise InvalidOption("this is no batch of a stream: say enqueue_batch(query='...')")
    return str(found)


def _in_arrow(rows: Iterator[Row], options: WriteOptions) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, ROWS)):
        names = chunk[0].__fields__
        known = {**ASKED, options.id_column: ASKED["task"]}
        check_columns(
            StructType(
                [
                    StructField(name, known[name].types[0]() if name in known else StringType())
                    for name in names
                ]
            ),
            options,
        )
        columns = [_column(name, [row[place] for row in chunk]) for place, name in enumerate(names)]
        yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    kind = ASKED.get(name)
    try:
        if kind is None:
            return pa.array([bytes(v) if isinstance(v, bytearray) else v for v in values])
        if kind is INSTANT:
            # Spark hands instants out in the local time of this process.
            local = [v.astimezone(UTC) if isinstance(v, datetime) else v for v in values]
            return pa.array(local, pa.timestamp("us", "UTC"))
        plain = [float(v) if isinstance(v, Decimal) else v for v in values]
        return pa.array(plain, kind.read_as)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidRows(f"the column {shown(name)} can't be read: {error}") from None
