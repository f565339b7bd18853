"""The strikes of one queue as its worker knows them: which jobs it has claimed it is not to run.

It reads arguments as they are stored, which no storage does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

import msgspec

from headrace.job import ClaimedJob
from headrace.outcome import Cancelled, Struck
from headrace.signature import Signature
from headrace.strike import STRUCK, Strike, StrikeAction, Value, is_asked_for
from headrace.task import Task
from headrace.worker.plan import plan_of

_MISSING = object()


class KnownStrikes(msgspec.Struct, frozen=True):
    """The strikes with conditions that hold, and their version; 0: there are none."""

    version: int = 0
    strikes: tuple[tuple[Strike, dict[str, Value]], ...] = ()

    @classmethod
    def of(cls, version: int, strikes: Iterable[Strike]) -> Self:
        """Return those of a queue's strikes that say what arguments are to be."""
        return cls(version, tuple((one, one.conditions()) for one in strikes if one.where))

    def outcome(self, job: ClaimedJob, task: Task[..., Any]) -> Struck | Cancelled | None:
        """Return what becomes of a job that the first of them meets; None: it is to be run.

        A fail job is none of them: its arguments are those of the job that has failed.
        """
        try:
            plan = plan_of(job, task.settings)
        except msgspec.MsgspecError:
            return None  # to run it tells what is wrong with it
        arguments = None if plan.failed else _arguments(job, task.signature)
        if arguments is None:
            return None
        for strike, conditions in self.strikes:
            is_its_task = strike.task in ("", job.task)
            if is_its_task and _meets(arguments, conditions, task.signature):
                if strike.action is StrikeAction.CANCEL:
                    return Cancelled(plan.keep_ms, STRUCK)
                return Struck(strike.id)
        return None


def _arguments(job: ClaimedJob, signature: Signature[Any]) -> dict[str, Any] | None:
    """Return a job's arguments as plain data, by the names that its parameters have now."""
    found = signature.read_plain(job.payload)
    if not isinstance(found, dict):
        return None
    return {signature.aliases.get(name, name): value for name, value in found.items()}


def _meets(
    arguments: Mapping[str, Any], conditions: Mapping[str, Value], signature: Signature[Any]
) -> bool:
    return all(
        is_asked_for(arguments[name] if name in arguments else _default(name, signature), value)
        for name, value in conditions.items()
    )


def _default(name: str, signature: Signature[Any]) -> Any:
    """Return the default of a parameter as it would be stored."""
    if name not in signature.names:
        return _MISSING
    default = signature.default_of(name)
    with suppress(Exception):  # whatever the code of its type raises, it is no plain value then
        return signature.read_plain(signature.encode_plain(default, name))
    return _MISSING
