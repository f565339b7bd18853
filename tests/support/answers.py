"""A server that answers a verb's calls in a way of one's choice."""

from __future__ import annotations

from headrace.storage.redis.library import library
from tests.support.redis_server import RedisServer

ODD = "5"
"""A reply that no verb gives."""


def error(words: str) -> str:
    """Return the Lua of an error reply."""
    return f"redis.error_reply('{words}')"


def answer(server: RedisServer, verb: str, reply: str) -> None:
    """Have every call of a verb do nothing and be answered so, until `answer_again`.

    Args:
        server: the server.
        verb: the verb.
        reply: the Lua of the reply.
    """
    ours, theirs = f"callback = functions.{verb},", f"callback = function() return {reply} end,"
    source = library().source
    assert ours in source
    _load(server, source.replace(ours, theirs))


def answer_again(server: RedisServer) -> None:
    """Have every verb do its work again."""
    _load(server, library().source)


def _load(server: RedisServer, source: str) -> None:
    with server.client() as client:
        client.execute_command("FUNCTION LOAD", "REPLACE", source)
