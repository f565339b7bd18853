"""Rows become jobs, or a row that can't is named before the first of its batch is."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from headrace import InvalidRows
from headrace.clock import instant_ms
from headrace.job import PAYLOAD_LIMIT_BYTES
from headrace.limit import Gate, read_gates
from headrace.request import JobRequest
from headrace.spark.options import WriteOptions
from headrace.spark.rows import JobRows
from headrace.stored_options import decode_stored

OPTIONS = WriteOptions(task="load", queue="a")
AT = datetime(2030, 1, 31, 12, 0, 0, 1_500, tzinfo=UTC)
INSTANTS = pa.timestamp("us", "America/New_York")


def batch(**columns: Any) -> pa.RecordBatch:
    arrays = [pa.array(column) for column in columns.values()]
    return pa.record_batch(arrays, names=list(columns))


def jobs(columns: pa.RecordBatch, options: WriteOptions = OPTIONS) -> list[JobRequest]:
    return [job for call in JobRows(options).calls(columns) for job in call]


def one(*, write: WriteOptions = OPTIONS, **columns: Any) -> JobRequest:
    """Return the only job of a batch of one row."""
    arrays = {name: [value] for name, value in columns.items()}
    [job] = jobs(batch(**{"id": ["1"], "payload": ["{}"], **arrays}), write)
    return job


def test_rows_of_one_kind_are_plain_jobs_that_replace_nothing() -> None:
    found = jobs(batch(id=["1", "ü"], payload=['{"x":1}', '{"x":"ü"}']))
    assert found == [
        JobRequest("1", "a", "load", b'{"x":1}', is_plain=True, replaces_ended=False),
        JobRequest("ü", "a", "load", '{"x":"ü"}'.encode(), is_plain=True, replaces_ended=False),
    ]
    assert one(write=msgspec.structs.replace(OPTIONS, replaces_ended=True)).replaces_ended


def test_columns_go_by_the_names_that_the_options_say() -> None:
    options = msgspec.structs.replace(OPTIONS, id_column="order", payload_column="body")
    [job] = jobs(batch(order=["7"], body=[b"{}"]), options)
    assert (job.id, job.payload) == ("7", b"{}")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_a_payload_may_be_text_or_bytes(kind: pa.DataType) -> None:
    columns = batch(id=["1"], payload=pa.array(["{}"]).cast(kind))
    assert [job.payload for job in jobs(columns)] == [b"{}"]


def test_without_ids_each_row_gets_a_new_one() -> None:
    found = jobs(batch(payload=["{}", "{}"]))
    assert found[0].id != found[1].id
    assert all(job.is_new_id and job.is_plain for job in found)


def test_null_asks_for_nothing() -> None:
    columns = {
        "task": pa.array([None, "other"]),
        "priority": pa.array([None, 7], pa.int32()),
        "delay": pa.array([None, 1.5]),
    }
    first, second = jobs(batch(id=["1", "2"], payload=["{}", "{}"], **columns))
    assert first == JobRequest("1", "a", "load", b"{}", is_plain=True, replaces_ended=False)
    assert (second.task, second.priority, second.delay_ms) == ("other", 7, 1_500)
    assert not second.is_plain


def test_a_tier_of_its_own_leaves_a_job_plain() -> None:
    assert one(priority=9).is_plain


@pytest.mark.parametrize(
    ("column", "value", "field", "kept"),
    [
        ("delay", 2, "delay_ms", 2_000),
        ("delay", Decimal("0.25"), "delay_ms", 250),
        ("run_at", pa.scalar(AT, INSTANTS), "run_at_ms", instant_ms(AT, name="at")),
        ("expires_in", 60.0, "expires_in_ms", 60_000),
        ("expires_at", pa.scalar(AT, INSTANTS), "expires_at_ms", instant_ms(AT, name="at")),
        ("keep", 86_400.0, "keep_ms", 86_400_000),
    ],
    ids=["delay", "decimal", "run_at", "expires_in", "expires_at", "keep"],
)
def test_what_the_storage_acts_on(column: str, value: Any, field: str, kept: int) -> None:
    assert getattr(one(**{column: value}), field) == kept


def test_what_the_worker_acts_on() -> None:
    assert decode_stored(one(max_attempts=5, timeout=0.5).options) == {
        "max_attempts": 5,
        "timeout_ms": 500,
    }


def test_what_another_job_asked_for_is_asked_for_again_but_for_what_columns_say() -> None:
    stored = '{"max_attempts":5,"keep_ms":7000,"headers":{"to":"us"},"unknown":1}'
    job = one(options=stored, lane="process", timeout=0.5, max_attempts=2)
    assert decode_stored(job.options) == {
        "max_attempts": 2,
        "keep_ms": 7000,
        "headers": {"to": "us"},
        "timeout_ms": 500,
    }
    assert (job.lane, job.keep_ms, job.is_plain) == ("process", 7000, False)
    assert one(options=None, lane=None).is_plain
    assert one(options="{}", lane="default").is_plain


def test_another_jobs_keep_and_fail_task_are_asked_for_again() -> None:
    job = one(keep_ms=5000, on_failed="refund", options='{"keep_ms":7000}')
    assert (job.keep_ms, job.on_failed) == (5000, "refund")
    assert one(keep_ms=5000, keep=1).keep_ms == 1000
    assert one(keep_ms=0).keep_ms == 0


def test_limits_are_met_by_the_keys_that_rows_name() -> None:
    job = one(limit_keys='{"stripe": null, "load:customer": 42, "région": "é"}')
    assert read_gates(job.gates) == [
        Gate("stripe", ""),
        Gate("load:customer", "42"),
        Gate("région", "é"),
    ]
    assert not job.is_plain
    assert one(limit_keys="{}").is_plain
    assert read_gates(one(fair_key="ada").gates) == [Gate("fair", "ada")]
    assert read_gates(one(fair_key="").gates) == [Gate("fair", "")]


def test_a_keep_is_the_results_too_where_it_is_shorter() -> None:
    assert decode_stored(one(keep=60.0).options) == {
        "result_ttl_ms": 60_000,
        "keep_ms": 60_000,
    }


def test_calls_have_as_many_jobs_as_the_option_says() -> None:
    columns = batch(id=[str(n) for n in range(25)], payload=["{}"] * 25)
    rows = JobRows(msgspec.structs.replace(OPTIONS, batch_size=10))
    assert [len(call) for call in rows.calls(columns)] == [10, 10, 5]


def test_a_call_has_no_more_bytes_than_one_may_bring() -> None:
    big = '{"x":"' + "x" * (PAYLOAD_LIMIT_BYTES - 8) + '"}'
    columns = batch(id=[str(n) for n in range(9)], payload=[big] * 9)
    assert [len(call) for call in JobRows(OPTIONS).calls(columns)] == [4, 4, 1]


def test_a_call_has_one_queue_and_jobs_of_it_stay_in_order() -> None:
    columns = batch(id=[str(n) for n in range(9)], payload=["{}"] * 9, queue=["b", None, "c"] * 3)
    calls = [(call[0].queue, [job.id for job in call]) for call in JobRows(OPTIONS).calls(columns)]
    assert calls == [("b", ["0", "3", "6"]), ("c", ["2", "5", "8"]), ("a", ["1", "4", "7"])]


LONG = "x" * 257


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"id": None}, r"1 of 3 rows of a batch have no id: fill the column 'id', or make ids"),
        ({"id": ""}, r"job id '' is not valid: use 1 to 256 bytes"),
        ({"id": LONG}, r"job id 'x+'… is not valid: use 1 to 256 bytes"),
        ({"id": "ü" * 129}, r"job id 'ü+'… is not valid: use 1 to 256 bytes"),
        ({"id": "a\nb"}, r"job id 'a\\nb' is not valid: .* without control characters"),
        ({"id": "a\x85"}, r"job id 'a\\x85' is not valid: .* without control characters"),
        ({"payload": None}, r"the row with id '7' has no payload: .* a JSON object"),
        ({"payload": "[1]"}, r"the payload of the row with id '7' is no JSON object"),
        ({"payload": ""}, r"the payload of the row with id '7' is no JSON object"),
        (
            {"payload": "{" + "x" * PAYLOAD_LIMIT_BYTES},
            r"the payload of the row with id '7' is 1,048,577 bytes, the limit is 1,048,576: store",
        ),
        ({"task": "a\tb"}, r"the row with id '7': task name 'a\\tb' is not valid"),
        ({"queue": "a b"}, r"the row with id '7': queue 'a b' is not valid"),
        ({"priority": 10}, r"the row with id '7': priority=10 is out of bounds: use 0 to 9"),
        ({"delay": -1.0}, r"the row with id '7': delay=-1.0 is out of bounds"),
        ({"delay": float("nan")}, r"the row with id '7': delay=nan is out of bounds"),
        ({"expires_in": 0.0}, r"the row with id '7': expires=0.0 is out of bounds"),
        ({"lane": "a b"}, r"the row with id '7': lane 'a b' is not valid"),
        ({"options": "{"}, r"the row with id '7': the options can't be read"),
        ({"options": '{"keep_ms":-1}'}, r"the row with id '7': keep_ms=-1 is out of bounds"),
        ({"keep": -1.0}, r"the row with id '7': keep=-1.0 is out of bounds"),
        ({"max_attempts": 0}, r"the row with id '7': max_attempts=0 is out of bounds"),
        ({"timeout": 0.0}, r"the row with id '7': timeout=0.0 is out of bounds"),
        ({"limit_keys": "x"}, r"the row with id '7': limit_keys='x' is no JSON object"),
        ({"limit_keys": "[1]"}, r"the row with id '7': limit_keys='\[1\]' is no JSON object"),
        ({"limit_keys": "[" * 9_999}, r"the row with id '7': limit_keys='\[+'… is no JSON object"),
        (
            {"limit_keys": '{"till": 1.5}'},
            r"the row with id '7': limit_keys\['till'\]=1.5 is no key of a limit or of turns",
        ),
        ({"limit_keys": '{"": 1}'}, r"the row with id '7': limit name '' is not valid"),
        (
            {"limit_keys": '{"a":1,"b":1,"c":1,"d":1,"e":1}'},
            r"the row with id '7': 5 limits are too many: a job has 4 at most",
        ),
        (
            {"run_at": pa.scalar(2**62, INSTANTS)},
            r"the row with id '7': run_at is out of bounds: use 1970 to ten years from now",
        ),
        (
            {"delay": 1.0, "run_at": pa.scalar(AT, INSTANTS)},
            r"the row with id '7': delay=1.0 and run_at=.*: say one of them",
        ),
        (
            {"expires_in": 1.0, "expires_at": pa.scalar(AT, INSTANTS)},
            r"the row with id '7': expires_in and expires_at: say one of them",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "+".join(value),
)
def test_a_row_that_cannot_be_a_job_is_named_before_the_first_call(
    bad: dict[str, Any], said: str
) -> None:
    names = ["id", "payload", *(name for name in bad if name not in ("id", "payload"))]
    good = {"id": "1", "payload": "{}"}
    columns = {name: [good.get(name), good.get(name), bad.get(name)] for name in names}
    columns["id"] = ["1", "2", bad.get("id", "7")]
    if "payload" not in bad:
        columns["payload"] = ["{}"] * 3
    with pytest.raises(InvalidRows, match=said):
        next(JobRows(msgspec.structs.replace(OPTIONS, batch_size=1)).calls(batch(**columns)))


def test_a_row_without_an_id_is_named_by_its_place() -> None:
    with pytest.raises(InvalidRows, match="the payload of row 2 of 2 of a batch is no JSON object"):
        jobs(batch(payload=["{}", "x"]))


def test_a_row_of_no_task_is_named() -> None:
    options = msgspec.structs.replace(OPTIONS, task="")
    with pytest.raises(InvalidRows, match="the row with id '2': no task is named: fill the column"):
        jobs(batch(id=["1", "2"], payload=["{}"] * 2, task=["load", None]), options)


def test_a_text_that_is_no_utf_8_is_refused() -> None:
    no_text = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(InvalidRows, match="the column 'id' has a text that is no UTF-8"):
        jobs(batch(id=no_text, payload=["{}"]))
    with pytest.raises(InvalidRows, match="the column 'task' has a text that is no UTF-8"):
        jobs(batch(id=["1"], payload=["{}"], task=no_text))


def test_no_payload_is_in_an_error() -> None:
    with pytest.raises(InvalidRows) as caught:
        jobs(batch(id=["1"], payload=["secret"]))
    assert "secret" not in str(caught.value)


def test_an_empty_batch_makes_no_call() -> None:
    empty = pa.array([], pa.string())
    assert list(JobRows(OPTIONS).calls(batch(id=empty, payload=empty))) == []
