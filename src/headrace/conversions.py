"""Types that have no JSON form of their own, and the plain data that stands for their values.

Paths and addresses are read from their text, and models by pydantic.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import Any

import msgspec

from headrace.json_values import check
from headrace.pydantic_types import Adapter, is_model


class Conversions(msgspec.Struct, frozen=True):
    """What an app does for types that msgspec does not know."""

    def can_store(self, cls: type) -> bool:
        """Whether values of a class that msgspec does not know can be stored and read.

        Raises:
            TypeError: it is a model that pydantic would not store faithfully.
        """
        return _is_text(cls) or (is_model(cls) and bool(_adapter(cls)))

    def to_plain(self, value: Any) -> Any:
        """Return the plain data that stands for a value.

        Raises:
            TypeError, ValueError: there is none.
        """
        cls: Any = type(value)
        if _is_text(cls):
            return str(value)
        if not is_model(cls):
            raise TypeError(f"Encoding objects of type {cls.__name__} is unsupported")
        plain = _adapter(cls).to_plain(value)
        check(plain, "what pydantic returned", 1)
        return plain

    def to_value(self, cls: type, plain: Any) -> Any:
        """Return the value of a class for which plain data stands.

        Raises:
            TypeError, ValueError: the data are not of that class.
        """
        if is_model(cls):
            return _adapter(cls).read(msgspec.json.encode(plain))
        if not _is_text(cls):
            return plain
        if not isinstance(plain, str):
            raise TypeError(f"Expected `str`, got `{type(plain).__name__}`")
        value: object = cls(plain)
        return value


def _is_text(cls: type) -> bool:
    """Whether a class is read from the text that ``str`` makes of its values."""
    is_address = cls.__module__ == "ipaddress" and hasattr(cls, "version")
    return is_address or issubclass(cls, PurePath)


@cache
def _adapter(model: type) -> Adapter:
    return Adapter(model)
