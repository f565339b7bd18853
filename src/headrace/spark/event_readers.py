"""What Spark reads events with: a batch, or a stream of micro-batches.

None of it defines ``pushFilters``: Spark refuses a reader that does, unless a setting is on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from headrace.spark import offsets
from headrace.spark.event_source import EventSource
from headrace.spark.events import read_page
from headrace.spark.options import ReadOptions, check_unending
from headrace.spark.places import EventOffset, Loss, Span, from_json, to_json
from headrace.spark.storages import CHECK_S, storage_of
from headrace.storage.event_pages import EventLines

try:
    from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # of pyspark 4.2; before, Spark finds the end of such a trigger by itself

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # where there is none
        """Stands for that of pyspark: an older one asks for nothing of it."""


def batch_reader(options: ReadOptions) -> DataSourceReader:
    """Return what reads the events that there are once."""
    return EventBatchReader(options)


def stream_reader(options: ReadOptions) -> DataSourceStreamReader:
    """Return what reads events as they come.

    Raises:
        InvalidOption: the options say where it ends.
    """
    check_unending(options)
    return EventStreamReader(options)


class EventBatchReader(DataSourceReader):
    """Reads the events that there are when the query begins."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads.

        Raises:
            EventsLost: some are not there any more; see `failOnDataLoss`.
        """
        source = _source(self._options, most_s=CHECK_S)
        starts = offsets.starts(source, self._options)
        ends = offsets.ends(source, self._options, starts)
        return _partitions(source, self._options, offsets.planned(source, starts, ends=ends))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a part, a page each."""
        return _read(self._options, partition)


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads events in micro-batches; Spark keeps how far in its checkpoint."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._start: dict[str, EventOffset] = {}
        self._target: dict[str, EventOffset] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        source = _source(self._options, most_s=CHECK_S)
        self._start = offsets.starts(source, self._options, otherwise="latest")
        return to_json(self._start)

    def getDefaultReadLimit(self) -> Any:
        """Return how much a trigger brings at most, as `maxEventsPerTrigger` says."""
        most = self._options.max_events
        return ReadMaxRows(most) if most else super().getDefaultReadLimit()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note the last events that there are, for a query that ends with them."""
        source = _source(self._options)
        queues = offsets.queues_of(source, self._options)
        self._target = {queue: offsets.latest(source, queue) for queue in queues}

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return up to where the next micro-batch goes.

        Args:
            start: where it begins. pyspark 4.1 does not say: then it is where the last one ended,
                and the first one after a restart has no limit.
            limit: how much it may be; on pyspark 4.1 the options alone say so.
        """
        if start is None and not self._start:
            return self.reportLatestOffset()
        source = _source(self._options)
        begun = self._start if start is None else from_json(start)
        most = self._options.max_events if limit is None else getattr(limit, "max_rows", 0)
        starts, added = self._places(source, begun)
        spans = offsets.planned(source, starts, ends=self._target, most=most)
        return to_json({**added, **{span.queue: span.end for span in spans}})

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return where the events end now, for the progress of the query."""
        source = _source(self._options)
        queues = offsets.queues_of(source, self._options)
        return to_json({queue: offsets.latest(source, queue) for queue in queues})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return what each task of a micro-batch reads.

        Raises:
            EventsLost: some are not there any more, and `failOnDataLoss` is not false.
        """
        source = _source(self._options)
        begun, ends = from_json(start), from_json(end)
        self._start = ends
        if not self._options.queues:
            # One that is gone, where pyspark 4.1 did not say that it was read.
            ends = {**dict.fromkeys(begun, EventOffset()), **ends}
        starts = {
            queue: begun[queue] if queue in begun else self._added(source, queue)
            for queue, place in ends.items()
            if queue in begun or not place.is_before_all
        }
        return _partitions(source, self._options, offsets.planned(source, starts, ends=ends))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a part, a page each."""
        return _read(self._options, partition)

    def _places(
        self, source: EventSource, begun: Mapping[str, EventOffset]
    ) -> tuple[dict[str, EventOffset], dict[str, EventOffset]]:
        """Return where each queue goes on, and where those begin that are read from now on."""
        queues = dict.fromkeys(offsets.queues_of(source, self._options))
        if self._options.queues:
            added = {queue: self._added(source, queue) for queue in queues if queue not in begun}
            return {queue: begun[queue] for queue in queues if queue in begun}, added
        if self._target is not None:
            queues = {queue: None for queue in queues if queue in self._target}
        return {**{queue: EventOffset() for queue in queues}, **begun}, {}

    def _added(self, source: EventSource, queue: str) -> EventOffset:
        """Return where a queue begins that an offset does not have.

        What one had lost before the option has named it is none of this query's concern.
        """
        return offsets.earliest(source, queue) if self._options.queues else EventOffset()


def _source(options: ReadOptions, *, most_s: float = math.inf) -> EventSource:
    retry_for_s = min(options.retry_for_ms / 1000, most_s)
    return EventSource(storage_of(options.url, options.tenant), retry_for_s=retry_for_s)


def _partitions(
    source: EventSource, options: ReadOptions, spans: Sequence[Span]
) -> list[InputPartition]:
    losses = [span.loss for span in spans if span.loss is not None]
    offsets.raise_or_warn(losses, fails=options.fails_on_loss)
    return [InputPartition(part) for part in offsets.split(source, spans, options.min_partitions)]


def _read(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    span: Span | None = getattr(partition, "value", None)
    if span is None:  # Spark makes such a part where there is none, pyspark 4.1 None itself
        return
    pages = _source(options).pages(span)
    for page in _unbroken(pages, span, fails=options.fails_on_loss):
        yield read_page(page, tenant=options.tenant, queue=span.queue)


def _unbroken(
    pages: Iterable[list[EventLines]], span: Span, *, fails: bool
) -> Iterator[list[EventLines]]:
    """Pass pages on, and see by the numbers that nothing is missing, up to the end of the span.

    Raises:
        EventsLost: something is, and this is to fail.
    """
    last = span.start.number
    for page in pages:
        for entry in page:
            if last is not None and entry.last:
                offsets.raise_or_warn(_missing(span.queue, last, entry.place.first), fails=fails)
            last = entry.last or None
        yield page
    if last is not None:
        offsets.raise_or_warn(_missing(span.queue, last, max(last, span.end.n) + 1), fails=fails)


def _missing(queue: str, last: int, following: int) -> list[Loss]:
    """Return what is missing between two numbers that should follow each other."""
    if following == last + 1:
        return []
    return [Loss(queue, last, max(0, following - last - 1))]
