"""The app: tasks are declared on it, the web service enqueues through it, a worker runs it.

``HEADRACE_URL`` says where the jobs are: a Redis server, or a directory (``file:///var/lib/shop``).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from anyio import to_thread
from headrace import App

from shop.ledger import Ledger
from shop.mailer import Mailer
from shop.settings import data_folder


@dataclass(frozen=True)
class Resources:
    """What all handlers of a worker share: ``context.state``."""

    ledger: Ledger
    mailer: Mailer


@asynccontextmanager
async def lifespan() -> AsyncGenerator[Resources]:
    """Open the resources before a worker's first job; what stands after the yield ends them."""
    folder = data_folder()
    ledger = await to_thread.run_sync(Ledger, folder)
    yield Resources(ledger, Mailer(folder / "outbox"))


app = App(lifespan=lifespan, include=["shop.tasks"])
