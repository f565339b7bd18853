"""Rows become jobs: each Arrow batch is checked as a whole before the first of its jobs is made.

Columns are checked by Arrow; what rows ask for, once for each combination of it. The JSON of a
payload is not parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from headrace.errors import InvalidArguments, InvalidOption, InvalidRows
from headrace.job import (
    DEFAULT_LANE,
    ID_LIMIT_BYTES,
    PAYLOAD_LIMIT_BYTES,
    check_name,
    check_text,
    new_job_id,
)
from headrace.options import OPTIONS, JobOptions
from headrace.plain import shown
from headrace.request import JobRequest, asked
from headrace.settings import TaskSettings
from headrace.spark.columns import ASKED, INSTANT, TEXT
from headrace.spark.options import WriteOptions
from headrace.storage.batches import batches
from headrace.stored_options import check_stored, decode_any, decode_stored, encode_all
from headrace.template import JobTemplate

T = TypeVar("T")
LaneOf = Callable[[str, str], str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROL = r"[\x00-\x1f\x7f-\x{9f}]"
_APART = {"task", "lane", "keep_ms", "options"}
"""Columns that are no options of a call."""

_REST = JobRequest.__struct_fields__[4:]


def _default_lane(_queue: str, _task: str) -> str:
    return DEFAULT_LANE


class JobRows:
    """Makes jobs of the rows of Arrow batches.

    Args:
        options: of the write; the columns were checked.
        lane_of: from a queue and a task to its lane.
    """

    def __init__(self, options: WriteOptions, lane_of: LaneOf = _default_lane) -> None:
        self._options = options
        self._lane_of = lane_of

    def calls(self, batch: pa.RecordBatch) -> Iterator[Sequence[JobRequest]]:
        """Yield the jobs of a batch in their order, as many of a queue as one call may bring.

        Raises:
            InvalidRows: one row can't become a job; then none of the batch does.
        """
        if "queue" in batch.schema.names:
            # Those of one queue stay in their order, and do not take a call each.
            batch = batch.take(pc.sort_indices(batch.column("queue")))
        checked = _Batch(batch, self._options, self._lane_of)
        size = self._options.batch_size
        for first in range(0, batch.num_rows, size):
            for _, jobs in groupby(checked.jobs(first, size), attrgetter("queue")):
                yield from batches(list(jobs), _payload_bytes)


class _Batch:
    """One batch, checked as a whole."""

    def __init__(self, batch: pa.RecordBatch, options: WriteOptions, lane_of: LaneOf) -> None:
        self._options = options
        self._lane_of = lane_of
        self._rows = batch.num_rows
        self._columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        self._ids = self._columns.get(options.id_column)
        if self._ids is not None:
            self._check_ids(self._ids)
        self._payloads = self._checked_payloads()
        self._names = [name for name in ASKED if name in self._columns]
        self._said = list(zip(*map(self._values, self._names), strict=True))
        self._blanks = self._made_blanks()

    def jobs(self, first: int, most: int) -> list[JobRequest]:
        """Return the jobs of some rows."""
        payloads = self._payloads.slice(first, most).to_pylist()
        if self._ids is None:
            ids = [new_job_id() for _ in payloads]
        else:
            ids = self._ids.slice(first, most).to_pylist()
        if not self._names:
            return _alike(self._blanks[()], ids, payloads)
        blanks = map(self._blanks.__getitem__, self._said[first : first + most])
        return [
            replace(blank, id=job_id, payload=payload)
            for blank, job_id, payload in zip(blanks, ids, payloads, strict=True)
        ]

    def _check_ids(self, ids: pa.Array) -> None:
        if ids.null_count:
            raise InvalidRows(
                f"{ids.null_count:,} of {self._rows:,} rows of a batch have no id: fill the column "
                f"{shown(self._options.id_column)}, or make ids by prepare(df, id_from=[...])"
            )
        self._check_encoding(self._options.id_column)
        size = pc.binary_length(ids)
        is_of_size = pc.and_(pc.greater(size, 0), pc.less_equal(size, ID_LIMIT_BYTES))
        is_bad = pc.or_(pc.invert(is_of_size), pc.match_substring_regex(ids, _CONTROL))
        if (index := _first(is_bad)) is not None:
            try:
                check_text(ids[index].as_py(), what="job id")
            except InvalidOption as error:
                raise InvalidRows(f"{error}, as prepare(df, id_from=[...]) makes it") from None

    def _checked_payloads(self) -> pa.Array:
        payloads = self._columns[self._options.payload_column]
        if (index := _first(pc.is_null(payloads))) is not None:
            raise InvalidRows(
                f"{self._row(index)} has no payload: the arguments of a job are a JSON object, "
                "{} if there are none"
            )
        sizes = pc.binary_length(payloads)
        if (index := _first(pc.greater(sizes, PAYLOAD_LIMIT_BYTES))) is not None:
            raise InvalidRows(
                f"the payload of {self._row(index)} is {sizes[index].as_py():,} bytes, the limit "
                f"is {PAYLOAD_LIMIT_BYTES:,}: store the data elsewhere and pass their key"
            )
        if not self._options.as_it_was:
            self._check_objects(payloads)
        is_large = payloads.type in (pa.large_string(), pa.large_binary())
        return payloads.cast(pa.large_binary() if is_large else pa.binary())

    def _check_objects(self, payloads: pa.Array) -> None:
        # The rest of it is for the worker to read: to parse each would cost more than all else.
        if (index := _first(pc.invert(pc.starts_with(payloads, "{")))) is not None:
            raise InvalidRows(
                f"the payload of {self._row(index)} is no JSON object: it has to begin with a "
                "brace, as what prepare(...) or to_json(struct(...)) makes does"
            )

    def _values(self, name: str) -> list[Any]:
        kind, column = ASKED[name], self._columns[name]
        if kind is TEXT:
            self._check_encoding(name)
        elif kind is INSTANT:
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        return column.cast(kind.read_as, safe=False).to_pylist()

    def _made_blanks(self) -> dict[tuple[Any, ...], JobRequest]:
        """Return a job without id and payload for each combination of what rows ask for."""
        if not self._names:
            return {(): self._blank({})}
        blanks: dict[tuple[Any, ...], JobRequest] = {}
        for index, said in enumerate(self._said):
            if said not in blanks:
                asked_for = dict(zip(self._names, said, strict=True))
                blanks[said] = self._of_row(index, partial(self._blank, asked_for))
        return blanks

    def _blank(self, said: Mapping[str, Any]) -> JobRequest:
        task = self._options.task or None
        if said.get("task") is not None:
            task = said["task"]
        if task is None:
            raise InvalidOption("no task is named: fill the column 'task', or say the option task")
        settings = TaskSettings(queue=self._options.queue)
        template = JobTemplate(check_text(task, what="task name"), settings, _job_options(said))
        blank = _as_another(template.blank, said, is_as_it_was=self._options.as_it_was)
        lane = said.get("lane")
        if lane is None:
            lane = self._lane_of(blank.queue, blank.task)
        blank = replace(blank, lane=check_name(lane, what="lane"))
        return replace(
            blank,
            is_new_id=self._ids is None,
            is_plain=not asked(blank),
            replaces_ended=self._options.replaces_ended,
        )

    def _of_row(self, index: int, check: Callable[[], T]) -> T:
        try:
            return check()
        except (InvalidArguments, InvalidOption) as error:
            raise InvalidRows(f"{self._row(index)}: {error}") from None

    def _row(self, index: int) -> str:
        if self._ids is None:
            return f"row {index + 1:,} of {self._rows:,} of a batch"
        return f"the row with id {shown(self._ids[index].as_py())}"

    def _check_encoding(self, name: str) -> None:
        try:
            self._columns[name].validate(full=True)
        except pa.ArrowInvalid:
            raise InvalidRows(
                f"the column {shown(name)} has a text that is no UTF-8, as a cast from binary "
                "makes it: use base64(...) or hex(...) of the binary"
            ) from None


def _alike(blank: JobRequest, ids: list[str], payloads: list[bytes]) -> list[JobRequest]:
    """Return jobs that differ in id and payload alone, at a third of the time of a copy each."""
    rest = [repeat(getattr(blank, name)) for name in _REST]
    return list(map(JobRequest, ids, repeat(blank.queue), repeat(blank.task), payloads, *rest))


def _job_options(said: Mapping[str, Any]) -> JobOptions:
    """Return what a row asks for as a call of a task would say it."""
    given = {name: said[name] for name in said if said[name] is not None and name not in _APART}
    if "expires_in" in given and "expires_at" in given:
        raise InvalidOption("expires_in and expires_at: say one of them")
    for name in ("run_at", "expires_at"):
        if name in given:
            given[name] = _instant(name, given[name])
    for name in ("expires_in", "expires_at"):
        if name in given:
            given["expires"] = given.pop(name)
    if "limit_keys" in given:
        given["limit_keys"] = _limit_keys(given["limit_keys"])
    return cast(JobOptions, given)


def _limit_keys(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise InvalidOption(
            f"limit_keys={shown(text)} is no JSON object of the keys of limits, by their names"
        ) from None


def _as_another(blank: JobRequest, said: Mapping[str, Any], *, is_as_it_was: bool) -> JobRequest:
    """Return a job that asks for what another one did, where nothing else is said of it."""
    stored: dict[str, Any] = {}
    if said.get("options") is not None:
        options = said["options"].encode()
        stored = decode_any(options if is_as_it_was else check_stored(options))
        blank = replace(blank, options=encode_all({**stored, **decode_stored(blank.options)}))
    if said.get("keep") is not None:
        return blank
    if said.get("keep_ms") is not None:
        return replace(blank, keep_ms=OPTIONS["keep"].check(said["keep_ms"]))
    return replace(blank, keep_ms=stored.get("keep_ms", blank.keep_ms))


def _instant(name: str, at_us: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:
        raise InvalidOption(f"{name} is out of bounds: use 1970 to ten years from now") from None


def _first(is_bad: pa.Array) -> int | None:
    """Return the place of the first true value."""
    found: list[int] = pc.indices_nonzero(is_bad)[:1].to_pylist()
    return found[0] if found else None


def _payload_bytes(job: JobRequest) -> int:
    return len(job.payload)
