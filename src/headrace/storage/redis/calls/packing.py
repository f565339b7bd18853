"""Words as one: MessagePack that the server's Lua unpacks into strings. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.storage.redis.calls.call import Word

_SHORT = [bytes((0xA0 | length,)) for length in range(32)]
_LIMIT = 1 << 16


def pack(words: Sequence[Word]) -> bytes:
    """Return an array of strings, whatever their bytes.

    Redis 7.0 knows no other type for bytes, and encoders refuse to say as text what is none.
    """
    parts = [b"\xdd", len(words).to_bytes(4, "big")]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts += (_head(len(data)), data)
    return b"".join(parts)


def _head(length: int) -> bytes:
    if length < len(_SHORT):
        return _SHORT[length]
    if length < _LIMIT:
        return b"\xda" + length.to_bytes(2, "big")
    return b"\xdb" + length.to_bytes(4, "big")
