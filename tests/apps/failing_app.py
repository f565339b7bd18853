"""An app whose task takes the disk away from under its worker."""

from __future__ import annotations

from headrace import App
from tests.apps.apart import fail_fsync

app = App()


@app.task(name="lose_disk", queue="faults")
async def lose_disk() -> None:
    """Let every fsync of this process fail from now on."""
    fail_fsync()
