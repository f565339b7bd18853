"""Storage URLs: which are taken, and that none shows its password."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, HeadraceError, InvalidOption
from headrace.storage.connect import check_url, open_storage, redacted

CANARY = "S3CR3T"


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379/3",
        "redis://:pw@localhost",
        "redis://user:p%2Fw@[::1]:6379/0",
        "rediss://host:6380",
        "unix:///run/redis.sock",
        "unix://user:pw@/run/redis.sock?db=1",
    ],
)
def test_a_redis_url_is_taken(url: str) -> None:
    assert check_url(url) == url
    open_storage(url, tenant="t")


@pytest.mark.parametrize(
    "url",
    [
        "memory://",
        "memory://name",
        "file:///var/lib/app",
        "file:///var/lib/my%20app/",
        "file:///var/lib/app?sync=full",
        "file:///var/lib/app?sync=normal",
    ],
)
def test_an_embedded_url_is_taken(url: str) -> None:
    assert check_url(url) == url
    open_storage(url, tenant="t")


@pytest.mark.parametrize(
    "url",
    [
        "memory://a/b",
        "memory://a?b=c",
        "memory://-",
        "file://",
        "file:///",
        "file://host/dir",
        "file://relative",
        "file:///dir?sync=off",
        "file:///dir?mode=ro",
        "file:///dir#part",
        "file:///dir%00",
    ],
)
def test_an_embedded_url_that_names_nothing_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption):
        App(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost",
        "amqp://localhost",
        "memory",
        "REDIS//localhost",
        "file:/etc",
        "redis:localhost",
        b"redis://localhost",
        6379,
    ],
)
def test_another_url_is_refused_when_the_app_is_made(url: Any) -> None:
    with pytest.raises(InvalidOption, match="use one of redis://, rediss://, unix://"):
        App(url)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://user:{CANARY}/x@localhost",
        f"redis://user:x/{CANARY}@localhost",
        f"redis://user:x#{CANARY}@localhost",
        f"redis://user:x?{CANARY}@localhost",
        f"redis://:{CANARY}@localhost:port",
        f"redis://:{CANARY}@[::1",
        f"amqp://user:{CANARY}@localhost",
        f"user:{CANARY}@localhost:6379",
        f"redis://localhost/0?password={CANARY}&max_connections=x",
        f"redis://user:{CANARY}@localhost/0?socket_timeout=x",
    ],
)
def test_no_error_and_no_repr_shows_the_password(url: str) -> None:
    try:
        app = App(url)
        shown = repr(app)
        open_storage(url, tenant="t")
    except HeadraceError as error:
        shown = f"{error} {error!r} {error.__cause__}"
    assert CANARY not in shown


def test_a_redacted_url_still_says_where() -> None:
    assert redacted(f"redis://user:{CANARY}@host:6379/2") == "redis://host:6379/2"
    assert redacted(f"unix://:{CANARY}@/run/redis.sock?db=1") == "unix:///run/redis.sock"


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADRACE_URL", "HEADRACE_REDIS_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    assert App().url == "redis://localhost:6379"
    monkeypatch.setenv("REDIS_URL", "redis://other")
    assert App().url == "redis://other"
    monkeypatch.setenv("HEADRACE_REDIS_URL", "redis://older")
    assert App().url == "redis://older"
    monkeypatch.setenv("HEADRACE_URL", "file:///ours")
    assert App().url == "file:///ours"
    assert App("redis://said").url == "redis://said"
