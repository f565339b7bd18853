"""F29: with ``validate=True`` a call whose arguments are not of their types is refused at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import BaseModel, PositiveInt

from headrace import App, InvalidArguments, InvalidOption


@dataclass
class Size:
    width: int


class Order(BaseModel):
    count: PositiveInt


WRONG = Size("x")  # type: ignore[arg-type]  # the point


async def handler(
    a: int,
    /,
    sizes: list[Size] | None = None,
    *,
    level: Annotated[int, msgspec.Meta(lt=10)] = 0,
    order: Order | None = None,
) -> None: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("x",), {}, r"handler: a: Expected `int`, got `str`"),
        ((True,), {}, r"handler: a: Expected `int`, got `bool`"),
        ((1,), {"level": 10}, r"handler: level: Expected `int` <= 9"),
        ((1,), {"sizes": [{"width": "x"}]}, r"handler: sizes\[0\]\.width: Expected `int`"),
        ((1, [WRONG]), {}, r"handler: sizes\[0\]\.width: Expected `int`"),
        ((1,), {"order": {"count": 0}}, r"handler: order: count: Input should be greater than 0"),
        ((1,), {"order": 5}, r"handler: order: Input should be"),
    ],
)
async def test_f29_the_parameter_is_named(
    app: App[None], args: Any, kwargs: dict[str, Any], words: str
) -> None:
    task = app.task(validate=True)(handler)
    with pytest.raises(InvalidArguments, match=words):
        await task.enqueue(*args, **kwargs)
    with pytest.raises(InvalidArguments, match=words):
        await app.enqueue_many([task.job(*args, **kwargs)])
    with pytest.raises(InvalidArguments, match=words):
        await app.enqueue(task.name, *args, **kwargs)
    with pytest.raises(InvalidArguments, match=words):
        await task.options(delay=5).enqueue_and_wait(*args, **kwargs)
    assert await app.queues() == [], "nothing was sent"


async def test_f29_what_fits_is_stored(app: App[None]) -> None:
    task = app.task(validate=True)(handler)
    job = await task.enqueue(1, [Size(3)], level=9, order=Order(count=2))
    assert (await job.status()).args == {
        "a": 1,
        "sizes": [{"width": 3}],
        "level": 9,
        "order": {"count": 2},
    }


def test_f29_it_is_off_unless_the_task_or_its_app_says_so() -> None:
    quiet, strict = App("memory://"), App("memory://", validate=True)
    bad: Any = "x"
    for app, validate, is_checked in [
        (quiet, None, False),
        (quiet, True, True),
        (strict, None, True),
        (strict, True, True),
        (strict, False, False),
    ]:
        task = app.task(name=f"t{len(app.tasks)}", validate=validate)(handler)
        if is_checked:
            with pytest.raises(InvalidArguments):
                task.job(bad)
        else:
            task.job(bad)


def test_f29_validate_is_a_truth_value_of_the_declaration() -> None:
    wrong: Any = "yes"
    with pytest.raises(InvalidOption, match="validate='yes' is not valid: use True or False"):
        App("memory://", validate=wrong)
    app = App("memory://")
    with pytest.raises(InvalidOption, match="validate='yes' is not valid"):
        app.task(validate=wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'validate'"):
        app.task(handler).options(validate=True)  # type: ignore[call-arg]  # the point


def test_f29_one_that_can_not_be_encoded_is_still_told_as_such() -> None:
    task = App("memory://", validate=True).task(handler)
    with pytest.raises(TypeError, match=r"args\.level=nan has no JSON form"):
        task.job(1, level=float("nan"))  # type: ignore[arg-type]  # the point
