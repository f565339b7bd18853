"""The limits of a task's jobs: which it declares, and which gates a call meets by its arguments."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from headrace.errors import InvalidOption
from headrace.fairness import FAIR_LIMIT, check_limit_name
from headrace.limit import Gate, Limit, Terms, check_number, gates_text, limit_key
from headrace.plain import shown
from headrace.settings import TaskSettings
from headrace.signature import known_hints

_NO_KEYS = (
    *(float, complex, bytes, bytearray, list, dict, set, frozenset, tuple),
    *(Decimal, UUID, PurePath, date, time, timedelta, Enum, msgspec.Struct),
)
"""Types whose values are neither strings nor whole numbers; subclasses that are both are none."""


def check_limits(limits: Collection[Limit]) -> tuple[Limit, ...]:
    """Return what a task declares, whatever collection it is.

    Raises:
        InvalidOption: it is no collection of limits, or one of more than a job may have.
    """
    if isinstance(limits, Limit | str) or not isinstance(limits, Collection):
        raise InvalidOption(f"limits={shown(limits)}: pass a list of Limit(...)")
    for limit in limits:
        if not isinstance(limit, Limit):
            raise InvalidOption(f"limits has {shown(limit)}: pass a list of Limit(...)")
    declared = tuple(limits)
    # Those without a name have that of the task, which is not known yet.
    check_number([Gate(limit.name_in("(the task's own)"), "") for limit in declared])
    return declared


def check_keys(keys: Mapping[str, str | int | None]) -> dict[str, str]:
    """Return the texts of the keys that a call says, by the names of their limits.

    Raises:
        InvalidOption: it is no mapping, or a name is not valid.
        InvalidArguments: a value is no key.
    """
    if not isinstance(keys, Mapping):
        raise InvalidOption(f"limit_keys={shown(keys)}: pass a mapping of limits to keys")
    return {check_limit_name(name): limit_key(key, of=_said(name)) for name, key in keys.items()}


def _said(name: str) -> str:
    return f"limit_keys[{shown(name)}]"


class TaskLimits:
    """Which gates the jobs of a task meet, where a call says some keys itself.

    Args:
        task: the task's name.
        limits: what it declares.
        keys: what the call says, by the names of limits; of others than the task's only the
            name is known.
        fair_by: the parameter whose values take turns, "" for none.
        fair_key: the key that takes turns, as the call says it itself; None: it does not.

    Attributes:
        gates: `Job.gates` if they are the same for all arguments, else None.

    Raises:
        InvalidOption: there are more than a job may have, or a limit's own name is none.
    """

    def __init__(
        self,
        task: str,
        limits: Iterable[Limit],
        keys: Mapping[str, str],
        *,
        fair_by: str = "",
        fair_key: str | None = None,
    ) -> None:
        left = dict(keys)
        self._task = task
        self._limits: list[tuple[Gate, str]] = []
        for limit in limits:
            name = check_limit_name(limit.name_in(task))
            by = "" if name in left else limit.by
            self._limits.append((Gate(name, left.pop(name, ""), limit.terms), by))
        self._limits += [(Gate(name, key), "") for name, key in left.items()]
        if fair_key is not None:
            self._limits.append((Gate(FAIR_LIMIT, fair_key), ""))
        elif fair_by:
            self._limits.append((Gate(FAIR_LIMIT, ""), fair_by))
        check_number([gate for gate, _ in self._limits])
        fixed = [gate for gate, by in self._limits if not by]
        self.gates: str | None = gates_text(fixed) if len(fixed) == len(self._limits) else None

    def gates_of(self, arguments: Mapping[str, object], default_of: Callable[[str], object]) -> str:
        """Return `Job.gates` of a call with these arguments.

        Args:
            arguments: by name; what is left out has its default.
            default_of: returns the default of a parameter.

        Raises:
            InvalidArguments: the value of a parameter is no key.
        """
        gates = []
        for gate, by in self._limits:
            key = gate.key
            if by:
                value = arguments[by] if by in arguments else default_of(by)
                key = limit_key(value, of=f"{self._task}: {by}")
            gates.append(Gate(gate.name, key, gate.terms))
        return gates_text(gates)


def check_parameters(
    task: str,
    limits: Iterable[Limit],
    fair_by: str,
    names: Collection[str],
    function: Callable[..., Any],
) -> None:
    """See that what gives the keys of a task's jobs are parameters of it, whose values can be keys.

    Raises:
        InvalidOption: one is not, or is annotated with a type that has no key among its values.
    """
    said = {f"by={shown(limit.by)} of a limit of {task}": limit.by for limit in limits}
    said[f"fair_by={shown(fair_by)} of {task}"] = fair_by
    said = {what: name for what, name in said.items() if name}
    hints = known_hints(function) if said else {}
    for what, name in said.items():
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise InvalidOption(f"{what} names no parameter of it: use one of {known}")
        if not _has_keys(hints.get(name, Any)):
            raise InvalidOption(
                f"{what} names a parameter annotated {inspect.formatannotation(hints[name])}, and "
                "a key is a string, a whole number or None: annotate it str or int, or leave that "
                "out and say keys by options(limit_keys=...) or options(fair_key=...)"
            )


def _has_keys(annotation: Any) -> bool:
    """Whether values of a type may be keys, as far as is known; None alone doesn't make it so."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return any(map(_has_keys, parts))
    kind = origin or annotation
    if not isinstance(kind, type) or issubclass(kind, str):
        return True
    if issubclass(kind, int):
        return kind is not bool
    return not (issubclass(kind, _NO_KEYS) or is_dataclass(kind))


def declared_limits(
    tasks: Iterable[tuple[str, TaskSettings]],
) -> dict[str, dict[str, Terms]]:
    """Return the terms of the limits that tasks declare, by their queues and names.

    Raises:
        InvalidOption: two tasks of a queue declare one name, and not the same.
    """
    found: dict[str, dict[str, Terms]] = {}
    by_whom: dict[tuple[str, str], str] = {}
    for task, settings in tasks:
        known = found.setdefault(settings.queue, {})
        for limit in settings.limits:
            name = limit.name_in(task)
            other = by_whom.setdefault((settings.queue, name), task)
            if (terms := known.setdefault(name, limit.terms)) != limit.terms:
                raise InvalidOption(
                    f"{other} and {task} both declare the limit {shown(name)} of queue "
                    f"{settings.queue!r}, one {terms.words} and one {limit.terms.words}: share one "
                    "Limit, or name them apart"
                )
    return found


def terms_texts(terms: Mapping[str, Terms]) -> dict[str, str]:
    """Return what an incarnation says of the limits of its queue."""
    return {name: each.text for name, each in terms.items()}
