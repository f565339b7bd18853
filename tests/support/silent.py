"""A worker that dies at once: it claims and is never heard of again, without a process to kill."""

from __future__ import annotations

import secrets

from headrace import App
from headrace.app import clients_of
from headrace.job import ClaimedJob
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import CallId


async def claim_and_die(
    app: App[None], queue: str = "default", *, lease: float = 0.5, slots: int = 100
) -> list[ClaimedJob]:
    """Register an incarnation, let it claim up to ``slots`` jobs, and return them."""
    storage = clients_of(app).current().storage
    incarnation = f"silent-{secrets.token_hex(4)}"
    worker = IncarnationInfo(
        incarnation=incarnation,
        name="silent",
        host="nowhere",
        pid=0,
        version="0",
        concurrency=slots,
        lease_ms=round(lease * 1000),
        registered_ms=0,
    )
    await storage.register(queue, worker)
    call = CallId(incarnation, 1)
    nonce = f"{incarnation}/{secrets.token_hex(8)}"
    return (await storage.claim(queue, call=call, nonce=nonce, slots={"default": slots})).jobs
