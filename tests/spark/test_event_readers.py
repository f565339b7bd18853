"""The readers of events as Spark calls them, one call after the other."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from headrace import EventsLost, InvalidOption, SyncApp
from headrace.spark.event_readers import batch_reader, stream_reader
from headrace.spark.options import ReadOptions
from headrace.spark.places import EventOffset, to_json
from headrace.testing.contract.delete_queue import next_millisecond
from tests.spark.support.events import delete, enqueue, entries, first_of, last_of, trim
from tests.spark.support.micro_batches import SPARK_SAYS_LIMITS, next_end


def stream(url: str, *queues: str, **options: Any) -> DataSourceStreamReader:
    """Return a reader of a stream from the first event on."""
    said = {"queues": queues or ("q",), "starting": "earliest", **options}
    return stream_reader(ReadOptions(url=url, **said))


def batch(url: str, *queues: str, **options: Any) -> DataSourceReader:
    """Return a reader of a batch."""
    return batch_reader(ReadOptions(url=url, queues=queues or ("q",), **options))


def read(
    reader: DataSourceReader | DataSourceStreamReader, parts: Iterable[InputPartition | None]
) -> list[int]:
    """Return the numbers of the events of parts, each read as if in another process."""
    found = []
    for part in parts:
        there, its = pickle.loads(pickle.dumps((reader, part)))  # noqa: S301 (our own)
        for page in there.read(its):
            found += page.column("number").to_pylist()
    return found


def follow(reader: DataSourceStreamReader, begin: dict[str, Any]) -> list[list[int]]:
    """Read micro-batches until there is nothing more; return the numbers of each."""
    found = []
    while (end := next_end(reader, begin)) != begin:
        found.append(read(reader, reader.partitions(begin, end)))
        begin = end
    return found


def offset(**places: tuple[str, int]) -> dict[str, Any]:
    """Return an offset of Spark's."""
    return to_json({queue: EventOffset(*place) for queue, place in places.items()})


def numbers(first: int, last: int) -> list[int]:
    """Return the numbers from one to another."""
    return list(range(first, last + 1))


def test_a_batch_reads_each_event_once(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 25_000)
    reader = batch(url, min_partitions=3)
    parts = reader.partitions()
    assert len(parts) > 1
    assert read(reader, parts) == numbers(1, 25_000)


def test_a_tenant_reads_its_own(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 30)
    with SyncApp(url, tenant="other") as other:
        enqueue(other, 10)
    reader = batch(url, tenant="other")
    [page] = [page for part in reader.partitions() for page in reader.read(part)]
    assert page.column("tenant").to_pylist() == ["other"] * 10
    assert read(stream(url), batch(url).partitions()) == numbers(1, 30)


def test_nothing_is_read_where_nothing_is(url: str) -> None:
    reader = batch(url)
    assert reader.partitions() == []
    assert read(reader, [InputPartition(None), None]) == []  # as Spark has it then


def test_what_was_trimmed_after_it_was_planned_is_counted(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 40)
    parts = batch(url).partitions()
    lost = trim(app).first - 1
    assert lost >= 40
    with pytest.raises(EventsLost, match=r"^40 events of queue 'q' after number 0 were trimmed"):
        read(batch(url), parts)
    with pytest.warns(UserWarning, match=r"^40 events of queue 'q' after number 0 were trimmed"):
        assert read(batch(url, fails_on_loss=False), parts) == []


def test_what_was_trimmed_in_the_middle_is_counted(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 3_000)
    parts = batch(url, min_partitions=1).partitions()
    app.queue("q").configure(events=100)
    enqueue(app, 20)
    first = first_of(app).first
    assert 1 < first < 3_000
    lost = f"^{first - 1} events of queue 'q' after number 0 were trimmed"
    with pytest.raises(EventsLost, match=lost):
        read(batch(url), parts)
    reader = batch(url, fails_on_loss=False)
    with pytest.warns(UserWarning, match="of queue 'q' after number [0-9]+ were trimmed"):
        assert read(reader, parts) == numbers(first, 3_000)


def test_numbers_that_begin_anew_in_the_middle_are_noticed(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 40)
    reader = stream(url)
    begin = offset(q=(entries(app)[0].stream_id, 20))
    delete(app)
    enqueue(app, 60)
    last = last_of(app)
    with pytest.raises(EventsLost, match="do not go on behind number 20: numbers began anew"):
        reader.partitions(begin, offset(q=(last.stream_id, last.last)))
    with pytest.warns(UserWarning, match="do not go on behind number 20: numbers began anew"):
        assert follow(stream(url, fails_on_loss=False), begin) == [numbers(1, 60)]


def test_a_stream_that_is_empty_at_first_brings_what_comes(url: str, app: SyncApp[None]) -> None:
    for word in ("earliest", "latest"):
        reader = stream(url, word, starting=word)
        begin = reader.initialOffset()
        assert next_end(reader, begin) == begin
        enqueue(app, 30, queue=word)
        assert follow(reader, begin) == [numbers(1, 30)]


@pytest.mark.skipif(not SPARK_SAYS_LIMITS, reason="this Spark has no limits")
def test_a_stream_has_as_much_in_a_micro_batch_as_it_may(url: str, app: SyncApp[None]) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    for _ in range(6):
        enqueue(app, 20)
        next_millisecond()
    reader = stream(url, max_events=45)
    begin = reader.initialOffset()
    assert reader.getDefaultReadLimit() == ReadMaxRows(45)
    assert follow(reader, begin) == [numbers(1, 40), numbers(41, 80), numbers(81, 120)]
    # A trigger that is to bring all brings all.
    assert reader.latestOffset(begin, ReadAllAvailable()) == reader.reportLatestOffset()
    assert stream(url).getDefaultReadLimit() == ReadAllAvailable()


def test_a_stream_has_its_limits_where_spark_tells_neither_start_nor_limit(
    url: str, app: SyncApp[None]
) -> None:
    for _ in range(4):
        enqueue(app, 20)
        next_millisecond()
    reader = stream(url, max_events=20)
    begin, found = reader.initialOffset(), []
    while (end := reader.latestOffset()) != begin:
        assert reader.latestOffset() == end  # asked again
        found.append(read(reader, reader.partitions(begin, end)))
        begin = end
    assert found == [numbers(1, 20), numbers(21, 40), numbers(41, 60), numbers(61, 80)]
    # After a restart it does not know where it is until Spark has asked for a micro-batch.
    again = stream(url, max_events=20)
    assert again.latestOffset() == begin
    assert again.partitions(begin, begin) == []


def test_a_micro_batch_that_is_read_again_is_the_same(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 60)
    reader = stream(url)
    begin = reader.initialOffset()
    end = next_end(reader, begin)
    enqueue(app, 40)
    for again in (reader, stream(url)):
        assert read(again, again.partitions(begin, end)) == numbers(1, 60)


def test_a_trigger_that_takes_what_is_there_now_ends(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 30)
    reader = stream(url, max_events=10)
    begin = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    next_millisecond()
    enqueue(app, 40)
    found = follow(reader, begin)
    assert [number for numbers_ in found for number in numbers_] == numbers(1, 30)


def test_a_stream_of_all_queues_has_those_that_come_later_from_their_first_event(
    url: str, app: SyncApp[None]
) -> None:
    enqueue(app, 10)
    reader = stream_reader(ReadOptions(url=url, queues=(), starting="latest"))
    begin = reader.initialOffset()
    enqueue(app, 20, queue="r")
    assert follow(reader, begin) == [numbers(1, 20)]
    reader.prepareForTriggerAvailableNow()
    enqueue(app, 5, queue="s")
    assert set(next_end(reader, begin)) == {"q", "r"}


def test_a_queue_that_is_gone_from_a_stream_of_all_is_noticed(url: str, app: SyncApp[None]) -> None:
    enqueue(app, 10)
    last = last_of(app)
    reader = stream_reader(ReadOptions(url=url, queues=()))
    begin = offset(q=(last.stream_id, 10))
    delete(app)
    end = next_end(reader, begin)
    for its in (end, {}):  # {}: where Spark does not say what was read already
        with pytest.raises(EventsLost, match="of queue 'q' do not go on behind number 10"):
            reader.partitions(begin, its)


def test_a_queue_that_is_named_at_a_restart_is_read_from_what_is_kept(
    url: str, app: SyncApp[None]
) -> None:
    first = trim(app, queue="r")
    enqueue(app, 20)
    begin = stream(url).initialOffset()
    last = last_of(app, queue="r").last
    expected = [*numbers(1, 20), *numbers(first.first, last)]
    assert list(chain(*follow(stream(url, "q", "r"), begin))) == expected
    # So it is where Spark does not say what was read already.
    reader = stream(url, "q", "r")
    assert read(reader, reader.partitions(begin, reader.latestOffset())) == expected


def test_a_stream_has_no_end() -> None:
    for options in (ReadOptions(ending="latest"), ReadOptions(ending_ms=7)):
        with pytest.raises(InvalidOption, match=r"are options of spark\.read: a stream has no end"):
            stream_reader(options)
