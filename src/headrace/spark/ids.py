"""Ids of jobs that rows have or that are made of them, and what becomes of rows of one id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from headrace.errors import InvalidOption
from headrace.plain import shown
from headrace.spark.json_columns import check_ordered, check_storable, json_of, ordered, quoted

Duplicates = Literal["collapse", "keep", "refuse"]
"""What becomes of rows whose ids are equal."""

_ID_BYTES = 16


def with_id(flat: DataFrame, keys: Sequence[str], salt: str | None) -> DataFrame:
    """Add the id that a row's columns make."""
    parts: dict[str, Column] = {}
    for name in keys:
        source = f"key:{name}"
        kind = flat.schema[source].dataType
        check_storable(name, kind)
        check_ordered(name, kind)
        parts[name] = ordered(F.col(quoted(source)), kind)
    task = F.col("task") if "task" in flat.columns else F.lit(None)
    whole = {
        "columns": F.struct(*(column.alias(name) for name, column in parts.items())),
        **({} if salt is None else {"salt": F.lit(salt)}),
        "task": task,
    }
    digest = F.substring(F.sha2(json_of(whole), 256), 1, 2 * _ID_BYTES)
    # Without its padding, and in letters that need no quoting in a URL.
    return flat.withColumn("id", F.translate(F.base64(F.unhex(digest)), "+/=", "-_"))


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
