"""P22, F23: who writes what another library takes is told what it is here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import App, InvalidArguments
from tests.support.nowhere import unreachable_app


@pytest.fixture
async def app() -> AsyncIterator[App[None]]:
    """Return an app that could send nothing: what is wrong is told before."""
    async with unreachable_app() as app:
        yield app


@pytest.fixture
def send(app: App[None]) -> Any:
    @app.task(name="send")
    async def send(to: str, delay_by: int = 0) -> None: ...

    return send


@pytest.mark.parametrize(
    ("word", "here"),
    [
        ("delay", "await task.enqueue("),
        ("apply_async", "await task.options(...).enqueue("),
        ("send_with_options", "await task.options(...).enqueue("),
        ("send", "await task.enqueue("),
        ("kiq", "await task.enqueue("),
        ("s", "task.job("),
        ("fn", "task.function"),
    ],
)
def test_p22_methods_of_other_tasks_name_ours(send: Any, word: str, here: str) -> None:
    """P22: Celery's, Dramatiq's and taskiq's."""
    for call in (send, send.options(priority=9)):
        with pytest.raises(
            AttributeError, match=f"has no attribute '{word}': here it is"
        ) as caught:
            getattr(call, word)
        assert here in str(caught.value)
        assert not hasattr(call, word)
        assert word not in dir(call)


def test_p22_a_name_that_nobody_has_is_a_plain_attribute_error(send: Any) -> None:
    """P22: as of every object."""
    with pytest.raises(AttributeError, match=r"'CoroutineTask' object has no attribute 'wrong'$"):
        _ = send.wrong


def test_p22_other_apps_and_handles_too(app: App[None], send: Any) -> None:
    """P22: arq's pool, Celery's app and result."""
    anything: Any = app
    handle: Any = app.job("x")
    with pytest.raises(AttributeError, match=r"await app\.enqueue\(name"):
        _ = anything.enqueue_job
    with pytest.raises(AttributeError, match=r"await app\.enqueue\(name"):
        _ = anything.send_task
    with pytest.raises(AttributeError, match=r"await handle\.result\(timeout=\.\.\.\)"):
        _ = handle.get


@pytest.mark.parametrize(
    ("option", "here"),
    [
        ("countdown", "delay="),
        ("eta", "run_at="),
        ("_defer_by", "delay="),
        ("_defer_until", "run_at="),
        ("max_retries", "max_attempts=, which counts the first attempt too"),
        ("retries", "max_attempts=, which counts the first attempt too"),
        ("job_id", "id="),
        ("_job_id", "id="),
        ("task_id", "id="),
        ("queue_name", "queue="),
        ("max_attempt", "max_attempts="),
        ("prioritiy", "priority="),
    ],
)
def test_p22_options_of_others_and_typos_name_ours(
    app: App[None], send: Any, option: str, here: str
) -> None:
    """P22: on a call; and on a task, as far as it has them."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'") as caught:
        send.options(**{option: 1})
    assert str(caught.value).endswith(here)
    if here.startswith(("max_", "queue", "priority")):
        wrong: dict[str, Any] = {option: 1}
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'") as caught:
            app.task(**wrong)
        assert str(caught.value).endswith(here)


@pytest.mark.parametrize(
    ("option", "here"),
    [
        ("concurrency", "limits=[Limit(concurrency=...)] of the task"),
        ("rate_limit", "limits=[Limit(rate=...)] of the task"),
        ("lane", "needs= of the task"),
        ("unique", "an id, as in task.options(id=...)"),
    ],
)
def test_p22_limits_and_lanes_of_others_name_ours(
    app: App[None], send: Any, option: str, here: str
) -> None:
    """P22: whichever of the two is asked."""
    wrong: dict[str, Any] = {option: 1}
    for take in (send.options, app.task):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'") as caught:
            take(**wrong)
        assert str(caught.value).endswith(f": here it is {here}")


def test_p22_an_option_in_the_other_place_says_where_it_belongs(app: App[None], send: Any) -> None:
    """P22: a task has some, a call others."""
    wrong: dict[str, Any] = {"on_conflict": "update"}
    with pytest.raises(
        TypeError, match=r"said by a call, as in task\.options\(on_conflict=\.\.\.\)"
    ):
        app.task(**wrong)
    with pytest.raises(TypeError, match=r"said by the task, as in @app\.task\(needs=\.\.\.\)"):
        send.options(needs="gpu")


def test_p22_an_option_that_nobody_has_is_a_plain_type_error(send: Any) -> None:
    """P22: without a guess."""
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'xyz'$"):
        send.options(xyz=1)


def test_p22_the_bind_of_celery_is_a_context(app: App[None]) -> None:
    """P22: an option of the declaration alone."""
    wrong: dict[str, Any] = {"bind": True}
    with pytest.raises(TypeError, match="a first parameter `context: Context`"):
        app.task(**wrong)


@pytest.mark.parametrize("method", ["enqueue", "enqueue_and_wait"])
async def test_f23_an_option_among_the_arguments_is_told_its_place(send: Any, method: str) -> None:
    """F23: `timeout` has two meanings, and each has a word."""
    call = getattr(send, method)
    with pytest.raises(InvalidArguments, match=r"'delay'.*: options go to \.options\(delay="):
        await call("a", delay=5)
    with pytest.raises(InvalidArguments, match=r"\.options\(delay=") as caught:
        await call("a", countdown=5)
    with pytest.raises(InvalidArguments, match=r"\.options\(timeout=.*wait_timeout=") as caught:
        await call("a", timeout=5)
    with pytest.raises(InvalidArguments) as caught:
        await call("a", wrong=5)
    assert ".options" not in str(caught.value)
