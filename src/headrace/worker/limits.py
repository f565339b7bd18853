"""What a worker may take and do: checked and converted. No I/O."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.app import App
from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption, UsageError
from headrace.job import check_name
from headrace.plain import cut, shown
from headrace.settings import ExecutorKind, TaskSettings, check_count
from headrace.worker.lane_slots import LaneSlots
from headrace.worker.process_slots.functions import Function, find

LONGEST_LEASE_MS = 3_600_000
MOST_THREADS = 10_000


class Wear(msgspec.Struct, frozen=True):
    """When a child is replaced between two jobs; 0: never for that cause."""

    max_jobs: int = 0
    max_resident_bytes: int = 0

    def is_over(self, jobs: int, resident_bytes: int) -> str:
        """Return why a child that ran so many jobs is worn, "" if it isn't."""
        if self.max_jobs and jobs >= self.max_jobs:
            return f"it ran {jobs} jobs"
        if self.max_resident_bytes and resident_bytes > self.max_resident_bytes:
            return f"it has {resident_bytes:,} bytes of memory"
        return ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's settings; `headrace.Worker` says what each means. 0 of a bound: there is none."""

    queues: dict[str, int]
    lanes: LaneSlots
    threads: int
    wear: Wear
    process_memory_bytes: int
    lease_ms: int
    grace_s: float
    sweep_s: float
    loop_stall_s: float
    start_s: float
    end_s: float
    max_jobs: int
    max_resident_bytes: int
    max_lifetime_s: float

    @property
    def concurrency(self) -> int:
        """How many attempts run at once in the event loop and in threads."""
        return self.lanes.beside_processes

    @property
    def has_end(self) -> bool:
        """Whether the worker is to end by itself."""
        return bool(self.max_jobs or self.max_resident_bytes or self.max_lifetime_s)


def check_limits(
    queues: dict[str, int],
    lanes: LaneSlots,
    *,
    threads: int | None,
    process_max_jobs: int | None,
    process_max_memory: int | None,
    process_memory_limit: int | None,
    lease: Duration,
    shutdown_timeout: Duration,
    sweep_interval: Duration,
    max_loop_stall: Duration | None,
    startup_timeout: Duration,
    teardown_timeout: Duration,
    max_jobs: int | None,
    max_memory: int | None,
    max_lifetime: Duration | None,
) -> Limits:
    """Check and convert what `headrace.Worker` takes.

    Raises:
        InvalidOption: a value is out of bounds.
    """
    lease_ms = duration_ms(lease, name="lease", least_ms=500)
    if lease_ms > LONGEST_LEASE_MS:
        raise InvalidOption(f"lease={shown(lease)} is out of bounds: use 0.5 seconds to an hour")
    stall = 4 * lease_ms / 1000 if max_loop_stall is None else max_loop_stall
    return Limits(
        queues=queues,
        lanes=lanes,
        threads=_count(threads, lanes.beside_processes or 1, name="threads", most=MOST_THREADS),
        wear=Wear(
            max_jobs=_bound(process_max_jobs, name="process_max_jobs"),
            max_resident_bytes=_bound(process_max_memory, name="process_max_memory"),
        ),
        process_memory_bytes=_bound(process_memory_limit, name="process_memory_limit"),
        lease_ms=lease_ms,
        grace_s=duration_ms(shutdown_timeout, name="shutdown_timeout") / 1000,
        sweep_s=duration_ms(sweep_interval, name="sweep_interval", least_ms=10) / 1000,
        loop_stall_s=duration_ms(stall, name="max_loop_stall", least_ms=1) / 1000,
        start_s=duration_ms(startup_timeout, name="startup_timeout", least_ms=1) / 1000,
        end_s=duration_ms(teardown_timeout, name="teardown_timeout", least_ms=1) / 1000,
        max_jobs=_bound(max_jobs, name="max_jobs"),
        max_resident_bytes=_bound(max_memory, name="max_memory"),
        max_lifetime_s=0.0
        if max_lifetime is None
        else duration_ms(max_lifetime, name="max_lifetime", least_ms=1) / 1000,
    )


def _count(value: int | None, default: int, *, name: str, most: int, least: int = 1) -> int:
    return default if value is None else check_count(value, name=name, most=most, least=least)


def _bound(value: int | None, *, name: str) -> int:
    return _count(value, 0, name=name, most=2**62)


def process_functions(app: App[Any]) -> dict[str, Function]:
    """Return, by task, where child processes find the functions that run there.

    Raises:
        UsageError: a function isn't importable, or a retry function, encoder or decoder can't be
            passed on.
    """
    found = {}
    for name, task in app.tasks.items():
        if task.settings.executor is ExecutorKind.PROCESS:
            try:
                found[name] = find(task.function)
            except LookupError as error:
                raise UsageError(
                    f"the task {name!r} has executor='process', but another process can't import "
                    f"its function: {error}. Define it at the top level of a module, and bind the "
                    "task or the function to its name there"
                ) from error
            _check_retry(name, task.settings)
    if found:
        _check_codec(app)
    return found


def _check_retry(name: str, settings: TaskSettings) -> None:
    rules = settings.retry_rules
    kinds = [
        *[("retry_on", kind) for kind in rules.retry_on or ()],
        *[("fail_on", kind) for kind in rules.fail_on],
    ]
    for option, value in [("retry", settings.retry), *kinds]:
        try:
            pickle.dumps(value)
        except Exception as error:  # pickle raises what it likes
            raise UsageError(
                f"the task {name!r} has executor='process', but its {option}={shown(value)} can't "
                "be passed to another process: define it at the top level of a module"
            ) from error


def _check_codec(app: App[Any]) -> None:
    try:
        pickle.dumps(app.codec)
    except Exception as error:  # as above
        raise UsageError(
            "the app has tasks with executor='process', but its encoders and decoders can't be "
            f"passed to another process ({cut(str(error))}): use classes and functions at the top "
            "level of a module, not a lambda"
        ) from error


def queue_weights(
    app: App[Any], queues: Mapping[str, int] | Sequence[str] | None
) -> dict[str, int]:
    """Return the queues to serve and their weights.

    Raises:
        UsageError: there are none.
        InvalidOption: a name or weight is not valid.
    """
    if queues is not None and (isinstance(queues, str) or not isinstance(queues, Iterable)):
        raise InvalidOption(f"queues={shown(queues)}: pass a list of names or a dict of weights")
    if queues is None:
        weights: dict[str, int] = dict.fromkeys(
            sorted({t.settings.queue for t in app.tasks.values()}), 1
        )
    elif isinstance(queues, Mapping):
        weights = dict(queues)
    else:
        weights = dict.fromkeys(queues, 1)
    if not weights:
        raise UsageError(
            "there is no queue to serve: the app has no tasks and no queues are named. Import the "
            "modules that declare tasks, by App(include=[...]) or headrace worker --import, and "
            "include their blueprints"
        )
    return {
        check_name(queue, what="queue"): check_count(
            weight, name=f"the weight of queue {shown(queue)}", most=1000
        )
        for queue, weight in weights.items()
    }
