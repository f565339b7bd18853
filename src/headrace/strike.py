"""Strikes: which jobs of a queue are not to be run for now, by their task or their arguments.

An operator sets one, and it stands until it is lifted. A task that is paused is struck, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from headrace.errors import InvalidOption
from headrace.job import check_text
from headrace.named_task import NamedTask, task_name
from headrace.plain import plain_number, plain_text, shown

CONDITIONS_LIMIT = 8
"""Most parameters that one strike names."""

VALUE_LIMIT_BYTES = 256

STRUCK = "struck"
"""The reason of a job that a strike has cancelled."""

Value = str | int | float | bool | None
"""What the argument of a parameter is compared with."""

_PAUSE, _STRIKE = "task:", "strike:"
_read_conditions = msgspec.json.Decoder(dict[str, Value]).decode


class StrikeAction(StrEnum):
    """What becomes of the jobs that a strike meets."""

    WAIT = "wait"
    CANCEL = "cancel"


class Strike(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are not to be run, as storages keep it.

    Attributes:
        id: its name in the queue, and that of the line in which its jobs wait. No limit's gate has
            one without a tab.
        task: whose jobs, "" for those of every task.
        where: what their arguments are to be, as JSON, which storages do not read: an object of
            parameters and their values; "": any.
        action: what becomes of them.
        since_ms: when it was set, which the storage says.
    """

    id: str
    task: str = ""
    where: str = ""
    action: StrikeAction = StrikeAction.WAIT
    since_ms: int = 0

    @property
    def paused_task(self) -> str:
        """The task that it pauses, "" if it is no pause."""
        return self.id.removeprefix(_PAUSE) if self.id.startswith(_PAUSE) else ""

    @property
    def name(self) -> str:
        """What operators call it."""
        return self.id.removeprefix(_STRIKE)

    def conditions(self) -> dict[str, Value]:
        """Return what the arguments are to be, by parameter; what can't be read meets no job."""
        try:
            return _read_conditions(self.where) if self.where else {}
        except (msgspec.MsgspecError, UnicodeError):
            return {"": self.where}


def is_asked_for(found: object, value: Value) -> bool:
    """Whether an argument, as plain data, is the value that a strike asks for."""
    # A truth value is a number in Python, and none in JSON.
    return found == value and isinstance(found, bool) == isinstance(value, bool)


def pause_id(task: NamedTask | str) -> str:
    """Return the id of the strike that is a task's pause.

    Raises:
        InvalidOption: that is no name of a task.
    """
    return _PAUSE + task_name(task)


def pause_of(task: NamedTask | str) -> Strike:
    """Return the strike that is a task's pause.

    Raises:
        InvalidOption: that is no name of a task.
    """
    name = task_name(task)
    return Strike(id=pause_id(name), task=name)


def strike_id(name: str) -> str:
    """Return the id of a strike that operators call so.

    Raises:
        InvalidOption: that is no name of a strike.
    """
    return _STRIKE + check_text(name, what="strike", limit_bytes=32)


def strike_of(
    task: NamedTask | str | None, where: Mapping[str, Value] | None, action: StrikeAction | str
) -> Strike:
    """Return a new strike.

    Raises:
        InvalidOption: neither a task nor a condition is said, or a value is not valid.
    """
    conditions = _checked(where)
    if task is None and not conditions:
        raise InvalidOption(
            "a strike says task=, where= or both: to stop all jobs of a queue, pause it"
        )
    name = "" if task is None else task_name(task)
    text = msgspec.json.encode(conditions).decode() if conditions else ""
    return Strike(
        id=_STRIKE + secrets.token_hex(4), task=name, where=text, action=check_action(action)
    )


def check_action(action: StrikeAction | str) -> StrikeAction:
    """Return what is to become of jobs.

    Raises:
        InvalidOption: that is not known.
    """
    try:
        return StrikeAction(plain_text(action) or "")
    except ValueError:
        known = " or ".join(repr(one.value) for one in StrikeAction)
        raise InvalidOption(f"action={shown(action)} is not known: use {known}") from None


def _checked(where: Mapping[str, Value] | None) -> dict[str, Value]:
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InvalidOption(f"where={shown(where)}: pass a mapping of parameters to values")
    if len(where) > CONDITIONS_LIMIT:
        raise InvalidOption(
            f"{len(where)} conditions are too many: a strike has {CONDITIONS_LIMIT} at most"
        )
    return {check_text(name, what="parameter"): _value(name, one) for name, one in where.items()}


def _value(name: str, value: Any) -> Value:
    of = f"where[{shown(name)}]"
    if value is None or isinstance(value, bool):
        return value
    number = plain_number(value)
    if number is not None:
        if abs(number) < 2**63:  # not of NaN either
            return number
        raise InvalidOption(f"{of}={shown(value)} is out of bounds: use a number below 2**63")
    if value == "":
        return ""
    if plain_text(value) is None:
        raise InvalidOption(f"{of}={shown(value)}: use a string, a number, a truth value or None")
    return check_text(value, what=of, limit_bytes=VALUE_LIMIT_BYTES)
