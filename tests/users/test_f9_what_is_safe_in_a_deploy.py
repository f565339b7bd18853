"""F9, F37: each row of the table in docs/changing-tasks.md, with two releases on one storage."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from headrace import Alias, App, JobError, Retry
from tests.support.processes import ROOT
from tests.support.releases import Releases

WAIT_S = 30
"""What was put back is due by then."""


def release(function: Callable[..., Any], **options: Any) -> App[Any]:
    """Return a release whose one task is a function, called ``send`` where nothing is said."""
    app = App("memory://", tenant="deploy")
    app.task(**{"name": "send", **options})(function)
    return app


def without_tasks() -> App[Any]:
    return App("memory://", tenant="deploy")


async def to(to: str) -> str:
    return f"to {to}"


async def test_add_a_task() -> None:
    old, new = without_tasks(), release(to)
    async with Releases(old, new) as releases:
        await new.enqueue("send", "Ada")
        assert await releases.work(old) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(new) == ["to Ada"]


async def test_remove_a_task() -> None:
    old, new = release(to), without_tasks()
    async with Releases(old, new) as releases:
        await old.enqueue("send", "Ada")
        assert await releases.work(new) == ["put_back"]
        [left] = [job async for job in new.queue("default").jobs("scheduled", task="send")]
        assert left.error == "UnknownTask"
        releases.wait(WAIT_S)
        assert await releases.work(old) == ["to Ada"]


async def test_rename_a_task_or_move_it_to_another_module() -> None:
    old, new = release(to, name="shop.mail.send"), release(to, aliases=["shop.mail.send"])
    async with Releases(old, new) as releases:
        await old.enqueue("shop.mail.send", "Ada")
        assert await releases.work(new) == ["to Ada"]
        await new.enqueue("send", "Bob")
        assert await releases.work(old) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(new) == ["to Bob"]


async def test_move_a_task_to_another_queue() -> None:
    old, new = release(to, queue="old"), release(to, queue="new")
    async with Releases(old, new) as releases:
        await old.enqueue("send", "Ada")
        await new.enqueue("send", "Bob")
        assert await releases.work(new, "new") == ["to Bob"]
        assert await releases.work(new, "old", "new") == ["to Ada"]


async def test_add_a_parameter() -> None:
    async def with_default(to: str, template: str = "plain") -> str:
        return f"{template} to {to}"

    old, new = release(to), release(with_default)
    async with Releases(old, new) as releases:
        await old.enqueue("send", "Ada")
        assert await releases.work(new) == ["plain to Ada"]
        await new.enqueue("send", "Bob")
        assert await releases.work(old) == ["to Bob"]
        await new.enqueue("send", "Cy", "welcome")
        assert await releases.work(old) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(new) == ["welcome to Cy"]


async def test_add_a_parameter_without_a_default() -> None:
    async def with_default(to: str, template: str = "plain") -> str:
        return f"{template} to {to}"

    async def without(to: str, template: str) -> str:
        return f"{template} to {to}"

    old, between, new = release(to), release(with_default), release(without)
    async with Releases(old, between, new) as releases:
        await old.enqueue("send", "Ada")
        assert await releases.work(new) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(between) == ["plain to Ada"]
        await between.enqueue("send", "Bob", "welcome")
        assert await releases.work(new) == ["welcome to Bob"]


async def test_remove_a_parameter() -> None:
    async def with_default(to: str, template: str = "") -> str:
        return f"to {to}"

    async def before(to: str, template: str) -> str:
        return f"{template} to {to}"

    old, between, new = release(before), release(with_default), release(to)
    async with Releases(old, between, new) as releases:
        await old.enqueue("send", "Ada", "welcome")
        assert await releases.work(new) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(between) == ["to Ada"]
        await between.enqueue("send", "Bob")
        assert await releases.work(new) == ["to Bob"]


async def test_rename_a_parameter() -> None:
    async def renamed(recipient: Annotated[str, Alias("to")]) -> str:
        return f"to {recipient}"

    old, new = release(to), release(renamed)
    async with Releases(old, new) as releases:
        await old.enqueue("send", "Ada")
        assert await releases.work(new) == ["to Ada"]
        await new.enqueue("send", "Bob")
        assert await releases.work(old) == ["put_back"]
        releases.wait(WAIT_S)
        assert await releases.work(new) == ["to Bob"]


async def test_change_the_type_of_a_parameter() -> None:
    async def both(to: int | str) -> str:
        return f"to {to}"

    async def number(to: int) -> str:
        return f"to no. {to}"

    old, between, new = release(to), release(both), release(number)
    async with Releases(old, between, new) as releases:
        await old.enqueue("send", "Ada")
        await new.enqueue("send", 5)
        assert sorted(await releases.work(between)) == ["to 5", "to Ada"]
        await old.enqueue("send", "Bob")
        assert await releases.work(new) == ["failed"], "a wrong type is nothing to wait for"


@dataclass
class Mail:
    to: str


@dataclass
class MailOfKind:
    to: str
    kind: str = "plain"


async def mail(mail: Mail) -> str:
    return f"to {mail.to}"


async def mail_of_kind(mail: MailOfKind) -> str:
    return f"{mail.kind} to {mail.to}"


async def test_add_a_field_with_a_default_to_a_dataclass_of_the_arguments() -> None:
    old, new = release(mail), release(mail_of_kind)
    async with Releases(old, new) as releases:
        await old.enqueue("send", Mail("Ada"))
        assert await releases.work(new) == ["plain to Ada"]
        await new.enqueue("send", MailOfKind("Bob", "welcome"))
        assert await releases.work(old) == ["to Bob"]


async def test_remove_a_field_of_a_dataclass_of_the_arguments() -> None:
    old, new = release(mail_of_kind), release(mail)
    async with Releases(old, new) as releases:
        await old.enqueue("send", MailOfKind("Ada", "welcome"))
        assert await releases.work(new) == ["to Ada"]
        await new.enqueue("send", Mail("Bob"))
        assert await releases.work(old) == ["plain to Bob"]


async def test_change_the_type_of_a_result() -> None:
    async def text(number: int) -> str:
        return f"{number}"

    async def whole(number: int) -> int:
        return number

    async def both(number: int) -> int | str:
        return number

    old, between, new = release(text), release(both), release(whole)
    async with Releases(old, between, new) as releases:
        reader = await between.enqueue("send", 1)
        assert await releases.work(new) == ["1"]
        assert await reader.result() == 1
        strict = await old.enqueue("send", 2)
        assert await releases.work(new) == ["2"]
        with pytest.raises((JobError, ValueError)):
            await strict.result()


async def test_change_retry_max_attempts_timeout_or_another_option_of_a_task() -> None:
    async def fail() -> None:
        raise ConnectionError

    old = release(fail, max_attempts=1)
    new = release(fail, max_attempts=2, retry=Retry(min=1, max=1))
    async with Releases(old, new) as releases:
        await old.enqueue("send")
        assert await releases.work(new) == ["retrying"]
        releases.wait(1)
        assert await releases.work(new) == ["failed"]
        await new.enqueue("send")
        assert await releases.work(old) == ["failed"]


def test_each_row_of_the_table_has_its_test() -> None:
    page = (ROOT / "docs" / "changing-tasks.md").read_text()
    rows = re.findall(r"^\| (?!change \|)([^|]+) \|", page, re.MULTILINE)
    names = ["test_" + re.sub(r"\W+", "_", row.lower()).strip("_") for row in rows]
    here = [name for name in globals() if name.startswith("test_")]
    assert here == [*names, "test_each_row_of_the_table_has_its_test"]
