"""Parameters that had other names: jobs of an older release carry these."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Set
from typing import Annotated, Any

import msgspec

from headrace.codec import Decode
from headrace.errors import InvalidOption, UsageError
from headrace.plain import plain_text, shown


class Alias:
    """The names that a parameter had before, as in ``recipient: Annotated[str, Alias("to")]``.

    A worker takes arguments by any of them. They are stored under the parameter's own name.

    Args:
        *names: one or more.

    Raises:
        InvalidOption: there is none, or one can't be a parameter's.
    """

    def __init__(self, *names: str) -> None:
        self.names: list[str] = [name for name in map(plain_text, names) if name is not None]
        is_whole = bool(names) and len(self.names) == len(names)
        if not is_whole or not all(map(str.isidentifier, self.names)):
            raise InvalidOption(
                f"Alias({', '.join(map(shown, names))}): pass one or more names of a parameter"
            )

    def __repr__(self) -> str:
        return f"Alias({', '.join(map(repr, self.names))})"


def aliases_of(where: str, hints: Mapping[str, Any], parameters: Set[str]) -> dict[str, str]:
    """Return the parameters of a handler by the names that they had before.

    Args:
        where: the handler, for the error.
        hints: its annotations, ``Annotated`` kept.
        parameters: the names of its arguments.

    Raises:
        UsageError: a name is that of another one too.
    """
    found: dict[str, str] = {}
    for parameter, hint in hints.items():
        if parameter not in parameters or typing.get_origin(hint) is not Annotated:
            continue
        for alias in hint.__metadata__:
            for name in alias.names if isinstance(alias, Alias) else ():
                if name in parameters or name in found:
                    raise UsageError(
                        f"the alias {name!r} of {where}'s parameter {parameter!r} is a name of "
                        "another one"
                    )
                found[name] = parameter
    return found


def by_any_name(
    decode: Decode, aliases: Mapping[str, str], read: Decode, write: Callable[[Any], bytes]
) -> Decode:
    """Return a decoder of arguments that takes them by their earlier names too.

    These cost nothing where there are none, and a second look where they come.

    Args:
        decode: takes them by their own names.
        aliases: own names by earlier ones.
        read: returns arguments as plain data by name.
        write: encodes these.
    """

    def decode_again(payload: bytes) -> Any:
        try:
            return decode(payload)
        except msgspec.ValidationError:
            found = _renamed(read(payload), aliases)
            if found is None:
                raise
            return decode(write(found))

    return decode_again if aliases else decode


def _renamed(arguments: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any] | None:
    """Return arguments by the names that they have now, None if that is no other call."""
    found = {aliases.get(name, name): value for name, value in arguments.items()}
    is_another = found.keys() != arguments.keys() and len(found) == len(arguments)
    return found if is_another else None
