"""Words that are packed into one come out of the server's Lua as they went in."""

from __future__ import annotations

import pytest
import redis

from headrace.storage.redis.calls.call import Word
from headrace.storage.redis.calls.packing import pack

WORDS: dict[str, list[Word]] = {
    "none": [],
    "short": ["", "a", b"\x00\xff", "é"],
    "numbers": [0, 5, 1_800_000_003_000],
    "each length of a head": ["x" * n for n in (31, 32, 255, 256, 65_535, 65_536)],
    "bytes that are no text": [b"\xff" * n for n in (1, 40, 300, 70_000)],
    "many": [f"{n}" for n in range(9_000)],
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_the_server_unpacks_the_same_words(server: redis.Redis, words: list[Word]) -> None:
    unpacked = server.eval("return cmsgpack.unpack(ARGV[1])", 0, pack(words))
    assert unpacked == [w if isinstance(w, bytes) else str(w).encode() for w in words]
