"""From a URL to a storage."""

from __future__ import annotations

from urllib.parse import urlsplit

from headrace.errors import InvalidOption
from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage

SCHEMES = ("redis", "rediss", "unix")


def check_url(url: str) -> str:
    """Return ``url`` if a storage can be opened with it; nothing connects.

    Raises:
        InvalidOption: the scheme is not known.
    """
    scheme = urlsplit(url).scheme
    if scheme not in SCHEMES:
        raise InvalidOption(
            f"the storage URL {redacted(url)!r} is not valid: use one of "
            f"{', '.join(f'{name}://' for name in SCHEMES)}, as in redis://localhost:6379/0"
        )
    return url


def open_storage(url: str, *, tenant: str, allow_eviction: bool = False) -> Storage:
    """Return the storage for ``url``; it connects on first use.

    Raises:
        InvalidOption: the URL is not valid.
    """
    return RedisStorage(check_url(url), tenant=tenant, allow_eviction=allow_eviction)


def redacted(url: str) -> str:
    """Return a URL that can be shown: without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
