"""The orders that were placed, in an SQLite database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from shop.models import Order


class Ledger:
    """Books orders and reads them back. Its calls block: call them in a thread or a process.

    Args:
        folder: where its database is.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.db"
        with closing(self._connect()) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, body TEXT)"
            )

    def book(self, order: Order) -> None:
        """Book an order; the same order again changes nothing."""
        with closing(self._connect()) as database, database:
            database.execute(
                "INSERT OR IGNORE INTO orders VALUES (?, ?)",
                (order.number, order.model_dump_json()),
            )

    def orders(self) -> Iterator[Order]:
        """Yield all orders, in the order of their numbers."""
        with closing(self._connect()) as database:
            for (body,) in database.execute("SELECT body FROM orders ORDER BY number"):
                yield Order.model_validate_json(body)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)
