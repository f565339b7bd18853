"""An empty value is refused: it would else pass for the default, and lose an id or a tenant."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import App, InvalidOption, UsageError, Worker
from tests.cli.conftest import Cli, embedded_url, environment, here

__all__ = ["environment", "here"]


@pytest.fixture
def cli_url(tmp_path: Path) -> str:
    return embedded_url(tmp_path)


ENQUEUE = ("enqueue", "add", "-q", "quick")


def nothing_is_stored(here: Cli) -> bool:
    """Whether there is not even a storage, or a worker that was checked has left it empty."""
    ran = here("queue", "list", "-o", "json")
    return (ran.code == 3 and "there is no storage" in ran.err) or ran.json == []


@pytest.mark.parametrize(
    "words",
    [
        (*ENQUEUE, "--id", ""),
        (*ENQUEUE, "--tenant", ""),
        (*ENQUEUE, "--url", ""),
        (*ENQUEUE, "--app", ""),
        (*ENQUEUE, "--args", ""),
        (*ENQUEUE, "--header", ""),
        (*ENQUEUE, "--delay", ""),
        (*ENQUEUE, "--priority", ""),
        ("enqueue", "add", "-q", ""),
        ("enqueue", "", "-q", "quick"),
        ("job", "show", "a", "-q", ""),
        ("job", "show", ""),
        ("job", "list", "-q", ""),
        ("job", "list", "--task", ""),
        ("job", "cancel", "a", "-q", ""),
        ("job", "cancel", "-q", "quick", "--task", ""),
        ("dead", "list", "-q", ""),
        ("dead", "purge", "--task", "", "--yes"),
        ("dead", "redrive", "a", "-q", ""),
        ("queue", "purge", "quick", "--task", "", "--yes"),
        ("queue", "purge", "", "--yes"),
        ("queue", "pause", ""),
        ("queue", "stats", ""),
        ("worker", "", "--check"),
        ("worker", "tests.apps.cli_app:app", "--check", "--name", ""),
        ("worker", "tests.apps.cli_app:app", "--check", "-q", ""),
        ("worker", "tests.apps.cli_app:app", "--check", "-q", ","),
        ("worker", "tests.apps.cli_app:", "--check"),
        ("worker", "tests.apps.cli_app:app", "--check", "--health-port", "0", "--health-host", ""),
    ],
    ids=lambda words: " ".join(word or "''" for word in words),
)
def test_an_empty_option_is_refused(here: Cli, words: tuple[str, ...]) -> None:
    ran = here(*words)
    assert ran.code in (2, 4), ran
    assert ran.err.startswith("Error: ")
    assert nothing_is_stored(here)


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("HEADRACE_ENQUEUE_ID", ENQUEUE),
        ("HEADRACE_TENANT", ENQUEUE),
        ("HEADRACE_REDIS_URL", ENQUEUE),
        ("HEADRACE_APP", ENQUEUE),
        ("HEADRACE_ENQUEUE_PRIORITY", ENQUEUE),
        ("HEADRACE_QUEUES", ("worker", "tests.apps.cli_app:app", "--check")),
        ("HEADRACE_CONCURRENCY", ("worker", "tests.apps.cli_app:app", "--check")),
        ("HEADRACE_WORKER_NAME", ("worker", "tests.apps.cli_app:app", "--check")),
        ("HEADRACE_JOB_LIST_QUEUE", ("job", "list")),
    ],
)
def test_an_empty_variable_is_refused(here: Cli, variable: str, words: tuple[str, ...]) -> None:
    ran = here(*words, env={variable: ""})
    assert ran.code == 2, ran
    assert f"{variable} is set but empty" in ran.err
    assert nothing_is_stored(here)


def test_an_empty_variable_of_a_flag_says_no(here: Cli) -> None:
    assert here(*ENQUEUE, env={"HEADRACE_ALLOW_EVICTION": ""}).code == 0


def test_a_variable_of_another_command_may_be_empty(here: Cli) -> None:
    assert here(*ENQUEUE, env={"HEADRACE_WORKER_NAME": "", "REDIS_URL": ""}).code == 0


@pytest.mark.parametrize("variable", ["HEADRACE_TENANT", "HEADRACE_REDIS_URL", "REDIS_URL"])
def test_an_app_takes_no_empty_variable(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADRACE_REDIS_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "")
    with pytest.raises(InvalidOption, match=variable):
        App()


def test_an_empty_variable_leaves_it_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_REDIS_URL", "")
    monkeypatch.setenv("REDIS_URL", "memory://")
    assert App().url == "memory://"


def test_an_empty_name_is_no_default() -> None:
    app = App("memory://")
    for make in (
        lambda: App(""),
        lambda: App("memory://", tenant=""),
        lambda: app.task(name="")(print_nothing),
        lambda: app.queue(""),
        lambda: app.job("", queue="q"),
        lambda: app.job("x", task=""),
        lambda: Worker(app, ["q"], name=""),
        lambda: Worker(app, [""]),
        lambda: Worker(app, []),
        lambda: app.task(name="t", queue="")(print_nothing),
        lambda: app.task(name="t", executor="")(print_nothing),  # type: ignore[call-overload]
    ):
        with pytest.raises(UsageError):
            make()


def print_nothing() -> None: ...


class Deaf:
    """An `emit` that is false, as an empty list of events is."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def __len__(self) -> int:
        return len(self.events)

    def __call__(self, event: object) -> None:
        self.events.append(event)


async def test_an_emit_that_is_empty_is_still_told() -> None:
    emit = Deaf()
    await Worker(App("memory://"), ["q"], burst=True, emit=emit).run()
    assert len(emit) >= 2
