"""A Redis server with TLS, and the certificates of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from tests.support.ports import held_port
from tests.support.redis_server import RedisServer


class Certificates:
    """A certificate authority of the test's own, and what it signed for the server."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1")
        self.authority = folder / "ca.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        authority.cert_pem.write_to_path(self.authority)
        server.cert_chain_pems[0].write_to_path(self.certificate)
        server.private_key_pem.write_to_path(self.key)


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[RedisServer, str]]:
    """Run a server that takes plain connections and TLS; also give its rediss:// address."""
    made = Certificates(folder)
    port, holder = held_port()
    # fmt: off
    with holder, RedisServer(
        "--tls-port", str(port), "--tls-cert-file", str(made.certificate),
        "--tls-key-file", str(made.key), "--tls-ca-cert-file", str(made.authority),
        "--tls-auth-clients", "no",
    ) as server:
        yield server, f"rediss://127.0.0.1:{port}?ssl_ca_certs={made.authority}"
    # fmt: on
