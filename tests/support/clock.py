"""A clock that tests move: a key on the server, read by a test build of the Lua library."""

from __future__ import annotations

import time
from functools import cache

import redis

from headrace.storage.redis.library import Library, assemble

KEY = "headrace-test:now-ms"

CLOCK = f"""-- The time is what the test last set; the stamp goes on as the server's clock does.
function clock.read()
  local t, now = redis.call('TIME'), redis.call('GET', '{KEY}')
  return tonumber(now), now, string.format('%011d', t[1] % 100000 * 1000000 + t[2])
end
"""

SCHEDULES_LIMIT = 1_100
"""How many schedules a tenant may have in that build, so that a test can come to the end of it."""
LIMIT = f"limits.SCHEDULES_LIMIT = {SCHEDULES_LIMIT}\n"


@cache
def library_with_test_clock() -> Library:
    """Return this release's library, with the test's clock in place of the server's."""
    return assemble({"clock": CLOCK + LIMIT})


class ServerClock:
    """Sets the clock of a server, from now on; it stands still until it is moved.

    What the server lets expire by itself still follows its real clock.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        client.set(KEY, time.time_ns() // 1_000_000)

    def advance(self, ms: int) -> int:
        """Move the clock on by ``ms`` and return the time, in milliseconds since the epoch."""
        return self._client.incrby(KEY, ms)
