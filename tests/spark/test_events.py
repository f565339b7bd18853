"""Events as columns say just what the lines say from which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from headrace import JobEvent
from headrace.events import EventRecord, JobEventKind
from headrace.job import JobState
from headrace.spark.events import SCHEMA, read_page, spark_schema
from headrace.storage import EventLines, open_storage, read_lines
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    bring,
    snoozed,
    started,
)
from headrace.testing.contract.updates import an_update

KIND = JobEventKind


def records(page: Sequence[EventLines]) -> list[EventRecord]:
    """Return what the lines say."""
    return [
        event
        for entry in page
        for event in read_lines(
            entry.lines.decode(errors="replace"),
            stream_id=entry.stream_id,
            at_ms=int(entry.stream_id.partition("-")[0]),
            last=entry.last,
        )
    ]


def row_of(record: EventRecord) -> dict[str, Any]:
    """Return an event as a row: as users see it, but for empty text and whole milliseconds."""
    event = JobEvent.of("q", record)
    told = {name: getattr(event, name) for name in SCHEMA.names if hasattr(event, name)}
    return {
        **told,
        "tenant": "t",
        "kind": record.kind.value,
        "job_id": record.job_id or None,
        "task": record.task or None,
        "wait_ms": None if event.wait_s is None else record.wait_ms,
        "run_ms": None if event.run_s is None else record.run_ms,
    }


def rows(page: Sequence[EventLines]) -> list[dict[str, Any]]:
    """Return the rows of a page."""
    batch = read_page(page, tenant="t", queue="q")
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA)
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def line(kind: str, *parts: str) -> str:
    """Return a line with these parts of detail."""
    return "\t".join((kind, "x", "send", "2", "w", "3", "4", *parts))


def entry(*lines: str, last: int = 0, stream_id: str = "7-0") -> EventLines:
    """Return an entry of these lines."""
    return EventLines(stream_id, last, "\n".join(lines).encode())


NUMBERS = st.sampled_from(
    ["", "0", "1", "007", "12", "9" * 9, "9" * 10, "9" * 15, "9" * 16, "-1", "+1", " 1", "0x1", "٣"]
) | st.from_regex(r"[0-9]{1,3}", fullmatch=True)
WORDS = st.text(st.characters(exclude_characters="\n\t", exclude_categories=["Cs"]), max_size=5)
PARTS = st.lists(WORDS | NUMBERS | st.just("253402300800000"), max_size=8).map("\t".join)
LINES = st.one_of(
    st.tuples(st.sampled_from(KIND), WORDS, WORDS, NUMBERS, WORDS, NUMBERS, NUMBERS, PARTS).map(
        "\t".join
    ),
    WORDS,
    st.lists(WORDS, max_size=10).map("\t".join),
).map(str.encode) | st.binary(max_size=9)
ENTRIES = st.builds(
    EventLines,
    st.sampled_from(["0-1", "7-0", "1764400000123-12"]),
    st.sampled_from([0, 1, 2, 20, 10**15 - 1]),
    st.lists(LINES, min_size=1, max_size=4).map(b"\n".join),
)


@given(page=st.lists(ENTRIES, max_size=3))
def test_a_page_says_what_its_lines_say(page: list[EventLines]) -> None:
    assert [row for row in rows(page) if row["kind"] in set(KIND)] == list(
        map(row_of, records(page))
    )


async def test_every_kind_of_event_is_read_as_it_was_written(url: str) -> None:
    storage = open_storage(url)
    client = ContractClient(storage)
    worker = await ContractIncarnation(storage, "w1").register()
    for state in (JobState.SCHEDULED, JobState.RETRYING, JobState.COMPLETED, JobState.FAILED):
        await bring(state, client, worker, state.value)
    await worker.report(await started(client, worker, "progress"), 0.5, "half of it")
    await client.enqueue(an_update(job_id="scheduled", delay_ms=1000), an_update(job_id="progress"))
    await worker.settle(await started(client, worker, "snoozed"), snoozed(reason="not yet"))
    put_back = await started(client, worker, "put_back")
    await storage.put_back(QUEUE, worker.name, [(put_back.id, put_back.claim)])
    await storage.cancel(QUEUE, [put_back.id])
    await storage.purge(QUEUE, JobState.FAILED, ["failed"])
    doomed = await ContractIncarnation(storage, "w2").register()
    await started(client, doomed, "stalled")
    await doomed.die()
    await storage.retire(QUEUE, worker.name)

    page = await storage.event_lines(QUEUE, limit=1000)
    told = rows(page)
    await storage.aclose()
    assert {row["kind"] for row in told} == {kind.value for kind in KIND}
    assert told == list(map(row_of, records(page)))
    assert [row["number"] for row in told] == list(range(1, len(told) + 1))
    [ended] = [row for row in told if row["kind"] == KIND.FAILED]
    assert (ended["error"], ended["message"]) == ("ValueError", "no such address")


def test_a_kind_of_a_newer_release_keeps_its_detail_and_more_parts_are_no_trouble() -> None:
    page = [entry(line("merged", "a", "b"), line("completed", "5", "new"), last=9)]
    merged, completed = rows(page)
    assert (merged["number"], merged["kind"], merged["detail"]) == (8, "merged", "a\tb")
    assert (merged["start"], merged["run_ms"], merged["error"]) == (2, 4, None)
    assert (completed["number"], completed["detail"]) == (9, None)
    assert completed["created_at"].timestamp() == 0.005


def test_a_number_is_not_given_to_another_where_a_line_is_passed_over() -> None:
    page = [
        entry(line("queued", ""), "", "rub\tbish\r", line("active", ""), last=12),
        entry(line("active", "").replace("3", "three"), line("queued", ""), last=14),
    ]
    assert [(row["number"], row["kind"]) for row in rows(page)] == [
        (9, "queued"),
        (12, "active"),
        (14, "queued"),
    ]


def test_events_of_a_page_without_any_have_the_same_columns() -> None:
    assert rows([]) == rows([entry("")]) == []


def test_spark_is_told_the_types_that_arrow_has() -> None:
    told = to_arrow_schema(spark_schema(), timezone="UTC")
    assert pa.schema(told).equals(SCHEMA)


def test_the_key_of_an_event_is_always_there() -> None:
    required = [field.name for field in spark_schema() if not field.nullable]
    assert required == ["tenant", "queue", "number", "stream_id", "at"]
