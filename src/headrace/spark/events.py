"""Events as columns, from pages of lines: Arrow parses them, and no step of Python is an event's.

What a line says, `headrace.storage.lines` tells; what is null where, `headrace.views.JobEvent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headrace.events import JobEventKind
from headrace.storage.event_pages import EventLines
from headrace.storage.lines import LAST_MS, MOST_DIGITS, MOST_START_DIGITS, PARTS
from headrace.views.jobs import MEASURED

INSTANT = pa.timestamp("us", "UTC")

SCHEMA = pa.schema(
    [
        pa.field("tenant", pa.string(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("stream_id", pa.string(), nullable=False),
        pa.field("at", INSTANT, nullable=False),
        pa.field("kind", pa.string()),
        pa.field("job_id", pa.string()),
        pa.field("task", pa.string()),
        pa.field("start", pa.int32()),
        pa.field("incarnation", pa.string()),
        pa.field("wait_ms", pa.int64()),
        pa.field("run_ms", pa.int64()),
        pa.field("detail", pa.string()),
        pa.field("error", pa.string()),
        pa.field("message", pa.string()),
        pa.field("frame", pa.string()),
        pa.field("due_at", INSTANT),
        pa.field("created_at", INSTANT),
        pa.field("worker", pa.string()),
        pa.field("host", pa.string()),
        pa.field("version", pa.string()),
        pa.field("app_version", pa.string()),
    ]
)
"""The columns of events. The key of an event is its queue and number, 0 where it is not known."""

_WORDS = ("kind", "job_id", "task", "start", "incarnation", "wait", "run", "detail")
_KINDS = tuple(JobEventKind)


def spark_schema() -> StructType:
    """Return the columns of events as Spark names them."""
    return from_arrow_schema(SCHEMA)


def read_page(page: Sequence[EventLines], *, tenant: str, queue: str) -> pa.RecordBatch:
    """Return the events of entries, in their order.

    A line that can't be read is passed over, and its number is not given to another. One of a kind
    that a newer release writes has its detail as it stands.

    Args:
        page: the entries.
        tenant: whose they are.
        queue: which queue's.
    """
    lines = pc.split_pattern(_text([entry.lines for entry in page]), "\n")
    words = pc.split_pattern(lines.flatten(), "\t", max_splits=len(_WORDS) - 1)
    entry = pc.list_parent_indices(lines)
    columns = {"entry": entry, "number": _numbers(page, lines, entry), "words": words}
    rows = _only(
        pa.RecordBatch.from_pydict(columns), pc.equal(pc.list_value_length(words), len(_WORDS))
    )
    rows = _split(rows)
    counts = (("start", MOST_START_DIGITS), ("wait", MOST_DIGITS), ("run", MOST_DIGITS))
    for name, most_digits in counts:
        empty = pc.equal(pc.binary_length(rows[name]), 0)
        rows = _only(rows, pc.or_(empty, _is_number(rows[name], most_digits)))
    found = {
        "tenant": pa.repeat(pa.scalar(tenant), len(rows)),
        "queue": pa.repeat(pa.scalar(queue), len(rows)),
        "number": rows["number"],
        "stream_id": pa.array([one.stream_id for one in page], pa.string()).take(rows["entry"]),
        "at": pa.array([_at_us(one) for one in page], INSTANT).take(rows["entry"]),
        **{name: _said(rows[name]) for name in ("kind", "job_id", "task", "incarnation")},
        **_measured(rows),
        **_Detail(rows).columns(),
    }
    return pa.RecordBatch.from_arrays([found[name] for name in SCHEMA.names], schema=SCHEMA)


def _text(lines: list[bytes]) -> pa.StringArray:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # a stranger's
        return pa.array([entry.decode(errors="replace") for entry in lines], pa.string())


def _numbers(page: Sequence[EventLines], lines: pa.ListArray, entry: pa.Array) -> pa.Int64Array:
    """Count from the last event of each entry back to its first."""
    last = pa.array([one.last for one in page], pa.int64())
    behind = pc.subtract(last, pc.cast(lines.offsets[1:], pa.int64()))
    place = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(entry)))
    return pc.max_element_wise(pc.add(behind.take(entry), place), 0)


def _at_us(entry: EventLines) -> int:
    return min(int(entry.stream_id.partition("-")[0]), LAST_MS) * 1000


def _only(rows: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    return rows if pc.all(mask).as_py() else rows.filter(mask)


def _split(rows: pa.RecordBatch) -> pa.RecordBatch:
    words = {name: pc.list_element(rows["words"], at) for at, name in enumerate(_WORDS)}
    return pa.RecordBatch.from_pydict({"entry": rows["entry"], "number": rows["number"], **words})


def _is_number(words: pa.StringArray, most_digits: int) -> pa.BooleanArray:
    return pc.and_(pc.ascii_is_decimal(words), pc.less_equal(pc.binary_length(words), most_digits))


def _said(words: pa.StringArray) -> pa.StringArray:
    """Make empty text null."""
    return pc.if_else(pc.equal(pc.binary_length(words), 0), None, words)


def _count(words: pa.StringArray) -> pa.Int64Array:
    return pc.fill_null(pc.cast(_said(words), pa.int64()), 0)


def _measured(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    kind, run = rows["kind"], _count(rows["run"])
    has_waited = pc.equal(kind, JobEventKind.ACTIVE.value)
    ends = pc.is_in(kind, pa.array([one.value for one in MEASURED]))
    return {
        "start": pc.cast(_count(rows["start"]), pa.int32()),
        "wait_ms": pc.if_else(has_waited, _count(rows["wait"]), None),
        "run_ms": pc.if_else(pc.or_(ends, pc.not_equal(run, 0)), run, None),
    }


class _Detail:
    """The parts of detail: which is which field goes by the kind."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._whole = rows["detail"]
        self._kind = pc.index_in(rows["kind"], pa.array([kind.value for kind in _KINDS]))
        self._parts = pc.split_pattern(self._whole, "\t")
        self._lengths = pc.list_value_length(self._parts)
        self._starts = self._parts.offsets[:-1]
        self._present = [code for code in pc.unique(self._kind).to_pylist() if code is not None]

    def columns(self) -> dict[str, pa.Array]:
        texts = ("error", "message", "frame", "worker", "host", "version", "app_version")
        return {
            "detail": self._detail(),
            "due_at": self._instants("due_ms"),
            "created_at": self._instants("created_ms"),
            **{name: self._field(name) for name in texts},
        }

    def _detail(self) -> pa.StringArray:
        in_parts = pa.array([kind in PARTS for kind in _KINDS])
        has_parts = pc.fill_null(in_parts.take(self._kind), fill_value=False)
        return _said(pc.if_else(has_parts, self._field("detail", "error"), self._whole))

    def _instants(self, name: str) -> pa.Array:
        words = self._field(name)
        numbers = pc.cast(pc.if_else(_is_number(words, MOST_DIGITS), words, None), pa.int64())
        is_instant = pc.and_(pc.greater(numbers, 0), pc.less_equal(numbers, LAST_MS))
        return pc.cast(pc.multiply(pc.if_else(is_instant, numbers, None), 1000), INSTANT)

    def _field(self, *names: str) -> pa.StringArray:
        """Return the part that has the first of these names that a kind has; null: it has none."""
        places = [_place(kind, names) for kind in _KINDS]
        if all(places[code] is None for code in self._present):
            return pa.nulls(len(self._kind), pa.string())
        place = pa.array(places, pa.int32()).take(self._kind)
        is_there = pc.less(place, self._lengths)
        return _said(
            self._parts.values.take(pc.if_else(is_there, pc.add(self._starts, place), None))
        )


def _place(kind: JobEventKind, names: Sequence[str]) -> int | None:
    parts: Sequence[Any] = PARTS.get(kind, ())
    return next((parts.index(name) for name in names if name in parts), None)
