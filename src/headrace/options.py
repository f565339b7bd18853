"""What tasks and calls may ask for: each option's type, meaning, check and place, said once.

An option is a line in `JobOptions`, `TaskOptions` or what both share, and a row in `OPTIONS`. One
that is only stored needs no more: it goes with the job as a name and a value, which nobody knows
but its reader. One on which the storage acts is a field of `Job` too.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack, cast, get_type_hints

from headrace.clock import MAX_DURATION_MS, Duration, duration_ms, instant_ms
from headrace.errors import InvalidOption
from headrace.fail_jobs import StoredFailure, fail_task_name, stored_fail_task
from headrace.fairness import check_fair_by
from headrace.foreign import of_option
from headrace.hooks import Hook, Hooks, check_hook
from headrace.job import SLOTS_LIMIT, Job, check_name, check_text
from headrace.limit import Limit, limit_key
from headrace.named_task import NamedTask
from headrace.on_conflict import check_on_conflict, check_update_run_at, take_update
from headrace.pace import LEAST_MS, check_pace, check_window
from headrace.plain import shown
from headrace.retry import (
    ErrorKinds,
    Retry,
    RetryFunction,
    RetryRules,
    check_fail_on,
    check_retry,
    check_retry_on,
    check_stored_retry,
    check_strategy,
)
from headrace.settings import (
    MOST_ATTEMPTS,
    TaskSettings,
    check_count,
    check_flag,
    check_headers,
    check_needs,
    check_priority,
    resolve_retention,
)
from headrace.task_limits import check_keys, check_limits

Function = TypeVar("Function", bound=Callable[..., Any])


class SharedOptions(TypedDict, total=False):
    """Options of a task, and over these of one call. None says nothing.

    Durations are seconds or a `timedelta`, at most ten years.

    Attributes:
        queue: where jobs wait, default ``default``.
        priority: 0 to 9, 9 runs first, default 5.
        max_attempts: handler errors after which a job fails, 1 or more, default 3.
        max_stalls: worker deaths after which a job fails, 1 or more, default 3.
        timeout: how long one attempt may take, 1 ms or more, default without limit.
        result_ttl: how long the result is kept, default 1 hour; 0 keeps none.
        keep: how long the record of a completed or cancelled job is kept, default 1 hour or
            ``result_ttl`` if that is longer; 0 keeps nothing.
        on_failed: a task, or its name, of which a job comes in the same step that makes this one a
            dead letter; its handler takes (job id, arguments, `Failure`). Default: as the queue
            says.
        slots: how many slots of its lane a job holds while it runs, 1 to 1,000, default 1. Only
            workers that have so many in that lane take it.
    """

    queue: str | None
    priority: int | None
    max_attempts: int | None
    max_stalls: int | None
    timeout: Duration | None
    result_ttl: Duration | None
    keep: Duration | None
    on_failed: NamedTask | str | None
    slots: int | None


class TaskDefaults(SharedOptions, total=False):
    """Options of a task that several tasks may share.

    Attributes:
        retry: a `Retry`, or a function of (handler errors so far, last error) to seconds.
        retry_on: a class of exceptions, or several: an error of any other makes the job a dead
            letter at once, default all are worth another attempt.
        fail_on: those that make it a dead letter at once, whatever ``retry_on`` says, default none.
        on_success: called in the worker when an attempt has completed, see `Hook`.
        on_failure: called there when the job is about to become a dead letter.
        on_retry: called there when an attempt has failed and another one follows.
        skew_grace: how long a job waits for another release of the program whose arguments lack a
            field or have one that is not known here, default as the app says; 0: it fails at once.
        limits: `Limit`s that hold up its jobs in their queue, at most four, default none.
        fair_by: the parameter whose values take turns: of each one job at a time waits for a
            worker, so that a value with many jobs holds others up by one job a turn. Strings, whole
            numbers and None; it counts as one of the four limits. Default: in the order in which
            jobs come.
        debounce: of its calls the last runs, this long after it: 10 ms to a year, default 0: each
            runs. See `JobOptions`.
        throttle: of its calls within this, the first runs: 10 ms to a year, default 0: each does.
        validate: hold arguments against the annotations when they are enqueued, which raises
            `InvalidArguments`, and the result before it is stored; default as the app says.
    """

    retry: Retry | RetryFunction | None
    retry_on: ErrorKinds | None
    fail_on: ErrorKinds | None
    on_success: Hook | None
    on_failure: Hook | None
    on_retry: Hook | None
    skew_grace: Duration | None
    limits: Collection[Limit] | None
    fair_by: str | None
    debounce: Duration | None
    throttle: Duration | None
    validate: bool | None


class TaskOptions(TaskDefaults, total=False):
    """Options of a task.

    Attributes:
        name: what it is stored under, default ``module.qualname``.
        aliases: names that it had before and under which jobs may still come, default none.
        executor: ``"process"`` or ``"thread"`` for a ``def``, default ``"thread"``. A process
            imports the function by its module and name, and has no lifespan state.
        needs: the lane of its jobs, such as ``"gpu"``, named as queues are and neither
            ``default`` nor ``process``: only workers that serve it take them. Default: any worker
            of the queue, or for ``executor="process"`` any that has process slots.
    """

    name: str | None
    aliases: Collection[str] | None
    executor: Literal["thread", "process"] | None
    needs: str | None


class JobOptions(SharedOptions, total=False):
    """Options of one call.

    Attributes:
        id: unique in the queue, 1 to 256 bytes without control characters; while an earlier job
            with it waits, runs or is kept completed, enqueueing changes nothing, unless
            ``on_conflict`` says so. Default: a ULID.
        delay: start no earlier than this from now.
        run_at: start no earlier than this instant (aware); not with ``delay``.
        expires: start no later for the first time: a duration from now or an aware instant;
            else it fails as ``expired``. A job that has started does not expire any more.
        retry: how long it waits between attempts.
        headers: strings for the handler, 8 KiB together.
        idempotency_key: 1 to 256 bytes without control characters, apart from ``id``: a call whose
            key has come to the queue before stores nothing, and its handle is that of the first
            job with it, whatever has become of that.
        idempotency_ttl: how long the key is known from its first call on, default 24 hours, a
            second or more; only with a key.
        limit_keys: the keys of limits, by their names: in place of what the task's arguments say,
            and for who knows a task by its name only. A limit that the task does not declare holds
            as its queue knows it; one that the queue does not know holds from when it does.
        fair_key: the key that takes turns with others, in place of what ``fair_by`` of the task
            says, and for who knows a task by its name only. ``""``: that of jobs whose value is
            None.
        wait_timeout: how long ``enqueue_and_wait`` waits once the job is stored, default without
            limit. Nothing else heeds it.
        on_conflict: ``"update"``: a job with this ``id`` that waits is changed to what this call
            asks for; one that runs is followed by what this call asks for, or changed to it when it
            waits again; one that has ended makes room. Default ``"skip"``. What follows goes with
            ``"update"`` alone.
        update_data: change task, arguments, priority, headers, timeout, ``on_failed``, ``slots``
            and what is kept of its end, default True.
        update_run_at: change when it is due, and with that when it expires: True, the default,
            to ``delay`` or ``run_at`` or else now; ``"if_later"``, ``"if_earlier"``: if that is
            later or earlier than what it waits for; False: never.
        update_retry: change ``max_attempts``, ``max_stalls`` and ``retry``, default True.
        reset_counts: let failures, stalls and the error history begin anew, default False.
        debounce: the last of many calls runs, this long after it: each updates the job of the one
            before, or follows it if that runs. 10 ms to a year; calls of one ``id`` are one, and
            without it all of the task in the queue; not with a time, ``on_conflict`` or a key. It
            takes the place of what the task says, and 0 of that is none.
        throttle: the first of many calls runs, and those that come within this of it have its
            handle. Otherwise as ``debounce``, but that only a key has no place beside it.
    """

    id: str | None
    delay: Duration | None
    run_at: datetime | None
    expires: Duration | datetime | None
    retry: Retry | None
    headers: Mapping[str, str] | None
    idempotency_key: str | None
    idempotency_ttl: Duration | None
    limit_keys: Mapping[str, str | int | None] | None
    fair_key: str | int | None
    wait_timeout: Duration | None
    on_conflict: Literal["skip", "update"] | None
    update_data: bool | None
    update_run_at: bool | Literal["if_later", "if_earlier"] | None
    update_retry: bool | None
    reset_counts: bool | None
    debounce: Duration | None
    throttle: Duration | None


class WorkerOptions(TypedDict, total=False):
    """What a job says to its worker, over its task's own settings; as it is stored.

    What ``failed`` says only a storage can say.
    """

    max_attempts: int | None
    timeout_ms: int | None
    retry: Retry | None
    result_ttl_ms: int | None
    keep_ms: int | None
    headers: dict[str, str]
    failed: StoredFailure


class OptionRule(NamedTuple):
    """How one option is kept.

    Attributes:
        field: what it is called then, with its unit.
        convert: from what a caller says to what is kept.
        check: returns a kept value of a job that anybody made. Both raise `InvalidOption`.
        is_stored: whether it is among `Job.options`, for whoever reads them.
    """

    field: str
    convert: Callable[[Any], Any]
    check: Callable[[Any], Any]
    is_stored: bool = False


def _same(field: str, check: Callable[[Any], Any], *, is_stored: bool = False) -> OptionRule:
    return OptionRule(field, check, check, is_stored)


def _count(name: str, *, is_stored: bool = False) -> OptionRule:
    return _same(name, partial(check_count, name=name, most=MOST_ATTEMPTS), is_stored=is_stored)


def _flag(name: str) -> OptionRule:
    return _same(name, partial(check_flag, name=name))


def _window(name: str) -> OptionRule:
    return _same(f"{name}_ms", partial(check_window, name=name))


def _span(
    name: str, field: str = "", *, least_ms: int = 0, least_kept: int = 0, is_stored: bool = False
) -> OptionRule:
    field = field or f"{name}_ms"
    return OptionRule(
        field,
        partial(duration_ms, name=name, least_ms=least_ms),
        partial(check_count, name=field, least=least_kept, most=MAX_DURATION_MS),
        is_stored,
    )


def _instant(name: str, field: str) -> OptionRule:
    def check(value: Any) -> int:
        most = round(time.time() * 1000) + MAX_DURATION_MS
        return check_count(value, name=field, least=0, most=most)

    return OptionRule(field, partial(instant_ms, name=name), check)


def _check_aliases(aliases: Any) -> tuple[str, ...]:
    if isinstance(aliases, str) or not isinstance(aliases, Collection):
        raise InvalidOption(f"aliases={shown(aliases)}: pass a list of names")
    return tuple(check_text(alias, what="alias") for alias in aliases)


def _checked_key(key: Any) -> str:
    return check_text(key, what="idempotency_key")


def _checked_own_key(key: Any) -> str:
    return "" if key == "" else _checked_key(key)


OPTIONS: dict[str, OptionRule] = {
    "id": _same("id", partial(check_text, what="job id")),
    "queue": _same("queue", partial(check_name, what="queue")),
    "priority": _same("priority", check_priority),
    "delay": _span("delay"),
    "run_at": _instant("run_at", "run_at_ms"),
    "expires_in": _span("expires", "expires_in_ms", least_ms=1),
    "expires_at": _instant("expires", "expires_at_ms"),
    "max_attempts": _count("max_attempts", is_stored=True),
    "max_stalls": _count("max_stalls"),
    "timeout": _span("timeout", least_ms=1, least_kept=1, is_stored=True),
    "wait_timeout": _span("wait_timeout"),
    "limit_keys": _same("limit_keys", check_keys),
    "fair_key": _same("fair_key", partial(limit_key, of="fair_key")),
    "retry": OptionRule("retry", check_retry, check_stored_retry, is_stored=True),
    "result_ttl": _span("result_ttl", is_stored=True),
    "keep": _span("keep", is_stored=True),
    "headers": _same("headers", check_headers, is_stored=True),
    "on_conflict": _same("on_conflict", check_on_conflict),
    "update_data": _flag("update_data"),
    "update_run_at": _same("update_run_at", check_update_run_at),
    "update_retry": _flag("update_retry"),
    "reset_counts": _flag("reset_counts"),
    "idempotency_key": OptionRule("idempotency_key", _checked_key, _checked_own_key),
    "idempotency_ttl": _span("idempotency_ttl", least_ms=1000, least_kept=LEAST_MS),
    "debounce": _window("debounce"),
    "throttle": _window("throttle"),
    "on_failed": OptionRule("on_failed", fail_task_name, stored_fail_task),
    "slots": _same("slots", partial(check_count, name="slots", most=SLOTS_LIMIT)),
}
"""Each option by its name; ``expires`` is one of two."""

_TASK_OPTIONS = {
    **OPTIONS,
    "retry": _same("retry", check_strategy),
    "retry_on": _same("retry_on", check_retry_on),
    "fail_on": _same("fail_on", check_fail_on),
    **{name: _same(name, partial(check_hook, name=name)) for name in Hooks.__struct_fields__},
    "skew_grace": _span("skew_grace"),
    "limits": _same("limits", check_limits),
    "fair_by": _same("fair_by", check_fair_by),
    "validate": _flag("validate"),
    "aliases": _same("aliases", _check_aliases),
    "needs": _same("needs", check_needs),
}
_OF_A_TASK = frozenset(TaskOptions.__annotations__)
CALL_OPTIONS = frozenset(JobOptions.__annotations__)


def task_settings(**said: Unpack[TaskOptions]) -> TaskSettings:
    """Check and convert what a declaration says; its name and executor are the app's to check.

    Raises:
        InvalidOption: a value is out of bounds.
    """
    _check_names(said, _OF_A_TASK, "App.task")
    kept = _kept(said, _TASK_OPTIONS, TaskSettings())
    check_pace(kept.get("debounce_ms", 0), kept.get("throttle_ms", 0))
    rules = RetryRules(kept.pop("retry_on", None), kept.pop("fail_on", ()))
    hooks = {name: (kept.pop(name),) for name in Hooks.__struct_fields__ if name in kept}
    return TaskSettings(**kept, retry_rules=rules, hooks=Hooks(**hooks) if hooks else None)


def over(*said: Mapping[str, Any]) -> TaskOptions:
    """Return a task's options, of which several say some; the last that says one counts."""
    found: dict[str, Any] = {}
    for options in said:
        found.update((name, value) for name, value in options.items() if value is not None)
    return cast(TaskOptions, found)


def job_fields(task: TaskSettings, said: JobOptions) -> dict[str, Any]:
    """Check and convert what one call asks for beyond its task's settings.

    Returns:
        What it comes to, by the fields of `OPTIONS`, those about an update as one ``update``.

    Raises:
        InvalidOption: a value is out of bounds.
    """
    _check_names(said, CALL_OPTIONS, "Task.options")
    delay, run_at = said.get("delay"), said.get("run_at")
    if delay is not None and run_at is not None:
        raise InvalidOption(f"delay={shown(delay)} and run_at={shown(run_at)}: say one of them")
    ttl = said.get("idempotency_ttl")
    if ttl is not None and said.get("idempotency_key") is None:
        raise InvalidOption(f"idempotency_ttl={shown(ttl)} goes with an idempotency_key: say one")
    fields = _kept(said, OPTIONS, task)
    if update := take_update(fields):
        fields["update"] = update
    return fields


def _check_names(said: Mapping[str, object], options: frozenset[str], taker: str) -> None:
    if not options.issuperset(said):
        name = next(name for name in said if name not in options)
        hint = _elsewhere(name, options) or of_option(name, options)
        raise TypeError(f"{taker}() got an unexpected keyword argument {name!r}{hint}")


def _elsewhere(name: str, options: frozenset[str]) -> str:
    """Return where an option is said that is none here, as the end of a message; "" if nowhere."""
    if name in CALL_OPTIONS - options:
        return f": it is said by a call, as in task.options({name}=...)"
    if name in _OF_A_TASK - options:
        return f": it is said by the task, as in @app.task({name}=...)"
    return ""


def _kept(
    said: Mapping[str, Any], options: Mapping[str, OptionRule], base: TaskSettings
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in said.items():
        if name == "expires":
            name += "_at" if isinstance(value, datetime) else "_in"
        option = options.get(name)
        if option is not None and value is not None:
            kept[option.field] = option.convert(value)
    if "result_ttl_ms" in kept or "keep_ms" in kept:
        kept["result_ttl_ms"], kept["keep_ms"] = resolve_retention(
            kept.get("result_ttl_ms"), kept.get("keep_ms"), base
        )
    return kept


_JOB_CHECKS = {
    option.field: option.check
    for option in OPTIONS.values()
    if option.field in Job.__struct_fields__
}


def check_fields(job: Job) -> dict[str, Any]:
    """Return the fields that are options of a job that anybody made, as plain values.

    Raises:
        InvalidOption: a value is out of bounds.
    """
    return {field: check(getattr(job, field)) for field, check in _JOB_CHECKS.items()}


def spelled_out(*kinds: type) -> Callable[[Function], Function]:
    """Let the signature and the help of a function that takes ``**options`` list them."""

    def decorate(function: Function) -> Function:
        plain = inspect.signature(function)
        taken = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in get_type_hints(kinds[-1]).items()
        ]
        function.__signature__ = plain.replace(parameters=taken)  # type: ignore[attr-defined]
        texts = [inspect.cleandoc(kind.__doc__ or "") for kind in kinds]
        listed = "\n".join(text.partition("Attributes:\n")[2].rstrip() for text in texts)
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{listed}\n"
        return function

    return decorate
