"""Ids of jobs that rows have or that are made of them, and what becomes of rows of one id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from headrace.errors import InvalidOption
from headrace.nearest import nearest
from headrace.plain import plain_text, shown
from headrace.spark.json_columns import check_ordered, check_storable, json_of, ordered, quoted

Duplicates = Literal["collapse", "keep", "refuse"]
"""What becomes of rows whose ids are equal."""

_ID_BYTES = 16


def column_of(df: DataFrame, name: str | None) -> Column:
    """Return a column by its whole name, dots and all.

    Raises:
        InvalidOption: there is none of that name, or more than one.
    """
    text = plain_text(name)
    count = df.columns.count(text) if text is not None else 0
    if text is None or not count:
        meant = nearest(text or "", df.columns)
        advice = f"did you mean {meant!r}?" if meant else f"there are {', '.join(df.columns)}"
        raise InvalidOption(f"there is no column {shown(name)}: {advice}")
    if count > 1:
        raise InvalidOption(f"there are {count} columns {text!r}: rename all but one of them")
    return F.col(quoted(text))


def key_names(id_from: str | Sequence[str] | None) -> list[str]:
    """Return the columns that ids are made of, by name; none if they are not made.

    Raises:
        InvalidOption: none is said.
    """
    if id_from is None:
        return []
    names = [id_from] if isinstance(id_from, str) else sorted(set(id_from))
    if not names:
        raise InvalidOption("id_from names no column: name those that tell rows apart")
    return names


def with_id(flat: DataFrame, keys: Sequence[str], salt: str | None) -> DataFrame:
    """Add the id that a row's columns make, which are called ``key:...`` there."""
    made_of = {name: f"key:{name}" for name in keys}
    task = F.col("task") if "task" in flat.columns else F.lit(None)
    return flat.withColumn("id", hashed(flat, made_of, task=task, salt=salt))


def hashed(df: DataFrame, keys: Mapping[str, str], *, task: Column, salt: str | None) -> Column:
    """Return the id that columns make.

    Args:
        df: has the columns.
        keys: the column of each name that goes into it.
        task: the name of the task, or null.
        salt: as for `prepare`.

    Raises:
        InvalidOption: no ids can be made of values of their types.
    """
    parts: dict[str, Column] = {}
    for name, source in sorted(keys.items()):
        kind = df.schema[source].dataType
        check_storable(name, kind)
        check_ordered(name, kind)
        parts[name] = ordered(F.col(quoted(source)), kind)
    whole = {
        "columns": F.struct(*(column.alias(name) for name, column in parts.items())),
        **({} if salt is None else {"salt": F.lit(salt)}),
        "task": task,
    }
    digest = F.substring(F.sha2(json_of(whole), 256), 1, 2 * _ID_BYTES)
    # Without its padding, and in letters that need no quoting in a URL.
    return F.translate(F.base64(F.unhex(digest)), "+/=", "-_")


def with_text_id(flat: DataFrame, name: str | None) -> DataFrame:
    """Make text of the ids that the rows have."""
    if name is None:
        return flat
    kind = flat.schema["id"].dataType
    if not isinstance(kind, StringType | IntegralType):
        raise InvalidOption(
            f"column {shown(name)} is of type {kind.simpleString()}, and ids are text: cast it to "
            "a string"
        )
    return flat.withColumn("id", F.col("id").cast("string"))


def without_equals(jobs: DataFrame, duplicates: Duplicates, extra: Sequence[str]) -> DataFrame:
    """Do with rows of one id what ``duplicates`` says."""
    same = Window.partitionBy("id")
    if duplicates == "keep":
        # Rows that differ elsewhere get the same numbers at each run by this order.
        number = F.row_number().over(same.orderBy("payload", *extra))
        return jobs.withColumn("id", F.concat("id", F.lit("-"), number.cast("string")))
    if duplicates == "refuse":
        count = F.count("id").over(same)  # of null none, which the write refuses
        error = refusal("rows have one id", "make ids from columns that differ", has_id=True)
        return jobs.withColumn("id", F.when(count > 1, error).otherwise(F.col("id")))
    return jobs


def refusal(what: str, advice: str, *, has_id: bool) -> Column:
    """Return an expression that fails the write with an error of ours, in one line."""
    begin = F.lit(f"headrace.errors.InvalidRows: {what}")
    where = F.coalesce(F.concat(F.lit(", in the row of id '"), F.col("id"), F.lit("'")), F.lit(""))
    return F.raise_error(F.concat(begin, *([where] if has_id else []), F.lit(f": {advice}")))
