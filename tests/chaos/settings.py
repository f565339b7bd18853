"""What a run is asked for, and what holds in every run."""

from __future__ import annotations

import msgspec

LEASE_S = 3.0
SWEEP_S = 1.0
RECOVERED_S = LEASE_S + SWEEP_S + 1.0
"""G3 for these workers."""

GRACE_S = 1.0
LEAVES_S = GRACE_S + 15.0
"""How long a worker may take to end after SIGTERM: its grace, what is stuck, a storage away."""

NOISE_S = 3.0
"""What a busy machine may add to a bound."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        storage: ``redis`` or ``file``.
        seed: of every draw.
        jobs: how many, of all producers.
        seconds: how long jobs come and faults strike.
        faults: how many.
        only: names of the faults that may strike; none: all of that storage.
        leave_out: names of the faults that may not.
        one_in: how rare some kinds of jobs are, 0 for never; others as the plan says.
        mutant: the name of a storage that is wrong on purpose.
        drain_s: how long it may take until all jobs have ended, after the last fault.
    """

    storage: str
    seed: int
    jobs: int
    seconds: float
    faults: int
    only: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    one_in: dict[str, int] = {}
    mutant: str = ""
    drain_s: float = 60.0
