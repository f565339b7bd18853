"""How strikes, and pauses of tasks, keep a job from running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from headrace.storage.situation import Situation
from headrace.strike import Strike, StrikeAction, is_asked_for
from headrace.views.reason import Reason, ReasonKind
from headrace.views.wording import command, in_line

_read_object = msgspec.json.Decoder(dict[str, object]).decode


def struck(situation: Situation) -> Iterator[Reason]:
    """Tell of each strike that meets the job, or may by its arguments."""
    arguments = _arguments(situation)
    for strike in situation.strikes:
        if _is_other(arguments, strike) and not _stands_in_line(situation, strike):
            continue
        yield _paused(situation, strike) if strike.paused_task else _struck(situation, strike)


def _arguments(situation: Situation) -> Mapping[str, object]:
    """Return the arguments that are stored, by name, as far as they can be read without its app."""
    try:
        return _read_object(situation.record.payload or b"{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _is_other(arguments: Mapping[str, object], strike: Strike) -> bool:
    """Whether an argument is not as a strike asks; what is left to its default may be."""
    return not all(
        is_asked_for(arguments[name], value)
        for name, value in strike.conditions().items()
        if name in arguments
    )


def _paused(situation: Situation, strike: Strike) -> Reason:
    queue, task = situation.record.queue, strike.paused_task
    return _reason(
        situation,
        strike,
        ReasonKind.PAUSED,
        text=f"Task {task} is paused in queue {queue}",
        advice=f"Resume it: {command('queue', 'resume', queue, '--task', task)}",
    )


def _struck(situation: Situation, strike: Strike) -> Reason:
    does = "cancels" if strike.action is StrikeAction.CANCEL else "holds back"
    text = f"Strike {strike.name} {does} {_which(strike)}"
    if strike.where and not _stands_in_line(situation, strike):
        text += ": the worker that claims this one sees whether it is among them"
    return _reason(
        situation,
        strike,
        ReasonKind.STRUCK,
        text=text,
        advice=f"Lift it: {command('queue', 'lift', situation.record.queue, strike.name)}",
    )


def _reason(
    situation: Situation, strike: Strike, kind: ReasonKind, *, text: str, advice: str
) -> Reason:
    before = situation.struck_before if _stands_in_line(situation, strike) else None
    return Reason(
        kind=kind,
        text=f"{text}{in_line(before)}.",
        advice=advice,
        before=before.n if before else None,
        is_least=before is not None and before.is_least,
    )


def _stands_in_line(situation: Situation, strike: Strike) -> bool:
    return situation.record.parked == strike.id


def _which(strike: Strike) -> str:
    of = f" of task {strike.task}" if strike.task else ""
    said = [
        f"{name}={msgspec.json.encode(value).decode()}"
        for name, value in strike.conditions().items()
    ]
    return f"jobs{of}{' with ' if said else ''}{', '.join(said)}"
