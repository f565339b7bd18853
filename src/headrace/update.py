"""What an enqueue changes of the job that has its id already, as storages take it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class UpdateRunAt(StrEnum):
    """When an update sets the time at which the job is due; each is its letter in `Update.word`.

    A job that is due already is compared as one whose time is in the past.
    """

    NEVER = "0"
    ALWAYS = "1"
    IF_LATER = "l"
    IF_EARLIER = "e"


class Update(msgspec.Struct, frozen=True):
    """Which parts of a job an enqueue of its id sets to what it asks for.

    Attributes:
        data: task, arguments, lane, slots, priority, headers, timeout, the task for its failure,
            and what is kept of its end.
        run_at: when it is due, and with that when it expires; none said is now.
        retry: how often it is tried, how many worker deaths it outlives, how long retries wait.
        reset_counts: failures, stalls and the error history begin anew.
    """

    data: bool = True
    run_at: UpdateRunAt = UpdateRunAt.ALWAYS
    retry: bool = True
    reset_counts: bool = False

    @property
    def word(self) -> str:
        """Itself in four characters, one for each attribute: ``1110`` is the default."""
        return f"{self.data:d}{self.run_at}{self.retry:d}{self.reset_counts:d}"

    def over(self, earlier: Update) -> Update:
        """Return what both change together, the earlier one first: the newest time counts."""
        return Update(
            self.data or earlier.data,
            earlier.run_at if self.run_at is UpdateRunAt.NEVER else self.run_at,
            self.retry or earlier.retry,
            self.reset_counts or earlier.reset_counts,
        )


def read_update(word: str) -> Update:
    """Return the update that has this `Update.word`."""
    data, run_at, retry, reset_counts = list(word)
    return Update(data == "1", UpdateRunAt(run_at), retry == "1", reset_counts == "1")


def join_options(data: bytes, retry: bytes) -> bytes:
    """Return `Job.options` of those that are its data, and of those about its retries."""
    return data + b"\n" + retry if retry else data


def cut_options(options: bytes) -> tuple[bytes, bytes]:
    """Return the two parts of `Job.options`."""
    data, _, retry = options.partition(b"\n")
    return data, retry
