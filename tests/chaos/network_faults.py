"""Faults between a client and the server: what a proxy does to one member's connections."""

from __future__ import annotations

from tests.chaos.settings import LEASE_S
from tests.chaos.strike import Fault, Strike
from tests.crash.crew import passed
from tests.support.proxy import Proxy

VERBS = (
    *(b"_enqueue", b"_claim", b"_settle", b"_cancel", b"_put_back", b"_beat", b"BLMOVE"),
    *(b"_stage", b"_commit", b"_publish"),
)
"""Words of the calls whose replies get lost."""


async def drop_replies(strike: Strike) -> None:
    """The server does some calls of every client, and nobody hears of it."""
    site = strike.redis
    strike.on("network")
    for _ in range(6):
        for name in sorted(site.proxies):
            site.proxies[name].drop_next_reply(after=strike.random.choice(VERBS))
        await passed(0.4)


async def reset(strike: Strike) -> None:
    """RST on every connection of everybody, again and again."""
    site = strike.redis
    strike.on("network")
    for _ in range(12):
        for proxy in site.proxies.values():
            proxy.reset_all()
        await passed(strike.random.uniform(0.01, 0.2))


async def half_close(strike: Strike) -> None:
    """FIN one way."""
    proxy = strike.proxy()
    proxy.half_close(strike.random.choice(("client", "server")))


async def stall_briefly(strike: Strike) -> None:
    """Nothing passes for half a lease."""
    proxy = strike.proxy()
    await _stalled(proxy, LEASE_S / 2)


async def half_open(strike: Strike) -> None:
    """Nothing passes for longer than a lease, and nobody is told."""
    proxy = strike.proxy()
    await _stalled(proxy, LEASE_S * strike.random.uniform(1.2, 2))


async def stall_one_way(strike: Strike) -> None:
    """What is asked arrives, and no answer does, for half a lease."""
    proxy = strike.proxy()
    proxy.stall("client")
    await passed(LEASE_S / 2)
    proxy.flow()


async def _stalled(proxy: Proxy, seconds: float) -> None:
    proxy.stall()
    await passed(seconds)
    proxy.flow()


async def partition(strike: Strike) -> None:
    """Connections are reset and refused for longer than a lease."""
    proxy = strike.proxy()
    await proxy.refuse()
    proxy.reset_all()
    await passed(LEASE_S * strike.random.uniform(1.2, 2))
    await proxy.admit()


async def slice_bytes(strike: Strike) -> None:
    """Everything comes byte by byte."""
    proxy = strike.proxy()
    proxy.is_sliced = True
    await passed(1)
    proxy.is_sliced = False


async def delay(strike: Strike) -> None:
    """Every piece takes a tenth of a second longer."""
    proxy = strike.proxy()
    proxy.delay = 0.1
    await passed(2)
    proxy.delay = 0.0


NETWORK_FAULTS = tuple(
    Fault(name, strike, ("redis",))
    for name, strike in (
        ("drop-replies", drop_replies),
        ("reset", reset),
        ("half-close", half_close),
        ("stall-briefly", stall_briefly),
        ("half-open", half_open),
        ("stall-one-way", stall_one_way),
        ("partition", partition),
        ("slice-bytes", slice_bytes),
        ("delay", delay),
    )
)
