"""What JSON can hold where a type is said: bytes, paths, and keys that are no text come back too.

Types are read from msgspec. A value of another type than is said passes for what it is: to refuse
it is for who reads it.
"""

from __future__ import annotations

import typing
import uuid
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from msgspec import inspect as kinds
from msgspec.inspect import Field, Type

from headrace.conversions import Conversions
from headrace.json_values import at, check, check_depth, check_key

_ANY = kinds.AnyType()
_KEYS: dict[type[Type], type] = {
    kinds.FloatType: float,
    kinds.BytesType: bytes,
    kinds.UUIDType: uuid.UUID,
    kinds.DecimalType: Decimal,
    kinds.DateTimeType: datetime,
    kinds.DateType: date,
    kinds.TimeType: time,
    kinds.TimeDeltaType: timedelta,
}
"""Keys that come back from text, beside text and whole numbers."""


def kind_of(annotation: Any, conversions: Conversions) -> Type | None:
    """Return the kind of values that an annotation says, None if plain data are all there is to it.

    Raises:
        TypeError: such values can't be stored; the text says why, and what to do.
        NameError: a class that it names is not defined yet.
    """
    kind = kinds.type_info(annotation)
    is_plain = True
    for part in _reachable(kind):
        _refuse(part, conversions)
        is_plain = is_plain and not _is_special(part)
    return None if is_plain else kind


def _reachable(kind: Type) -> Iterator[Type]:
    """Yield a kind and all that it is made of, each once: a class may hold itself."""
    seen: dict[int, Type] = {}
    waiting = [kind]
    while waiting:
        last = waiting.pop()
        if id(last) not in seen:
            seen[id(last)] = last
            yield last
            waiting.extend(_parts(last))


def _parts(kind: Type) -> Iterator[Type]:
    for name in kind.__struct_fields__:
        found = getattr(kind, name)
        for part in found if isinstance(found, tuple) else (found,):
            if isinstance(part, Field):
                yield part.type
            elif isinstance(part, Type):
                yield part


def _refuse(kind: Type, conversions: Conversions) -> None:
    match kind:
        case kinds.ExtType():
            raise TypeError("JSON has no such type")
        case kinds.DictType(key_type=kinds.CustomType(cls=cls)):
            raise TypeError(f"{cls.__name__} can't be a key of a JSON object: take its text")
        case kinds.CustomType(cls=cls) if cls is not object and not conversions.can_store(cls):
            raise TypeError(_advice(cls))


def _advice(cls: type) -> str:
    if hasattr(cls, "__next__") or hasattr(cls, "__anext__"):
        return "what is iterated once can't be stored: use a list, or context.emit for pieces"
    if cls.__module__ == "collections.abc" and hasattr(cls, "__iter__"):
        return f"{cls.__name__} is too little to be read as: use a list, a set or a dict"
    return (
        f"{cls.__qualname__} has no JSON form: use plain data, a dataclass, a msgspec struct or a "
        "pydantic model, or say how by App(encoders=..., decoders=...)"
    )


def _is_special(kind: Type) -> bool:
    match kind:
        case kinds.BytesType() | kinds.ByteArrayType() | kinds.MemoryViewType():
            return True
        case kinds.CustomType(cls=cls):
            return cls is not object
        case kinds.DictType(key_type=key):
            return type(key) in _KEYS or isinstance(key, kinds.EnumType)
    return False


def check_as(kind: Type, value: object, path: str, depth: int = 1) -> None:
    """Raise `NotSerializable` naming the first part that would not come back if read as a kind."""
    if type(value) is str:
        return
    fitting = _fitting(kind, value)
    if fitting is None:
        check(value, path, depth)
        return
    check_depth(path, depth)
    if isinstance(fitting, kinds.DictType):
        _check_keys(fitting.key_type, value, path)
    for part_kind, part, where in _typed_parts(fitting, value, path):
        check_as(part_kind, part, where, depth + 1)


def _fitting(kind: Type, value: object) -> Type | None:
    """Return the kind, or that member of a union, of which a value is; None: of none."""
    match kind:
        case kinds.Metadata(type=inner):
            return _fitting(inner, value)
        case kinds.UnionType(types=members):
            found = (_fitting(member, value) for member in members)
            return next((member for member in found if member is not None), None)
    return kind if isinstance(value, _python_type(kind)) else None


def _python_type(kind: Type) -> type | tuple[type, ...]:
    """Return what the values of a kind are, where a walk by its kind differs from a plain one."""
    match kind:
        case kinds.BytesType() | kinds.ByteArrayType() | kinds.MemoryViewType():
            return (bytes, bytearray, memoryview)
        case kinds.CollectionType() | kinds.TupleType():
            return (list, tuple, set, frozenset)
        case kinds.DictType() | kinds.TypedDictType():
            return Mapping
        case kinds.StructType() | kinds.DataclassType() | kinds.NamedTupleType():
            return typing.get_origin(kind.cls) or kind.cls
        case kinds.CustomType(cls=cls) if cls is not object:
            return cls
    return ()


def _typed_parts(kind: Type, value: Any, path: str) -> Iterator[tuple[Type, object, str]]:
    """Yield the parts of a value with the kind that each should be, and its path."""
    match kind:
        case kinds.CollectionType(item_type=item):
            for index, part in enumerate(value):
                yield item, part, f"{path}[{index}]"
        case kinds.TupleType(item_types=items):
            for index, part in enumerate(value):
                yield items[index] if index < len(items) else _ANY, part, f"{path}[{index}]"
        case kinds.DictType(value_type=item):
            for key, part in value.items():
                yield item, part, at(path, key)
        case kinds.TypedDictType(fields=fields):
            by_name = {field.encode_name: field.type for field in fields}
            for key, part in value.items():
                yield by_name.get(key, _ANY), part, at(path, key)
        case _:
            for field in getattr(kind, "fields", ()):
                yield field.type, getattr(value, field.name, None), f"{path}.{field.name}"


def _check_keys(kind: Type, value: Any, path: str) -> None:
    typed = kind.cls if isinstance(kind, kinds.EnumType) else _KEYS.get(type(kind), ())
    for key in value:
        if not isinstance(key, typed) or key != key:
            check_key(key, path)
