"""What other job queues call things, and what these are called here: for errors alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headrace.nearest import nearest

_ATTEMPTS = "max_attempts=, which counts the first attempt too"
_RETRY = "retry=Retry(min=..., max=...)"
_AT_ONCE = "limits=[Limit(concurrency=...)] of the task"
_RATE = "limits=[Limit(rate=...)] of the task"
_ONE = "an id, as in task.options(id=...)"

OPTIONS: Mapping[str, str] = {
    "countdown": "delay=",
    "defer_by": "delay=",
    "eta": "run_at=",
    "defer_until": "run_at=",
    "scheduled": "run_at=",
    "max_retries": _ATTEMPTS,
    "max_retry": _ATTEMPTS,
    "retries": _ATTEMPTS,
    "max_tries": _ATTEMPTS,
    "job_id": "id=",
    "task_id": "id=",
    "key": "id=",
    "queue_name": "queue=",
    "actor_name": "name=",
    "task_name": "name=",
    "time_limit": "timeout=",
    "soft_time_limit": "timeout=",
    "job_timeout": "timeout=",
    "max_age": "expires=",
    "keep_result": "result_ttl=",
    "min_backoff": _RETRY,
    "max_backoff": _RETRY,
    "retry_backoff": _RETRY,
    "retry_delay": _RETRY,
    "default_retry_delay": _RETRY,
    "autoretry_for": "retry_on=",
    "retry_when": "retry_on=",
    "throws": "fail_on=",
    "labels": "headers=",
    "meta": "headers=",
    "timezone": "tz=",
    "misfire_grace_time": "catch_up=",
    "coalesce": "catch_up='latest'",
    "max_instances": "overlap='skip'",
    "start_date": "start=",
    "end_date": "end=",
    "concurrency": _AT_ONCE,
    "max_concurrency": _AT_ONCE,
    "concurrency_limit": _AT_ONCE,
    "max_active": _AT_ONCE,
    "rate_limit": _RATE,
    "unique": _ONE,
    "singleton": _ONE,
    "dedup_key": _ONE,
    "fairness": "fair_by= of the task",
    "fairness_key": "fair_key= of a call",
    "lane": "needs= of the task",
    "link_error": "on_failed=",
    "bind": "a first parameter `context: Context`",
}
"""By options of others, without arq's underscore before them."""

_ENQUEUE = "`await task.enqueue(...)`"
_WITH_OPTIONS = "`await task.options(...).enqueue(...)`"
_BY_NAME = "`await app.enqueue(name, ...)`"
_RESULT = "`await handle.result(timeout=...)`"

OF_TASKS: Mapping[str, str] = {
    "delay": _ENQUEUE,
    "send": _ENQUEUE,
    "kiq": _ENQUEUE,
    "apply_async": _WITH_OPTIONS,
    "send_with_options": _WITH_OPTIONS,
    "schedule": _WITH_OPTIONS,
    "kicker": _WITH_OPTIONS,
    "with_labels": _WITH_OPTIONS,
    "s": "`task.job(...)`",
    "si": "`task.job(...)`",
    "message": "`task.job(...)`",
    "fn": "`task.function`",
    "original_func": "`task.function`",
    "apply": "`task(...)`, a call of the function",
    "call_local": "`task(...)`, a call of the function",
    "run": "`task(...)`, a call of the function",
}
OF_APPS: Mapping[str, str] = {
    "enqueue_job": _BY_NAME,
    "send_task": _BY_NAME,
    "actor": "`@app.task`",
    "job_function": "`@app.task`",
    "periodic_task": "`@app.cron(...)` or `@app.every(...)`",
    "add_periodic_task": "`app.schedule(...)`",
    "add_cron_job": "`app.schedule(...)`",
    "scheduled_job": "`@app.cron(...)` or `@app.every(...)`",
}
OF_HANDLES: Mapping[str, str] = {
    "get": _RESULT,
    "wait": _RESULT,
    "wait_result": _RESULT,
    "get_result": _RESULT,
    "revoke": "`await handle.cancel()`",
    "abort": "`await handle.cancel()`",
    "state": "`(await handle.status()).state`",
    "info": "`await handle.status()`",
    "refresh": "`await handle.status()`",
    "job_id": "`handle.id`",
    "task_id": "`handle.id`",
}


def without_await(words: Mapping[str, str]) -> Mapping[str, str]:
    """Return what things are called where nothing is awaited."""
    return {
        word: here.replace("(await handle.status())", "handle.status()").replace("await ", "")
        for word, here in words.items()
    }


class ForeignWord:
    """An attribute that others have and this object has not; whoever asks is told what it is here.

    A ``__getattr__`` would do it without a descriptor each, and make a job take a quarter longer.
    """

    def __init__(self, word: str, here: str) -> None:
        self._word = word
        self._here = here

    def __get__(self, instance: object, owner: type) -> ForeignWord:
        if instance is None:
            return self
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._word!r}: here it is {self._here}"
        )


class WithForeignWords:
    """Gives its subclasses the words of others, which is no attribute and no completion of theirs.

    As in ``class Task(WithForeignWords, words=OF_TASKS)``.
    """

    __slots__ = ()

    def __init_subclass__(cls, *, words: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for word, here in (words or {}).items():
            setattr(cls, word, ForeignWord(word, here))

    def __dir__(self) -> list[str]:
        kind = type(self)
        return [
            name
            for name in object.__dir__(self)
            if not isinstance(getattr(kind, name, None), ForeignWord)
        ]


def of_option(word: str, options: Collection[str]) -> str:
    """Return what an unknown option may have meant, as the end of a message; "" if nothing.

    Args:
        word: the option.
        options: those that would be taken.
    """
    here = OPTIONS.get(word.removeprefix("_"))
    if here is not None:
        return f": here it is {here}"
    meant = nearest(word, options)
    return f": did you mean {meant}=" if meant else ""


def of_arguments(names: Iterable[str], options: Collection[str]) -> str:
    """Return what is to be done if options are among a call's arguments, else "".

    Args:
        names: the arguments that the function doesn't take.
        options: those of a call.
    """
    for name in names:
        option = OPTIONS.get(name.removeprefix("_"), f"{name}=").partition("=")[0]
        if option in options:
            end = ", and .options(wait_timeout=...) bounds the wait" if option == "timeout" else ""
            return f": options go to .options({option}=...){end}"
    return ""
