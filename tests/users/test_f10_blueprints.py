"""F10: tasks that are declared without an app, and included in one later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from headrace import App, Blueprint, Context, InvalidArguments, InvalidOption, Retry, UsageError
from headrace.settings import ExecutorKind, TaskSettings
from headrace.testing import Kit
from headrace.worker.limits import process_functions

HERE = __name__

work: Blueprint[str] = Blueprint()


@work.task
def in_thread(_context: Context[str], number: int) -> int:
    return number


@work.task(executor="process")
def in_process(number: int) -> int:
    return number


@dataclass
class Point:
    x: int


@dataclass
class Size:
    x: int


def app() -> App[None]:
    return App("memory://")


async def test_f10_a_task_of_a_blueprint_is_the_apps_once_it_is_included() -> None:
    mail = Blueprint(queue="mail")

    @mail.task(name="send", timeout=5)
    async def send(to: str) -> str:
        return f"sent to {to}"

    shop = app()
    shop.include(mail)
    assert shop.tasks == {"send": send}
    assert (send.settings.queue, send.settings.timeout_ms) == ("mail", 5_000)
    async with Kit(shop) as kit:
        assert await send.enqueue_and_wait("Ada") == "sent to Ada"
        job = await shop.enqueue("send", "Bob")
        await kit.run_until_idle()
        assert await job.result() == "sent to Bob"


async def test_f10_before_that_it_is_a_function_and_says_what_is_missing() -> None:
    mail = Blueprint()

    @mail.task
    async def send(to: str) -> str:
        return f"sent to {to}"

    assert await send("Ada") == "sent to Ada"
    for call in (send, send.options(priority=9)):
        with pytest.raises(UsageError, match=r"no app includes yet: app\.include\(blueprint\)"):
            await call.enqueue("Ada")
        with pytest.raises(UsageError, match="no app includes yet"):
            call.job("Ada")
        with pytest.raises(UsageError, match="no app includes yet"):
            await call.enqueue_and_wait("Ada")


async def test_f10_options_that_were_said_before_hold_in_the_app() -> None:
    mail = Blueprint()

    @mail.task
    async def send() -> None: ...

    urgent = send.options(priority=9)
    shop = app()
    shop.include(mail, prefix="mail.", queue="post")
    job = urgent.job()
    assert (job.queue, job.priority, job.task) == ("post", 9, send.name)
    async with Kit(shop) as kit:
        await urgent.enqueue()
        kit.assert_enqueued(send, priority=9)


def test_f10_names_are_the_modules_or_begin_with_the_prefixes() -> None:
    where = "test_f10_names_are_the_modules_or_begin_with_the_prefixes.<locals>"
    plain, short = Blueprint(), Blueprint(prefix="mail.")

    async def send() -> None: ...

    plain.task(send)
    short.task(send)
    short.task(name="bounce")(send)
    shop = app()
    shop.include(plain)
    shop.include(short, prefix="shop.")
    assert list(shop.tasks) == [
        f"{HERE}.{where}.send",
        f"shop.mail.{where}.send",
        "shop.mail.bounce",
    ]
    assert [task.name for task in shop.tasks.values()] == list(shop.tasks)


def settings(task: Any) -> TaskSettings:
    found = task.settings
    assert isinstance(found, TaskSettings)
    return found


def test_f10_what_the_task_says_goes_before_the_include_and_that_before_the_blueprint() -> None:
    mail = Blueprint(queue="blueprint", priority=1, max_attempts=7)

    @mail.task(name="a")
    async def a() -> None: ...

    @mail.task(name="b", queue="task", priority=3)
    async def b() -> None: ...

    shop = App("memory://", skew_grace=1)
    shop.include(mail, queue="include", priority=2, retry=Retry(min=5, max=5))
    assert (settings(a).queue, settings(a).priority, settings(a).max_attempts) == ("include", 2, 7)
    assert (settings(b).queue, settings(b).priority) == ("task", 3)
    assert settings(a).retry == Retry(min=5, max=5)
    assert settings(a).skew_grace_ms == 1_000


def test_f10_blueprints_include_others_at_any_time() -> None:
    outer, inner = Blueprint(prefix="outer.", queue="outer"), Blueprint(prefix="inner.")
    shop = app()
    shop.include(outer, prefix="shop.")
    outer.include(inner, prefix="x.", priority=2)

    @inner.task(name="send")
    async def send() -> None: ...

    assert list(shop.tasks) == ["shop.outer.x.inner.send"]
    assert (settings(send).queue, settings(send).priority) == ("outer", 2)
    assert inner.tasks == outer.tasks == shop.tasks


def test_f10_handlers_of_all_kinds_are_included() -> None:
    shop = app()
    shop.include(work)
    assert in_thread.job(1).payload == b'{"number":1}'
    assert in_process(2) == 2
    assert settings(in_process).executor is ExecutorKind.PROCESS
    assert in_process.job(1).lane == "process"
    assert list(process_functions(shop)) == [f"{HERE}.in_process"]


def test_f10_what_can_not_be_included_is_refused() -> None:
    mail = Blueprint()
    shop, other = app(), app()
    shop.include(mail)
    for registry in (shop, other, Blueprint()):
        with pytest.raises(UsageError, match="included already: include it once"):
            registry.include(mail)
    outer, middle, inner = Blueprint(), Blueprint(), Blueprint()
    outer.include(middle)
    middle.include(inner)
    for blueprint in (outer, inner):
        with pytest.raises(UsageError, match="can't include itself"):
            inner.include(blueprint)
    with pytest.raises(
        InvalidOption, match=r"'shop\.mail' is no Blueprint: modules of tasks go to"
    ):
        shop.include("shop.mail")  # type: ignore[arg-type]  # the point

    async def send() -> None: ...

    mail.task(name="send")(send)
    again = Blueprint()
    again.task(name="send")(send)
    with pytest.raises(UsageError, match="the task name 'send' is taken"):
        shop.include(again)


@pytest.mark.parametrize("option", [{"priority": 10}, {"prefix": "a\n"}, {"prefix": 5}])
def test_f10_bad_options_are_refused_where_they_are_said(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(option))):
        Blueprint(**option)
    with pytest.raises(InvalidOption, match=next(iter(option))):
        app().include(Blueprint(), **option)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Blueprint(colour="red")  # type: ignore[call-arg]  # the point


def test_f10_a_type_that_can_not_be_stored_is_refused_where_it_is_included() -> None:
    mail = Blueprint()

    @mail.task
    async def send(where: Point | Size) -> None: ...

    with pytest.raises(UsageError, match="parameter 'where'"):
        app().include(mail)


class Money:
    """What no codec knows."""

    def __init__(self, cents: int) -> None:
        self.cents = cents


async def test_f10_types_that_the_app_can_store_are_a_blueprints_too() -> None:
    shop = Blueprint()

    @shop.task
    async def pay(amount: Money) -> int:
        return amount.cents

    paying = App("memory://", encoders={Money: vars}, decoders={Money: lambda d: Money(**d)})
    paying.include(shop)
    async with Kit(paying):
        assert await pay.enqueue_and_wait(Money(5)) == 5


def test_f10_an_app_that_validates_does_so_for_its_blueprints() -> None:
    mail = Blueprint()

    @mail.task
    async def send(to: str) -> None: ...

    App("memory://", validate=True).include(mail)
    with pytest.raises(InvalidArguments, match="to: Expected `str`, got `int`"):
        send.job(5)  # type: ignore[arg-type]  # the point
