"""Annotations that ask for pydantic: values go in and come out by pydantic's own `TypeAdapter`.

Pydantic is optional and never imported unless the program has done so: before that no annotation
can be of its making.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import msgspec
from typing_extensions import get_original_bases, is_typeddict

from headrace.description import told

_SHAPES = {
    "missing": "Object missing required field",
    "extra_forbidden": "Object contains unknown field",
}

_OLDEST = (2, 11)
"""Before it, fields can't be read both by name and by alias."""

_ITS_MODULES = frozenset({"pydantic", "annotated_types"})
"""Constraints such as `PositiveInt` are of annotated_types, on which pydantic stands."""


class Adapter:
    """Turns values of one annotation into plain data, and reads them from JSON.

    Args:
        annotation: what the values are.

    Raises:
        TypeError: pydantic can't read such a type, or would not store it faithfully.
        NameError: a class that it names is not defined yet.
    """

    def __init__(self, annotation: Any) -> None:
        _check_version()
        from pydantic import PydanticUndefinedAnnotation, PydanticUserError

        secret = _secret(annotation)
        if secret:
            raise TypeError(
                f"pydantic would store {secret} as asterisks: pass the name of the secret, or give "
                "it a serializer of your own"
            )
        try:
            self._adapter = _type_adapter(annotation)
        except PydanticUndefinedAnnotation as error:
            raise NameError(str(error), name=error.name) from error
        except PydanticUserError as error:
            reason = error.message.partition(". ")[0]
            raise TypeError(f"pydantic can't store it: {reason}") from error

    def to_plain(self, value: object) -> object:
        """Return a value as plain data; what is plain data already stays as it is.

        Fields go by their names, since aliases for validation and serialization may differ.

        Raises:
            Exception: whatever its serializers raise.
        """
        return self._adapter.dump_python(
            value, mode="json", by_alias=False, round_trip=True, warnings=False
        )

    def read(self, data: bytes | msgspec.Raw) -> Any:
        """Return a value from JSON: of its fields by name or by alias, also in strict models.

        Raises:
            ValueError: it is not of the type; the text says what and where, without values.
        """
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(bytes(data), by_alias=True, by_name=True)
        except ValidationError as error:
            raise ValueError(_summary(error)) from error
        except Exception as error:  # whatever its validators raise
            raise ValueError(told(error)) from error


def asks(annotation: Any, own: Collection[type]) -> bool:
    """Whether anything in an annotation is pydantic's, but for classes that the app stores."""
    if "pydantic" not in sys.modules:
        return False
    return any(
        _is_its(node) or any(map(_is_its, getattr(node, "__metadata__", ())))
        for node in _nodes(annotation, own)
    )


def is_model(cls: type) -> bool:
    """Whether it is a class of pydantic's models."""
    return "pydantic" in sys.modules and hasattr(cls, "model_fields") and _is_its(cls)


def _check_version() -> None:
    version = sys.modules["pydantic"].VERSION
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        raise TypeError(
            f"that is pydantic {version}: headrace needs {'.'.join(map(str, _OLDEST))} or newer"
        )


def _type_adapter(annotation: Any) -> Any:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    try:
        # Else bytes that are no UTF-8 would be refused; a model has a configuration of its own.
        adapter = TypeAdapter(
            annotation, config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        )
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        adapter = TypeAdapter(annotation)
    if not adapter.pydantic_complete:
        adapter.rebuild(raise_errors=True)
    return adapter


def _summary(error: Any) -> str:
    """Return what is wrong and where, without the values."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    # A field too few or too many is told in msgspec's words, so that it is known as such by all.
    return "; ".join(
        f"{_SHAPES[one['type']]} `{_place(one)}`"
        if all(each["type"] in _SHAPES for each in found)
        else ": ".join(filter(None, (_place(one), one["msg"])))
        for one in found
    )


def _place(error: Any) -> str:
    return ".".join(map(str, error["loc"]))


def _is_its(node: Any) -> bool:
    node = typing.get_origin(node) or node
    if hasattr(node, "__get_pydantic_core_schema__") or hasattr(node, "__pydantic_core_schema__"):
        return True
    mro = node.__mro__ if isinstance(node, type) else type(node).__mro__
    return any(cls.__module__.partition(".")[0] in _ITS_MODULES for cls in mro)


def _nodes(annotation: Any, own: Collection[type] = ()) -> Iterator[Any]:
    """Yield an annotation and what it is made of; not what has a serializer of its own."""
    seen: list[Any] = []
    waiting = [annotation]
    while waiting:
        node = waiting.pop()
        if any(node is other for other in seen) or (isinstance(node, type) and node in own):
            continue
        seen.append(node)
        yield node
        if not _has_serializer(getattr(node, "__metadata__", ())):
            waiting.extend(_parts(node))


def _parts(node: Any) -> Iterator[Any]:
    yield from typing.get_args(node)
    for alias in ("__value__", "__supertype__"):  # of a type alias, of a NewType
        if hasattr(node, alias):
            yield getattr(node, alias)
    cls = typing.get_origin(node) or node
    if not isinstance(cls, type) or isinstance(cls, type(msgspec.Struct)):
        return
    if is_model(cls):
        yield from _fields_of_model(cls)
    elif dataclasses.is_dataclass(cls) or is_typeddict(cls) or _is_named_tuple(cls):
        with suppress(NameError):  # whoever reads the type itself tells
            yield from typing.get_type_hints(cls, include_extras=True).values()


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and typing.NamedTuple in get_original_bases(cls)


def _fields_of_model(cls: Any) -> Iterator[Any]:
    decorators = cls.__pydantic_decorators__
    if decorators.model_serializers:
        return
    serialized = {
        name for found in decorators.field_serializers.values() for name in found.info.fields
    }
    for name, field in cls.model_fields.items():
        if name not in serialized and "*" not in serialized and not _has_serializer(field.metadata):
            yield field.annotation


def _has_serializer(metadata: typing.Iterable[Any]) -> bool:
    names = {type(item).__name__ for item in metadata if _is_its(item)}
    return not names.isdisjoint({"PlainSerializer", "WrapSerializer"})


def _secret(annotation: Any) -> str:
    """Return the name of a type of secret in an annotation, "" if there is none."""
    from pydantic import Secret, SecretBytes, SecretStr

    for node in _nodes(annotation):
        cls = typing.get_origin(node) or node
        if isinstance(cls, type) and issubclass(cls, SecretStr | SecretBytes | Secret):
            return cls.__name__
    return ""
