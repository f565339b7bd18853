"""What is kept of one job id, and what an update changes of it."""

from __future__ import annotations

from typing import NamedTuple

from headrace.update import Update, UpdateRunAt, read_update


class Record(NamedTuple):
    """What is kept of a job; ``is_asked``: to stop, while it is active."""

    state: str
    payload: str
    keep_ms: int
    max_stalls: int
    is_due: bool = True
    epoch: int = 0
    nonce: str = ""
    failures: int = 0
    stalls: int = 0
    result: str | None = None
    is_asked: bool = False

    def is_owned_by(self, epoch: int, nonce: str) -> bool:
        """Whether this was the last claim."""
        return self.epoch > 0 and (self.epoch, self.nonce) == (epoch, nonce)


class Successor(NamedTuple):
    """What an update asks for, or several together, the word of which is ``update``."""

    payload: str
    keep_ms: int
    max_stalls: int
    is_due: bool
    update: str


def _takes_time(update: Update, *, was_due: bool, is_due: bool) -> bool:
    match update.run_at:
        case UpdateRunAt.IF_LATER:
            return was_due and not is_due
        case UpdateRunAt.IF_EARLIER:
            return is_due and not was_due
    return update.run_at is UpdateRunAt.ALWAYS


def updated(record: Record, said: Successor) -> Record:
    """Return a waiting job as an update leaves it."""
    update = read_update(said.update)
    if update.data:
        record = record._replace(payload=said.payload, keep_ms=said.keep_ms)
    if update.retry:
        record = record._replace(max_stalls=said.max_stalls)
    if update.reset_counts:
        record = record._replace(failures=0, stalls=0)
    if _takes_time(update, was_due=record.is_due, is_due=said.is_due):
        state = "queued" if said.is_due else "scheduled"
        record = record._replace(state=state, is_due=said.is_due)
    return record


def blocked(record: Record, known: Successor | None, said: Successor) -> Successor:
    """Return the successor of an active job after an update, which begins as a copy of the job."""
    update = read_update(said.update)
    takes_time = update.run_at is not UpdateRunAt.NEVER
    if known is None:
        word = Update(data=False, run_at=UpdateRunAt.NEVER, retry=False).word
        known = Successor(
            record.payload, record.keep_ms, record.max_stalls, is_due=True, update=word
        )
    elif read_update(known.update).run_at is not UpdateRunAt.NEVER:
        takes_time = _takes_time(update, was_due=known.is_due, is_due=said.is_due)
    return Successor(
        said.payload if update.data else known.payload,
        said.keep_ms if update.data else known.keep_ms,
        said.max_stalls if update.retry else known.max_stalls,
        said.is_due if takes_time else known.is_due,
        update.over(read_update(known.update)).word,
    )


def entered(successor: Successor) -> Record:
    """Return the job that a successor is once the one before it has ended."""
    state = "queued" if successor.is_due else "scheduled"
    payload, keep_ms, max_stalls, is_due, _ = successor
    return Record(state, payload, keep_ms, max_stalls, is_due=is_due)
