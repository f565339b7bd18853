"""A Redis URL that can't be used is exit code 2, and one that the server refuses 3."""

from __future__ import annotations

import pytest

from tests.cli.conftest import APP, Cli
from tests.support.redis_server import RedisServer

COMMANDS = [
    ("queue", "list"),
    ("worker", APP),
    ("worker", APP, "--check"),
    ("enqueue", "add", "--queue", "x"),
]


@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("is_option", [False, True])
@pytest.mark.parametrize("rest", ["?nonsense=1", "/abc", "?protocol=3"])
def test_a_url_that_can_not_be_used_is_exit_code_2(
    here: Cli, words: tuple[str, ...], rest: str, *, is_option: bool
) -> None:
    url = f"redis://127.0.0.1{rest}"
    said = ("--url", url) if is_option else ()
    ran = here(*words, *said, env={} if is_option else {"HEADRACE_REDIS_URL": url})
    assert ran.code == 2, ran
    assert "the storage URL's" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [("queue", "list"), ("worker", APP)])
def test_a_database_that_is_not_there_is_exit_code_3(
    here: Cli, words: tuple[str, ...], redis_server: RedisServer
) -> None:
    ran = here(*words, "--url", f"{redis_server.url}/99")
    assert ran.code == 3, ran
    assert "DB index is out of range" in ran.err
