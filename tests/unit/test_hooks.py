"""What may be a hook, and what is refused where it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, AttemptOutcome, InvalidOption


def two(first: AttemptOutcome, second: int) -> None: ...


def generator(attempt: AttemptOutcome) -> Any:
    yield attempt


async def async_generator(attempt: AttemptOutcome) -> Any:
    yield attempt


def by_name(*, attempt: AttemptOutcome) -> None: ...


@pytest.mark.parametrize(
    "hook", [7, "shop.notify", (), AttemptOutcome, two, generator, async_generator, by_name]
)
@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_retry"])
def test_what_can_not_be_called_with_an_attempt_is_refused_at_once(name: str, hook: Any) -> None:
    app = App("memory://hooks")
    with pytest.raises(InvalidOption, match=f"{name}="):
        getattr(app, name)(hook)
    with pytest.raises(InvalidOption, match=f"{name}="):
        app.task(**{name: hook})


@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_retry"])
def test_a_hook_stays_what_it_is(name: str) -> None:
    def hook(attempt: AttemptOutcome, more: int = 1) -> None: ...

    assert getattr(App("memory://hooks"), name)(hook) is hook
    assert getattr(App("memory://hooks"), name)(print) is print
