"""A user's program with schedules, on a server that is not there."""

from __future__ import annotations

from headrace import App, Every

ran: list[str] = []

app = App("redis://localhost:1", tenant="scheduled", name="reports", retry_for=0)


@app.cron("30 2 * * *", tz="America/New_York", id="night", args={"region": "us"})
@app.cron("0 9 * * 1", id="monday", args={"region": "eu"}, options={"priority": 8})
@app.task(queue="reports")
async def report(region: str) -> str:
    ran.append(region)
    return f"report of {region}"


@app.task(queue="sync", max_attempts=1)
async def sync(shop: int, *, is_full: bool = False) -> int:
    ran.append(f"shop {shop}")
    if shop < 0:
        raise ValueError(f"there is no shop {shop}")
    return shop


app.schedule("shop-7", sync.job(7), Every(3600))
