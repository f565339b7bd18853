"""The pytest plugin: fixtures for tests of programs on headrace, used by who asks for them.

A module of its own that imports pytest alone, so that other test runs pay nothing for it. The
fixtures need no event loop, and so work in plain tests, under pytest-asyncio and under anyio.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace import App
    from headrace.testing import EventLog, Kit, ManualClock

# The contract's tests say more of a failure that way.
pytest.register_assert_rewrite("headrace.testing.contract")


def pytest_configure(config: pytest.Config) -> None:
    """Make the contract's mark known where pytest-asyncio is turned off, as beside anyio."""
    if not config.pluginmanager.hasplugin("asyncio"):
        config.addinivalue_line("markers", "asyncio: a test that pytest-asyncio runs")


@pytest.fixture
def headrace_app() -> App[Any]:
    """Return the app under test: each project writes its own fixture of this name."""
    pytest.fail("write a fixture `headrace_app` that returns your App, for example in conftest.py")


@pytest.fixture
def headrace_clock() -> ManualClock:
    """Return the time of `headrace_kit`; write another one of this name to begin elsewhere."""
    from headrace.testing import ManualClock

    return ManualClock()


@pytest.fixture
def headrace_events() -> EventLog:
    """Return the worker events of `headrace_kit`."""
    from headrace.testing import EventLog

    return EventLog()


@pytest.fixture
def headrace_kit(
    headrace_app: App[Any], headrace_clock: ManualClock, headrace_events: EventLog
) -> Iterator[Kit]:
    """Return a `Kit` around the test, whose jobs run when the test says so."""
    from headrace.testing import Kit

    with Kit(headrace_app, clock=headrace_clock, events=headrace_events) as kit:
        yield kit


@pytest.fixture
def headrace_inline_kit(
    headrace_app: App[Any], headrace_clock: ManualClock, headrace_events: EventLog
) -> Iterator[Kit]:
    """Return a `Kit` around the test, whose jobs run as they are enqueued."""
    from headrace.testing import Kit

    with Kit(headrace_app, inline=True, clock=headrace_clock, events=headrace_events) as kit:
        yield kit
