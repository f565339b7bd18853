"""Where the shop keeps its own data; where its jobs are, headrace reads from ``HEADRACE_URL``."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder of the ledger and the outbox: ``SHOP_DATA``, else ``data``."""
    folder = Path(os.environ.get("SHOP_DATA", "data"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
