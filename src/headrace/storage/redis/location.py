"""What a ``redis://`` URL says; without redis-py, so that an app can be made without it.

A URL may set what is listed here and nothing else: how replies are decoded, time-outs and retries
are what the rest relies on. No error shows the URL, which may have a password at any place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headrace.errors import InvalidOption
from headrace.nearest import nearest
from headrace.plain import cut

MOST_DATABASES = 2**31
WHERE_LIMIT = 200
"""Most characters of a server's name in messages."""

UNREADABLE = (
    "the storage URL can't be read: percent-encode special characters in user and password, "
    "as in redis://user:p%40ss@host:6379/0"
)


class Location:
    """Where a server is, in redis-py's own words.

    Attributes:
        kind: ``tcp``, ``tls`` or ``unix``.
        settings: of a connection of that kind.
    """

    def __init__(self, kind: str, settings: Mapping[str, Any]) -> None:
        self.kind: str = kind
        self.settings: dict[str, Any] = dict(settings)

    @property
    def where(self) -> str:
        """The server's host and port, or its socket, as redis-py's messages say it."""
        said = self.settings
        whole = said["path"] if self.kind == "unix" else f"{said['host']}:{said['port']}"
        return cut(whole, WHERE_LIMIT)


def location_of(url: str) -> Location:
    """Return what a ``redis://``, ``rediss://`` or ``unix://`` URL names; nothing connects.

    Raises:
        InvalidOption: it can't be read, or an option is not known or not valid.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidOption(UNREADABLE) from None
    is_unix = parts.scheme == "unix"
    # An @ or # beyond the host is most likely a password's, which ends the host too early.
    if "#" in url or "@" in parts.query or ("@" in parts.path and not is_unix):
        raise InvalidOption(UNREADABLE)
    kind = {"unix": "unix", "rediss": "tls"}.get(parts.scheme, "tcp")
    options = _options(parts.query, kind)
    said = {
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "db": None if is_unix else _database_of(parts.path),
    }
    for name, value in said.items():
        if value and options.setdefault(name, value) != value:
            raise InvalidOption(f"the storage URL says twice, and differently, what {name} is")
    where = {"path": _socket_of(parts)} if is_unix else _server_of(parts, port)
    return Location(kind, {**where, **options})


def _server_of(parts: SplitResult, port: int | None) -> dict[str, Any]:
    host = unquote(parts.hostname or "localhost")
    if len(host) > 253 or max(map(len, host.split("."))) > 63 or not host.isprintable():
        raise InvalidOption(f"the storage URL's host {host[:80]!r} is no name of a host")
    if port == 0:
        raise InvalidOption("the storage URL's port 0 is not valid: use 1 to 65535")
    return {"host": host, "port": port or 6379}


def _socket_of(parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.netloc.rpartition("@")[2] or len(path) < 2 or "\0" in path:
        raise InvalidOption(
            "the storage URL names no socket: give its absolute path, as in unix:///run/redis.sock"
        )
    return path


def _database_of(path: str) -> int | None:
    name = unquote(path).strip("/")
    return _database(name) if name else None


def _options(query: str, kind: str) -> dict[str, Any]:
    known = {**_READERS, **_TLS_READERS} if kind == "tls" else _READERS
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise InvalidOption(_unknown(name, known))
        if name in found:
            raise InvalidOption(f"the storage URL says {name} twice")
        found[name] = known[name](value)
    return found


def _unknown(name: str, known: Mapping[str, object]) -> str:
    # What looks otherwise may be a piece of a password.
    shown = f" {name!r}" if re.fullmatch("[a-z][a-z0-9_]{0,39}", name) else ""
    if name == "ssl" or (name in _TLS_READERS and name not in known):
        advice = ": for TLS begin the URL with rediss://"
    else:
        near = nearest(name, known)
        advice = f", did you mean {near!r}?" if near else ""
    return f"the storage URL's option{shown} is not known{advice}; known are {', '.join(known)}"


def _invalid(name: str, value: str, use: str) -> InvalidOption:
    return InvalidOption(f"the storage URL's {name}={value[:80]!r} is not valid: use {use}")


def _database(value: str) -> int:
    if not re.fullmatch("[0-9]{1,10}", value) or int(value) >= MOST_DATABASES:
        raise _invalid("db", value, "the number of a database, 0 or more")
    return int(value)


def _client_name(value: str) -> str:
    if not re.fullmatch("[!-~]{1,64}", value):
        raise _invalid("client_name", value, "1 to 64 printable ASCII characters without spaces")
    return value


def _cert_reqs(value: str) -> str:
    if value not in ("none", "optional", "required"):
        raise _invalid("ssl_cert_reqs", value, "none, optional or required")
    return value


def _yes_or_no(value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise _invalid("ssl_check_hostname", value, "true or false")
    return value.lower() in ("true", "yes", "1")


def _said(name: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not value or "\0" in value:
            raise InvalidOption(f"the storage URL's {name} is empty")
        return value

    return read


_READERS: dict[str, Callable[[str], object]] = {
    "db": _database,
    "username": _said("username"),
    "password": _said("password"),
    "client_name": _client_name,
}
TLS_PATHS = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_TLS_READERS: dict[str, Callable[[str], object]] = {
    "ssl_cert_reqs": _cert_reqs,
    "ssl_check_hostname": _yes_or_no,
    "ssl_password": _said("ssl_password"),
    **{name: _said(name) for name in TLS_PATHS},
}
