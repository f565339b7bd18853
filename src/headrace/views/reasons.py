"""From how a job stands to why it does not run: each function here knows one reason.

Another reason is another kind, a function, and its place in `LOOKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.clock import datetime_of
from headrace.job import DEFAULT_LANE, PROCESS_LANE, ErrorInfo, JobRecord, JobState
from headrace.storage.limits import WHY_BEATS
from headrace.storage.situation import Situation
from headrace.views.blocked import held_up
from headrace.views.reason import Reason, ReasonKind
from headrace.views.struck import struck
from headrace.views.wording import beginning, command, instant_words, others, plural, span

Look = Callable[[Situation], Iterator[Reason]]


def reasons_of(situation: Situation) -> list[Reason]:
    """Return why a job does not run, the reason to look at first before the others."""
    if situation.record.state is JobState.ACTIVE:
        return [*_active(situation), *_earlier(situation)]
    if situation.record.state.is_terminal:
        return [_ended(situation.record)]
    found = [reason for look in LOOKS for reason in look(situation)]
    return found or [_next(situation)]


def _paused(situation: Situation) -> Iterator[Reason]:
    queue = situation.record.queue
    if situation.is_paused:
        yield Reason(
            kind=ReasonKind.PAUSED,
            text=f"Queue {queue} is paused: nothing of it is claimed.",
            advice=f"Resume it: {command('queue', 'resume', queue)}",
        )


def _workers(situation: Situation) -> Iterator[Reason]:
    """Look for a live worker that has slots for the job and knows its task."""
    record, workers = situation.record, situation.workers
    serving = [worker for worker in workers if worker.slots_of(record.lane) >= record.slots]
    # One that names no tasks at all does not say what it knows.
    known = [worker for worker in serving if not worker.tasks or record.task in worker.tasks]
    if not workers:
        yield Reason(
            kind=ReasonKind.NO_WORKER,
            text=_nobody(situation),
            advice="Start one that serves it: "
            + command("worker", "MODULE:ATTR", "--queues", record.queue),
        )
    elif not serving:
        yield _no_slots(situation)
    elif not known:
        lane = "" if record.lane == DEFAULT_LANE else f" with slots of lane {record.lane}"
        yield Reason(
            kind=ReasonKind.TASK,
            text=f"{_none_of(situation)}{lane} knows the task {record.task}{_alive(situation)}.",
            advice="Start one whose app declares it under this name, or imports the module that "
            "does.",
        )


def _no_slots(situation: Situation) -> Reason:
    """Tell of a job for which no live worker has slots, or enough of them."""
    record = situation.record
    how = "--process-slots" if record.lane == PROCESS_LANE else f"--lanes {record.lane}"
    if record.lane == DEFAULT_LANE:
        how = "slots of that lane"
    what, most = "a slot", max(worker.slots_of(record.lane) for worker in situation.workers)
    if record.slots > 1:
        what, how = f"{record.slots:,} slots", "so many"
    has = f", the largest has {most:,}" if most else ""
    return Reason(
        kind=ReasonKind.LANE,
        text=f"{_none_of(situation)} has {what} of lane {record.lane}, which it needs"
        f"{_alive(situation)}{has}.",
        advice=f"Start one with {how}; headrace workers shows those that run.",
    )


def _nobody(situation: Situation) -> str:
    queue = situation.record.queue
    if situation.has_more_workers:
        return f"None of {WHY_BEATS} workers of queue {queue} that were looked at is alive."
    return f"No worker of queue {queue} is alive."


def _none_of(situation: Situation) -> str:
    """Begin a sentence about the live workers; where there are too many it is of some."""
    queue, n = situation.record.queue, len(situation.workers)
    if situation.has_more_workers:
        return f"None of {plural(n, 'live worker')} of queue {queue} that were looked at"
    return f"No live worker of queue {queue}"


def _alive(situation: Situation) -> str:
    n = len(situation.workers)
    return "" if situation.has_more_workers else f": {n} {'is' if n == 1 else 'are'} alive"


def _expired(situation: Situation) -> Iterator[Reason]:
    record = situation.record
    if record.starts == 0 and 0 < record.expires_ms <= situation.now_ms:
        yield Reason(
            kind=ReasonKind.EXPIRED,
            text=f"It was to start before {instant_words(record.expires_ms, situation.now_ms)}.",
            advice="It fails as expired when a claim comes to it. Enqueue it with a later expires, "
            "or have more workers.",
        )


def _until(situation: Situation) -> Iterator[Reason]:
    record, now_ms = situation.record, situation.now_ms
    if record.due_ms <= now_ms:
        return
    at = instant_words(record.due_ms, now_ms)
    if record.state is JobState.RETRYING:
        yield Reason(
            kind=ReasonKind.RETRY,
            text=f"Its handler has failed {plural(record.failures, 'time')}{_last(record)}. "
            f"It runs again at {at}.",
            advice=f"Mend the handler; {command('job', 'show', record.id)} has the traceback.",
            until=datetime_of(record.due_ms),
        )
    elif record.state is JobState.SCHEDULED:
        yield Reason(
            kind=ReasonKind.TIME,
            text=f"Its time comes at {at}.",
            advice='Wait; or enqueue its id anew with on_conflict="update" and an earlier time.',
            until=datetime_of(record.due_ms),
        )


def _last(record: JobRecord) -> str:
    return f", last with {_error(record.errors[0])}" if record.errors else ""


def _error(error: ErrorInfo) -> str:
    return beginning(f"{error.type}: {error.message}")


def _put_back(situation: Situation) -> Iterator[Reason]:
    record = situation.record
    if record.put_back is not None:
        since = instant_words(record.put_back.at_ms, situation.now_ms)
        yield Reason(
            kind=ReasonKind.PUT_BACK,
            text=f"Workers have left it to others since {since}: {_error(record.put_back)}.",
            advice="Roll out the release that knows its task and its arguments to the workers of "
            f"queue {record.queue}; headrace workers shows which run.",
        )


def _max_active(situation: Situation) -> Iterator[Reason]:
    most, queue = situation.max_active, situation.record.queue
    if 0 < most <= situation.active:
        yield Reason(
            kind=ReasonKind.MAX_ACTIVE,
            text=f"Queue {queue} lets {plural(most, 'job')} run at once, and {situation.active:,} "
            f"{'is' if situation.active == 1 else 'are'} active.",
            advice="It goes on when enough of them have ended. To allow more: "
            + command("queue", "configure", queue, "--max-active", "N"),
        )


def _behind(situation: Situation) -> Iterator[Reason]:
    record, before = situation.record, situation.before
    if record.state is JobState.QUEUED and before is None:
        yield Reason(
            kind=ReasonKind.LOST,
            text="Its place in line was lost: somebody else has changed the keys of the queue.",
            advice="Workers put it right as they sweep; at once: headrace doctor --repair",
        )
    elif before is not None and before.n:
        yield Reason(
            kind=ReasonKind.BEHIND,
            text=f"{others(before).capitalize()} of its lane "
            f"{'stands' if before.n == 1 else 'stand'} before it: those of higher priority, and "
            "those that came earlier.",
            advice="Wait; or start more workers, or enqueue what is urgent with a higher priority. "
            "headrace workers shows ACTIVE of SLOTS.",
            before=before.n,
            is_least=before.is_least,
        )


LOOKS: tuple[Look, ...] = (
    _paused,
    struck,
    _workers,
    _expired,
    _until,
    _put_back,
    held_up,
    _max_active,
    _behind,
)
"""What may keep a waiting job, in the order in which one would look at it."""


def _next(situation: Situation) -> Reason:
    """Tell of a job that nothing keeps."""
    record = situation.record
    if record.state is not JobState.QUEUED:
        since = instant_words(record.due_ms, situation.now_ms)
        return Reason(
            kind=ReasonKind.DUE,
            text=f"It has been due since {since}.",
            advice="The next claim of a worker puts it in line: within two seconds, if one has a "
            "free slot.",
        )
    return Reason(
        kind=ReasonKind.NEXT,
        text="Nothing holds it up: it is the next of its lane.",
        advice=f"It starts when a worker has {_free(record.slots)}: within two seconds, if one "
        "has. headrace workers shows ACTIVE of SLOTS.",
        before=0,
    )


def _free(slots: int) -> str:
    return "a free slot" if slots == 1 else f"{slots:,} free slots"


def _active(situation: Situation) -> Iterator[Reason]:
    record, owner = situation.record, situation.owner
    since = instant_words(record.changed_ms, situation.now_ms)
    is_live = owner is not None and owner.silent_ms <= owner.lease_ms and not owner.is_condemned
    if is_live and owner is not None:
        asked = ", and was asked to stop" if record.cancel_requested else ""
        text = f"It runs, since {since}, on worker {owner.name}{asked}."
        advice = f"Its progress: {command('job', 'show', record.id)}. To stop it: "
        advice += command("job", "cancel", record.id)
    else:
        gone = "is gone" if owner is None else f"is silent for {span(owner.silent_ms)}"
        text = f"It was started at {since}, and its worker {gone}."
        advice = (
            f"Another live worker of queue {record.queue} takes it back when the lease is over: "
            "start one if there is none."
        )
    yield Reason(kind=ReasonKind.ACTIVE, text=text, advice=advice)


def _earlier(situation: Situation) -> Iterator[Reason]:
    """Tell of the job that follows an active one."""
    record, successor = situation.record, situation.next
    if successor is None:
        return
    due_ms = successor.due_ms
    later = f", and not before {instant_words(due_ms, situation.now_ms)}" if due_ms else ""
    yield Reason(
        kind=ReasonKind.EARLIER,
        text=f"Another job of this id waits for the end of this one{later}.",
        advice="It follows by itself. To cancel it alone: "
        + command("job", "cancel", record.id, "--only-next"),
        until=datetime_of(due_ms) if due_ms else None,
        jobs=(record.id,),
    )


def _ended(record: JobRecord) -> Reason:
    reason = f" ({record.reason})" if record.reason else ""
    advice = {
        JobState.COMPLETED: f"Its result: {command('job', 'show', record.id)}",
        JobState.FAILED: f"Mend the cause, then: {command('job', 'retry', record.id)}",
        JobState.CANCELLED: "Enqueue it again to have it run.",
    }[record.state]
    last = _last(record) if record.state is JobState.FAILED else ""
    how = "was" if record.state is JobState.CANCELLED else "has"
    text = f"It {how} {record.state.value}{reason}{last}."
    return Reason(kind=ReasonKind.ENDED, text=text, advice=advice)
