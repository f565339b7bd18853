"""The client of a `SyncApp` in each process that uses it, found anew after a fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import forks
from headrace.client import DecoderOf
from headrace.clients import Clients, Opening
from headrace.job import CancelOutcome, JobRecord
from headrace.storage.situation import Situation
from headrace.storage.values import End, OutputPage
from headrace.sync.client import DrivenClient, ProcessClient
from headrace.sync.handle import SyncJobClient
from headrace.sync.loops import warn_of_loop

Site = tuple[Opening, int]
"""How a client was opened, and in which process: after how many forks."""


class ProcessClients:
    """Opens the process's client on use; `close` closes it.

    Args:
        clients: of the app, which say how storages are opened.
        decoder_of: as for `ProcessClient`.

    Attributes:
        jobs: what handles use, so that they outlive a client.
    """

    def __init__(self, clients: Clients, *, decoder_of: DecoderOf) -> None:
        self._clients = clients
        self._decoder_of = decoder_of
        self.jobs: SyncJobClient = CurrentProcessClient(self, decoder_of(""))
        self._held: dict[Site, ProcessClient] = {}
        self._entered: dict[Site, list[None]] = {}

    def current(self) -> ProcessClient:
        """Return the client of this process, of the moment; its caller will block."""
        site = self._site()
        if not site[0].is_driven:
            warn_of_loop()
        return self._held.get(site) or self._open(site)

    def _site(self) -> Site:
        return self._clients.opening, forks.count()

    def _open(self, site: Site) -> ProcessClient:
        opening, _ = site
        make = DrivenClient if opening.is_driven else ProcessClient
        client = make(
            opening.blocking(),
            decoder_of=self._decoder_of,
            jobs=self.jobs,
            retry_for_s=self._clients.retry_for_s,
        )
        # Two threads may come at once: the first one's is everybody's, and has opened nothing yet.
        client = self._held.setdefault(site, client)
        for other in list(self._held):
            # A parent's is not ours to use or to close, and a kit closes its own.
            if other != site and (other[1] != site[1] or other[0].is_driven):
                self._held.pop(other, None)
        return client

    def enter(self) -> None:
        """Note that a block begins."""
        self._entered.setdefault(self._site(), []).append(None)

    def leave(self) -> None:
        """Note that a block has ended; the last one closes."""
        entered = self._entered.get(self._site())
        if entered:
            entered.pop()
        if not entered:
            self._entered.pop(self._site(), None)
            self.close()

    def close(self) -> None:
        """Close the client of this process, if there is one; the next use opens another."""
        client = self._held.pop(self._site(), None)
        if client is not None:
            client.close()


class CurrentProcessClient:
    """What handles use: the client of the moment, since they may outlive a closed one."""

    def __init__(self, clients: ProcessClients, decode: Callable[[bytes], Any]) -> None:
        self._clients = clients
        self._decode = decode

    def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of a job."""
        return self._clients.current().look(queue, job_id)

    def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands, and what may keep it from running."""
        return self._clients.current().why(queue, job_id)

    def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Block until a job has ended."""
        return self._clients.current().wait(
            queue, job_id, timeout_ms=timeout_ms, is_update=is_update
        )

    def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel a job, or what is to run after it."""
        return self._clients.current().cancel(queue, job_id, only_next=only_next)

    def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how a job stands, and then what it has put out since a cursor."""
        return self._clients.current().output(queue, job_id, after=after)

    def decode(self, stored: bytes) -> Any:
        """Return arguments, a result or a piece of output as plain data."""
        return self._decode(stored)
