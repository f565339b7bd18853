"""How strikes, and pauses of tasks, keep a job from running."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from headrace.storage.situation import Situation
from headrace.strike import Strike, StrikeAction
from headrace.views.reason import Reason, ReasonKind
from headrace.views.wording import command, in_line


def struck(situation: Situation) -> Iterator[Reason]:
    """Tell of each strike that the job meets, or may meet by its arguments."""
    for strike in situation.strikes:
        yield _paused(situation, strike) if strike.paused_task else _struck(situation, strike)


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
        text += ": whether this is one a worker sees as it claims it"
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
