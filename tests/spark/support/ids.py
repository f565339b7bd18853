"""The ids that `prepare` promises, made in Python."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def id_of(columns: dict[str, Any], *, task: str | None = None, **salt: str) -> str:
    """Return the id of a row with these columns, as the docstring of `prepare` says it."""
    whole = {"columns": columns, "task": task, **salt}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
