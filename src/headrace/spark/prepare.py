"""Columns of jobs by expressions of Spark: arguments as JSON, ids by a hash, all in the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from headrace.errors import InvalidOption
from headrace.job import check_name, check_text
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.spark.columns import ASKED
from headrace.spark.ids import (
    Duplicates,
    column_of,
    key_names,
    refusal,
    with_id,
    with_text_id,
    without_equals,
)
from headrace.spark.json_columns import check_storable, has_floats, has_no_json, json_of, quoted

Value: TypeAlias = Column | str | int | float
"""An option of jobs: a column, the name of one, or a number for all."""

_OPTIONS = [name for name in ASKED if name not in {"task", "queue", "keep_ms", "options"}]


def prepare(
    df: DataFrame,
    *,
    task: Column | str | None = None,
    payload: Iterable[str] | Mapping[str, Column | str] | None = None,
    id: str | None = None,
    id_from: str | Sequence[str] | None = None,
    duplicates: Duplicates = "collapse",
    queue: Column | str | None = None,
    options: Mapping[str, Value] | None = None,
    salt: str | None = None,
) -> DataFrame:
    """Make of each row the columns of a job, for ``format("headrace")`` and `enqueue_dataframe`.

    Nothing runs yet, and nothing of it will run in Python. Neither the session's time zone nor
    the order of columns changes what comes out.

    Arguments go to a handler by the names of their columns, and arrive as its annotations say:

    ====================  ============================  =======================================
    Column                JSON                          Annotation
    ====================  ============================  =======================================
    string, boolean       text, true or false           ``str``, ``bool``
    whole numbers         a number                      ``int``
    float, double         a number                      ``float``
    decimal               a number with all its digits  ``Decimal`` gets it exactly, ``float``
                                                        the nearest one, and so does none
    timestamp             ``2026-01-31T12:00:00.123456Z``  ``datetime``, aware, in UTC
    timestamp_ntz         the same without ``Z``        ``datetime``, naive
    date                  ``2026-01-31``                ``date``
    binary                base64                        ``bytes``
    array                 an array                      ``list``, ``set``, ``tuple``
    struct                an object                     a dataclass, ``TypedDict``, model, ``dict``
    map                   an object                     ``dict``; keys are strings or whole numbers
    null in any           null                          ``... | None``: it is passed, not left out
    ====================  ============================  =======================================

    NaN and infinities have no JSON form: a row that has one fails the write with `InvalidRows`
    and its id. Intervals, times of day and variants are refused before: cast them.

    The id of ``id_from`` is the first half of the SHA-256 of ``{"columns":{...},"task":...}``,
    columns by name, as base64url in 22 characters. A null differs from "" and from a column that
    is not said. The same rows make the same ids in each session, so a write that is run again
    brings in nothing twice while the jobs are kept.

    Args:
        df: rows, of a batch or of a stream.
        task: the name of the task, or a column of names; default: the write says it.
        payload: names of the columns that are arguments, or a column, or the name of one, by the
            name of each argument; default: all that are not named as id or as options.
        id: the column of ids: text or whole numbers.
        id_from: columns to make ids from, if there is no such column. With neither there is none,
            and a direct write refuses that.
        duplicates: for rows whose ids are equal: ``collapse``: one job; ``keep``: a job each, by
            ``-1``, ``-2`` and so on after the id, for ``id_from``; ``refuse``: the write fails with
            `InvalidRows` and the id. The latter two shuffle by id, and need all rows at once:
            they are not for streams.
        queue: the name of the queue, or a column of names, for direct writes; default: the write
            says it.
        options: of jobs, by name: ``priority``, ``lane``, ``delay``, ``run_at``, ``expires_in``,
            ``expires_at``, ``keep``, ``max_attempts``, ``max_stalls``, ``timeout``,
            ``on_failed``, ``slots``, ``limit_keys``, ``fair_key``, as `TaskCall.options` has them,
            durations in seconds, ``limit_keys`` in JSON. A column, the name of one, or a number.
            Null: not said.
        salt: sets ids of ``id_from`` apart from those of other writes of equal rows.

    Returns:
        A DataFrame with ``id``, ``payload`` and what else was said, and no other columns.

    Raises:
        InvalidOption: an argument is not valid, a column is not there, or values of its type have
            no JSON form.
    """
    options = dict(options or {})
    _check(df, id=id, id_from=id_from, duplicates=duplicates, options=options, salt=salt)
    keys = key_names(id_from)
    named = {value for value in options.values() if isinstance(value, str)} | {id}
    said = _arguments(df, payload, leave_out=named)
    extra = _extra(df, task, queue, options)
    flat = df.select(
        *(column.alias(f"argument:{name}") for name, column in said.items()),
        *(column_of(df, name).alias(f"key:{name}") for name in keys),
        *(column.alias(name) for name, column in extra.items()),
        *([column_of(df, id).alias("id")] if id else []),
    )
    jobs = with_id(flat, keys, salt) if keys else with_text_id(flat, id)
    jobs = jobs.withColumn("payload", _payload(jobs, list(said), keys, has_id=bool(keys or id)))
    if keys or id:
        jobs = without_equals(jobs, duplicates, list(extra))
    order = [name for name in ("id", "payload", *extra) if name in jobs.columns]
    return jobs.select(*order)


def _check(
    df: DataFrame,
    *,
    id: str | None,
    id_from: object,
    duplicates: str,
    options: Mapping[str, Value],
    salt: str | None,
) -> None:
    if id is not None and id_from is not None:
        raise InvalidOption("id and id_from: say one of them")
    if duplicates not in {"collapse", "keep", "refuse"}:
        raise InvalidOption(f"duplicates={shown(duplicates)}: use collapse, keep or refuse")
    if duplicates == "keep" and id_from is None:
        raise InvalidOption("duplicates='keep' makes ids, so it needs id_from")
    if duplicates != "collapse" and df.isStreaming:
        raise InvalidOption(
            f"duplicates={duplicates!r} needs all rows at once: in a stream, say it to "
            "enqueue_batch, for each batch by itself"
        )
    if salt is not None:
        check_text(salt, what="salt")
        if id_from is None:
            raise InvalidOption("salt goes into the ids that are made, so it needs id_from")
    for name in options:
        if name not in _OPTIONS:
            meant = nearest(str(name), _OPTIONS)
            advice = f"did you mean {meant}?" if meant else f"known are {', '.join(_OPTIONS)}"
            raise InvalidOption(f"option {shown(name)} of jobs is not known: {advice}")


def _arguments(
    df: DataFrame,
    payload: Iterable[str] | Mapping[str, Column | str] | None,
    *,
    leave_out: set[str | None],
) -> dict[str, Column]:
    if payload is None:
        payload = [name for name in df.columns if name not in leave_out]
    elif isinstance(payload, str):
        payload = [payload]
    if isinstance(payload, Mapping):
        return {
            check_text(name, what="argument"): value
            if isinstance(value, Column)
            else column_of(df, value)
            for name, value in payload.items()
        }
    return {name: column_of(df, name) for name in payload}


def _extra(
    df: DataFrame,
    task: Column | str | None,
    queue: Column | str | None,
    options: Mapping[str, Value],
) -> dict[str, Column]:
    """Return what is said of jobs beside ids and arguments."""
    found: dict[str, Column] = {}
    if task is not None:
        is_column = isinstance(task, Column)
        found["task"] = task if is_column else F.lit(check_text(task, what="task"))
    if queue is not None:
        is_column = isinstance(queue, Column)
        found["queue"] = queue if is_column else F.lit(check_name(queue, what="queue"))
    for name, value in options.items():
        if isinstance(value, str):
            found[name] = column_of(df, value)
        else:
            found[name] = value if isinstance(value, Column) else F.lit(value)
    return found


def _payload(jobs: DataFrame, names: Sequence[str], keys: Sequence[str], *, has_id: bool) -> Column:
    """Return the arguments of a row as JSON; a row with floats that JSON has not fails."""
    found: dict[str, Column] = {}
    checked: dict[str, DataType] = {}
    for name in names:
        kind = checked[f"argument:{name}"] = jobs.schema[f"argument:{name}"].dataType
        check_storable(name, kind)
        found[name] = F.col(quoted(f"argument:{name}"))
    checked |= {f"key:{name}": jobs.schema[f"key:{name}"].dataType for name in keys}
    text = json_of(found)
    for source, kind in checked.items():
        if has_floats(kind):
            name = source.partition(":")[2]
            what = f"column {shown(name)} has a NaN or an infinity, which JSON has not"
            error = refusal(what, "make it null or text", has_id=has_id)
            text = F.when(has_no_json(F.col(quoted(source)), kind), error).otherwise(text)
    return text
