"""Rows become the columns of jobs: what stands in their JSON, and which ids they get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import InvalidOption
from headrace.spark import prepare
from tests.spark.support.ids import id_of

pytestmark = pytest.mark.usefixtures("compiled")


def arguments(jobs: DataFrame) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in jobs.select("payload").collect()]


def ids(jobs: DataFrame) -> list[str]:
    return [row.id for row in jobs.select("id").collect()]


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kathmandu"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


INSTANT = "timestamp'2024-07-01 12:00:00.123456Z'"


FORMS = {
    "null": ("cast(null as string)", "null"),
    "timestamp": (INSTANT, '"2024-07-01T12:00:00.123456Z"'),
    "timestamp_ntz": ("timestamp_ntz'2024-07-01 12:00:00.5'", '"2024-07-01T12:00:00.500000"'),
    "date": ("date'2024-07-01'", '"2024-07-01"'),
    "decimal": ("1.10BD", "1.10"),
    "long decimal": (
        "cast('12345678901234567890.123456789012345678' as decimal(38,18))",
        "12345678901234567890.123456789012345678",
    ),
    "long": ("9223372036854775807L", "9223372036854775807"),
    "double": ("0.1D", "0.1"),
    "binary": ("unhex('00ff')", '"AP8="'),
    "map": ("map('b', 1, 'a', null)", '{"b":1,"a":null}'),
    "map of numbers": ("map(7, 'x')", '{"7":"x"}'),
    "array": ("array(1, null)", "[1,null]"),
    "struct": (
        f"named_struct('at', {INSTANT}, 'n', null)",
        '{"at":"2024-07-01T12:00:00.123456Z","n":null}',
    ),
    "no struct": ("cast(null as struct<a: int>)", "null"),
    "text": ("concat('é\"/', char(10))", '"é\\"/\\n"'),
}


@pytest.mark.usefixtures("zone")
def test_a_value_is_written_exactly_in_each_session(spark: SparkSession) -> None:
    columns = ", ".join(f"{sql} as `{name}`" for name, (sql, _) in FORMS.items())
    [row] = prepare(spark.sql(f"select {columns}")).collect()
    written = ",".join(f'"{name}":{text}' for name, (_, text) in FORMS.items())
    assert row.payload == f"{{{written}}}"


@pytest.mark.usefixtures("zone")
def test_an_id_is_that_of_the_canonical_json(spark: SparkSession) -> None:
    df = spark.sql(
        f"select 'é' as b, {INSTANT} as a, null as c, array(named_struct('z', 1, 'y', 2)) d"
    )
    columns = {
        "a": "2024-07-01T12:00:00.123456Z",
        "b": "é",
        "c": None,
        "d": [{"z": 1, "y": 2}],
    }
    names = ["d", "b", "c", "a"]
    assert ids(prepare(df, id_from=names)) == [id_of(columns)]
    assert ids(prepare(df, id_from=names, task="send")) == [id_of(columns, task="send")]
    assert ids(prepare(df, id_from=names, task=F.lit("send"))) == [id_of(columns, task="send")]
    assert ids(prepare(df, id_from=names, salt="7")) == [id_of(columns, salt="7")]
    assert len(id_of(columns)) == 22


def test_the_order_of_columns_and_fields_does_not_change_ids(spark: SparkSession) -> None:
    one = spark.sql("select 1 as a, named_struct('x', 1, 'y', 2) as b")
    other = spark.sql("select named_struct('y', 2, 'x', 1) as b, 1 as a")
    assert ids(prepare(one, id_from=["a", "b"])) == ids(prepare(other, id_from=["b", "a"]))


def test_null_differs_from_empty_and_from_a_column_that_is_not_said(spark: SparkSession) -> None:
    df = spark.createDataFrame([("x", None), ("x", "")], "a string, b string")
    found = ids(prepare(df, id_from=["a", "b"])) + ids(prepare(df.limit(1), id_from="a"))
    assert len(set(found)) == 3


def test_what_is_neither_id_nor_option_is_an_argument(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [(7, "a", 3, 1.5)], "key long, to string, `the.rank` int, wait float"
    )
    jobs = prepare(
        df, task="send", id="key", queue="mails", options={"delay": "wait", "priority": 2}
    )
    assert jobs.dtypes == [
        ("id", "string"),
        ("payload", "string"),
        ("task", "string"),
        ("queue", "string"),
        ("delay", "float"),
        ("priority", "int"),
    ]
    assert [tuple(row) for row in jobs.collect()] == [
        ("7", '{"to":"a","the.rank":3}', "send", "mails", 1.5, 2)
    ]
    said = prepare(df, payload={"who": "to", "twice": F.col("key") * 2}, id_from="key")
    assert arguments(said) == [{"who": "a", "twice": 14}]
    assert arguments(prepare(df, payload=["to"])) == [{"to": "a"}]
    assert arguments(prepare(df, payload=[])) == [{}]


def test_equal_rows_may_be_kept_apart_in_the_same_way_each_time(spark: SparkSession) -> None:
    rows = [("a", 1), ("a", 2), ("b", 1), ("a", 2)]
    df = spark.createDataFrame(rows, "user string, n int")

    def numbered(df: DataFrame) -> set[tuple[str, ...]]:
        jobs = prepare(df, id_from="user", payload=["n"], duplicates="keep")
        return {(row.id, row.payload) for row in jobs.collect()}

    a, b = id_of({"user": "a"}), id_of({"user": "b"})
    expected = {(f"{a}-1", '{"n":1}'), (f"{a}-2", '{"n":2}'), (f"{a}-3", '{"n":2}')}
    assert (
        numbered(df)
        == numbered(df.orderBy("n", ascending=False))
        == {
            *expected,
            (f"{b}-1", '{"n":1}'),
        }
    )


def test_equal_rows_may_be_refused_by_their_id(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a",), ("b",), ("a",), (None,), (None,)], "user string")
    with pytest.raises(Exception, match=r"InvalidRows: rows have one id, in the row of id 'a'"):
        prepare(df, id="user", duplicates="refuse").collect()
    assert len(ids(prepare(df.distinct(), id="user", duplicates="refuse"))) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "double('NaN')",
        "float('-Infinity')",
        "array(0D, null, double('Infinity'))",
        "map('a', double('NaN'))",
        "named_struct('a', null, 'b', array(named_struct('c', double('NaN'))))",
    ],
)
def test_what_json_has_not_is_refused_by_the_id_of_its_row(sql: str, spark: SparkSession) -> None:
    df = spark.sql(f"select 'row-7' as id, {sql} as x")
    expected = (
        r"headrace\.errors\.InvalidRows: column 'x' has a NaN or an infinity, which JSON has not, "
        "in the row of id 'row-7': make it null or text"
    )
    with pytest.raises(Exception, match=expected):
        prepare(df, id="id").collect()


def test_ids_are_not_made_of_what_json_has_not(spark: SparkSession) -> None:
    df = spark.sql("select double('NaN') as x, 1 as y")
    with pytest.raises(Exception, match="column 'x' has a NaN or an infinity"):
        prepare(df, id_from=["x"], payload=["y"]).collect()


def test_floats_that_json_has_pass(spark: SparkSession) -> None:
    df = spark.sql("select cast(null as array<double>) as a, array(1D, null) as b, null as c")
    assert arguments(prepare(df)) == [{"a": None, "b": [1.0, None], "c": None}]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"id": "key", "id_from": "key"}, "say one of them"),
        ({"id": "kay"}, "no column 'kay': did you mean 'key'"),
        ({"id": "half"}, "'half' is of type double, and ids are text: cast it"),
        ({"id_from": []}, "id_from names no column"),
        ({"id_from": "tags"}, "'tags' is a map, whose entries have no order"),
        ({"id": "key", "duplicates": "keep"}, "needs id_from"),
        ({"id": "key", "duplicates": "drop"}, "use collapse, keep or refuse"),
        ({"salt": "x"}, "it needs id_from"),
        ({"id_from": "key", "salt": ""}, "salt '' is not valid"),
        ({"options": {"delya": 3}}, "'delya' of jobs is not known: did you mean delay"),
        ({"options": {"delay": "wiat"}}, "no column 'wiat'"),
        ({"task": ""}, "task '' is not valid"),
        ({"queue": "a b"}, "queue 'a b' is not valid"),
        ({"payload": {"": "key"}}, "argument '' is not valid"),
        ({"payload": ["span"]}, "'span' is of type interval .*no JSON form"),
        ({"payload": ["days"]}, "'days' has keys of type date"),
        ({"payload": {"x": "spans"}}, r"'x\[\]' is of type interval"),
    ],
)
def test_what_is_not_valid_is_said_before_anything_runs(
    said: dict[str, Any], message: str, spark: SparkSession
) -> None:
    df = spark.sql(
        "select 1 as key, 0.5D as half, map('a', 1) as tags, interval 1 day as span, "
        "map(date'2024-07-01', 1) as days, array(interval 1 day) as spans"
    )
    with pytest.raises(InvalidOption, match=message):
        prepare(df, **said)


def test_two_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    df = spark.sql("select 1 as a, 2 as a, 3 as b")
    with pytest.raises(InvalidOption, match="2 columns 'a': rename all but one"):
        prepare(df)
    assert arguments(prepare(df, payload="b")) == [{"b": 3}]


def test_a_stream_is_prepared_row_by_row(spark: SparkSession) -> None:
    df = spark.readStream.format("rate").load()
    assert prepare(df, id_from="value", options={"run_at": "timestamp"}).dtypes == [
        ("id", "string"),
        ("payload", "string"),
        ("run_at", "timestamp"),
    ]
    with pytest.raises(InvalidOption, match="needs all rows at once: in a stream, say it to"):
        prepare(df, id_from="value", duplicates="keep")
