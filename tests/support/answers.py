"""A server that answers a verb's calls with an error of one's choice."""

from __future__ import annotations

from headrace.storage.redis.library import library
from tests.support.redis_server import RedisServer


def answer(server: RedisServer, verb: str, error: str) -> None:
    """Have every call of a verb answered with an error, until `answer_again`."""
    function = library().function(verb)
    source = (
        f"#!lua name={library().name}\n"
        f"redis.register_function('{function}', function() "
        f"return redis.error_reply('{error}') end)"
    )
    with server.client() as client:
        client.execute_command("FUNCTION LOAD", "REPLACE", source)


def answer_again(server: RedisServer) -> None:
    """Have every verb work again."""
    with server.client() as client:
        client.execute_command("FUNCTION LOAD", "REPLACE", library().source)
