"""F37: a task and its parameters may be renamed while jobs with the old names are there."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from headrace import Alias, App, InvalidOption, JobFailed, UsageError
from headrace.job import Job
from headrace.testing import Kit
from headrace.worker.limits import process_functions


@pytest.fixture
def app() -> App[None]:
    return App("memory://")


async def run(app: App[Any], task: str, payload: bytes) -> Any:
    """Run a job that another release has stored, and return its result."""
    async with Kit(app) as kit:
        [job] = await app.enqueue_many([Job("x", "default", task, payload)])
        await kit.run_until_idle()
        return await job.result()


async def test_f37_a_renamed_task_runs_the_jobs_of_its_old_names(app: App[None]) -> None:
    @app.task(name="shop.post", aliases=["shop.mail.send", "send"])
    async def post(to: str) -> str:
        return f"to {to}"

    for name in ("shop.post", "shop.mail.send", "send"):
        assert await run(app, name, b'{"to":"Ada"}') == "to Ada"
    assert post.job("Ada").task == "shop.post"
    async with Kit(app):
        job = await app.enqueue("send", "Ada")
        assert (await job.status()).task == "shop.post"


def test_f37_an_alias_may_not_be_another_tasks_name(app: App[None]) -> None:
    @app.task(name="send", aliases=["send", "mail"])
    async def send() -> None: ...

    async def post() -> None: ...

    for options in ({"name": "mail"}, {"name": "post", "aliases": ["send"]}):
        with pytest.raises(UsageError, match=r"the task name '(mail|send)' is taken"):
            app.task(**options)(post)
    assert list(app.tasks) == ["send", "mail"]


@pytest.mark.parametrize("aliases", ["send", [""], [5], 5])
def test_f37_aliases_are_a_list_of_names(app: App[None], aliases: Any) -> None:
    with pytest.raises(InvalidOption, match="alias"):
        app.task(aliases=aliases)


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        (b'{"recipient":"Ada"}', "to Ada, 0"),
        (b'{"to":"Ada"}', "to Ada, 0"),
        (b'{"address":"Ada","count":2}', "to Ada, 2"),
        (b'{"to":"Ada","tries":2}', "to Ada, 2"),
    ],
)
async def test_f37_a_renamed_parameter_takes_arguments_by_its_old_names(
    app: App[None], payload: bytes, result: str
) -> None:
    @app.task(name="send")
    async def send(
        recipient: Annotated[str, Alias("to", "address")],
        count: Annotated[int, Alias("tries")] = 0,
    ) -> str:
        return f"to {recipient}, {count}"

    assert await run(app, "send", payload) == result
    assert send.job("Ada").payload == b'{"recipient":"Ada"}'


async def test_f37_values_come_through_a_renaming_as_they_are(app: App[None]) -> None:
    @app.task(name="keep")
    async def keep(value: Annotated[dict[str, int | float | str], Alias("old")]) -> Any:
        return value

    value = {"a": 2**70, "b": 1e300, "c": "é\u2028", "d": -0.5}
    payload = msgspec.json.encode({"old": value})
    assert await run(app, "keep", payload) == value


@pytest.mark.parametrize(
    "payload", [b'{"to":5}', b'{"to":"a","recipient":"b"}', b'{"two":"a"}', b"[]", b'"to"']
)
async def test_f37_what_fits_by_no_name_is_undecodable(app: App[None], payload: bytes) -> None:
    @app.task(name="send", skew_grace=0)
    async def send(recipient: Annotated[str, Alias("to")]) -> None: ...

    with pytest.raises(JobFailed, match=r"undecodable\): msgspec.ValidationError"):
        await run(app, "send", payload)


def test_f37_an_alias_of_a_parameter_may_not_be_anothers_name(app: App[None]) -> None:
    async def send(a: Annotated[str, Alias("b")], b: str) -> None: ...

    async def post(a: Annotated[str, Alias("c")], b: Annotated[str, Alias("c")]) -> None: ...

    for function in (send, post):
        with pytest.raises(UsageError, match="is a name of another one"):
            app.task(function)


@pytest.mark.parametrize("names", [(), ("",), ("a b",), (5,)])
def test_f37_an_alias_is_the_name_of_a_parameter(names: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidOption, match="pass one or more names of a parameter"):
        Alias(*names)


app_of_processes: App[None] = App("memory://")


@app_of_processes.task(executor="process", name="new", aliases=["old"])
def in_process(number: Annotated[int, Alias("count")]) -> int:
    return number


async def test_f37_process_tasks_are_found_by_their_old_names() -> None:
    assert list(process_functions(app_of_processes)) == ["new", "old"]
    assert await run(app_of_processes, "old", b'{"count":3}') == 3
