"""What may befall a client's calls: patience that ends, and connections that break."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Protocol

from headrace.storage.redis.library import Library
from tests.support.proxy import Proxy

PATIENCE_SECONDS = 0.0005
"""Of the impatient, in the mean: about what a call takes."""


class Faults(Protocol):
    """Chooses what befalls each call."""

    def before(self, verb: str) -> float:
        """Prepare a fault, or none; return for how many seconds the caller has patience."""


class NoFaults:
    """Nothing goes wrong, and callers wait for their answers."""

    def before(self, verb: str) -> float:
        return math.inf


class Impatience:
    """Some callers are cancelled while they wait.

    Args:
        seed: of the choices.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(f"{seed}/patience")

    def before(self, verb: str) -> float:
        if self._random.random() < 0.15:
            return self._random.expovariate(1 / PATIENCE_SECONDS)
        return math.inf


class BrokenConnections:
    """Delays, lost replies and resets, and impatience besides.

    Args:
        proxy: the client's own.
        library: whose functions the client calls.
        seed: of the choices.
    """

    def __init__(self, proxy: Proxy, library: Library, seed: str) -> None:
        self._proxy = proxy
        self._library = library
        self._random = random.Random(f"{seed}/connections")
        self._impatience = Impatience(seed)

    def before(self, verb: str) -> float:
        self._proxy.delay = self._random.choice((0, 0, 0.0005, 0.002))
        fault = self._random.random()
        if fault < 0.1:
            self._proxy.drop_next_reply(after=self._library.function(verb).encode())
        elif fault < 0.15:
            later = self._random.uniform(0, 0.005)
            asyncio.get_running_loop().call_later(later, self._proxy.reset_all)
        return self._impatience.before(verb)
