"""Types that have no JSON form of their own, and the plain data that stands for their values.

An app has encoders and decoders for types of its own; paths, addresses and pydantic's models need
none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.inspect import CustomType, type_info

from headrace.description import told
from headrace.errors import InvalidOption
from headrace.json_values import check
from headrace.plain import shown
from headrace.pydantic_types import Adapter, is_model

Convert = Callable[[Any], Any]

ByType = Mapping[Any, Convert]
"""A function by class. To type checkers a dict with one class for its keys is no dict of types."""


class Conversions(msgspec.Struct, frozen=True):
    """What an app does for types of its own, beside those that all apps store.

    Attributes:
        encoders: from a value of the type, or of one derived from it, to plain data.
        decoders: from that data to a value, for just the type.
    """

    encoders: ByType = {}
    decoders: ByType = {}

    def can_store(self, cls: type) -> bool:
        """Whether values of a class that msgspec does not know can be stored and read.

        Raises:
            TypeError: it is a model that pydantic would not store faithfully.
        """
        return cls in self.decoders or _is_text(cls) or (is_model(cls) and bool(_adapter(cls)))

    def to_plain(self, value: Any) -> Any:
        """Return the plain data that stands for a value.

        Raises:
            TypeError, ValueError: there is none, or its encoder fails.
        """
        cls: Any = type(value)
        base = next((base for base in cls.__mro__ if base in self.encoders), None)
        if base is not None:
            maker = f"the encoder of {base.__name__}"
            plain = _called(self.encoders[base], value, maker)
        elif is_model(cls):
            maker = "pydantic"
            plain = _adapter(cls).to_plain(value)
        elif _is_text(cls):
            return str(value)
        else:
            raise TypeError(f"Encoding objects of type {cls.__name__} is unsupported")
        check(plain, f"what {maker} returned", 1)
        return plain

    def to_value(self, cls: type, plain: Any) -> Any:
        """Return the value of a class for which plain data stands.

        Raises:
            TypeError, ValueError: the data are not of that class.
        """
        if cls in self.decoders:
            return _called(self.decoders[cls], plain, f"the decoder of {cls.__name__}")
        if is_model(cls):
            return _adapter(cls).read(msgspec.json.encode(plain))
        if not _is_text(cls):
            return plain
        if not isinstance(plain, str):
            raise TypeError(f"Expected `str`, got `{type(plain).__name__}`")
        value: object = cls(plain)
        return value


def conversions_of(encoders: ByType | None, decoders: ByType | None) -> Conversions:
    """Return an app's conversions.

    Raises:
        InvalidOption: they are no functions by type, a type is in one of both alone, or it is one
            that is stored without.
    """
    made = Conversions(_checked(encoders, "encoders"), _checked(decoders, "decoders"))
    for cls in made.encoders.keys() ^ made.decoders.keys():
        lacking = "decoders" if cls in made.encoders else "encoders"
        raise InvalidOption(f"{cls.__name__} is missing in {lacking}: give both for each type")
    return made


def _checked(said: ByType | None, name: str) -> dict[type, Convert]:
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise InvalidOption(f"{name}={shown(said)}: pass a dict of functions by type")
    for cls, convert in said.items():
        where = f"{name}[{shown(cls)}]"
        if not isinstance(cls, type):
            raise InvalidOption(f"{where}: its key must be a class")
        if not callable(convert) or inspect.iscoroutinefunction(convert):
            raise InvalidOption(f"{where}={shown(convert)}: pass a plain function of one value")
        if not _has_no_form(cls):
            raise InvalidOption(f"{where}: {cls.__name__} is stored as it is, and can't be changed")
    return dict(said)


def _has_no_form(cls: type) -> bool:
    try:
        return cls is not object and isinstance(type_info(cls), CustomType)
    except TypeError:
        return False


def _called(convert: Convert, value: Any, name: str) -> Any:
    try:
        return convert(value)
    except Exception as error:
        raise ValueError(f"{name} raised {told(error)}") from error


def _is_text(cls: type) -> bool:
    """Whether a class is read from the text that ``str`` makes of its values."""
    is_address = cls.__module__ == "ipaddress" and hasattr(cls, "version")
    return is_address or issubclass(cls, PurePath)


@cache
def _adapter(model: type) -> Adapter:
    return Adapter(model)
