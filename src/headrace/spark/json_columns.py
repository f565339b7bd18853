"""Columns as JSON text by expressions of Spark: exact, in UTC, and the same in every session.

What Spark would write in a form that no handler reads is refused: by its type before anything
runs, and NaN and infinities, which JSON has not, by the row that has them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headrace.errors import InvalidOption
from headrace.plain import shown

_FORMS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Of `to_json`, which leaves out nulls and microseconds, and writes local times, by default."""

_STORABLE = (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
)


def quoted(name: str) -> str:
    """Return a name as Spark reads it in one piece, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def json_of(columns: Mapping[str, Column]) -> Column:
    """Return columns as one JSON object; nulls are written."""
    fields = [column.alias(name) for name, column in columns.items()]
    return F.to_json(F.struct(*fields), _FORMS) if fields else F.lit("{}")


def check_storable(name: str, kind: DataType) -> None:
    """See that values of a type have a JSON form that handlers read.

    Raises:
        InvalidOption: they have none.
    """
    match kind:
        case StructType():
            if len(set(kind.names)) < len(kind.names):
                raise InvalidOption(f"column {shown(name)} has two fields of one name: rename one")
            for field in kind.fields:
                check_storable(f"{name}.{field.name}", field.dataType)
        case ArrayType():
            check_storable(f"{name}[]", kind.elementType)
        case MapType():
            if not isinstance(kind.keyType, StringType | IntegralType):
                raise InvalidOption(
                    f"column {shown(name)} has keys of type {kind.keyType.simpleString()}, and "
                    "those of JSON are text: make them strings"
                )
            check_storable(f"{name}[]", kind.valueType)
        case _ if not isinstance(kind, _STORABLE):
            raise InvalidOption(
                f"column {shown(name)} is of type {kind.simpleString()}, which has no JSON form "
                "that a handler reads: cast it to a string, or to a number of seconds"
            )


def has_floats(kind: DataType) -> bool:
    """Whether there may be a NaN or an infinity in values of a type."""
    match kind:
        case StructType():
            return any(has_floats(field.dataType) for field in kind.fields)
        case ArrayType():
            return has_floats(kind.elementType)
        case MapType():
            return has_floats(kind.valueType)
    return isinstance(kind, FloatType | DoubleType)


def has_no_json(column: Column, kind: DataType) -> Column:
    """Return whether a value has a NaN or an infinity in it; its type has floats."""
    match kind:
        case StructType():
            parts = [
                has_no_json(column.getField(field.name), field.dataType)
                for field in kind.fields
                if has_floats(field.dataType)
            ]
            return F.greatest(*parts, F.lit(False))  # noqa: FBT003 (a column of it)
        case ArrayType():
            element = kind.elementType
            return F.exists(column, lambda part: has_no_json(part, element))
        case MapType():
            value = kind.valueType
            return F.exists(F.map_values(column), lambda part: has_no_json(part, value))
    return F.isnan(column - column)  # of an infinity that is NaN too


def check_ordered(name: str, kind: DataType) -> None:
    """See that equal values of a type have one order of their parts.

    Raises:
        InvalidOption: there is a map in it.
    """
    match kind:
        case StructType():
            for field in kind.fields:
                check_ordered(f"{name}.{field.name}", field.dataType)
        case ArrayType():
            check_ordered(f"{name}[]", kind.elementType)
        case MapType():
            raise InvalidOption(
                f"column {shown(name)} is a map, whose entries have no order: make ids from other "
                "columns, or from array_sort(map_entries(...))"
            )


def ordered(column: Column, kind: DataType) -> Column:
    """Return a value with the fields of structs by their names, whatever their order was."""
    match kind:
        case StructType():
            fields = sorted(kind.fields, key=lambda field: field.name)
            parts = [
                ordered(column.getField(field.name), field.dataType).alias(field.name)
                for field in fields
            ]
            return F.when(column.isNotNull(), F.struct(*parts)) if parts else column
        case ArrayType():
            element = kind.elementType
            return F.transform(column, lambda part: ordered(part, element))
    return column
