"""An app that adds a header to each job that it sends."""

from __future__ import annotations

from headrace import App, JobDraft

app = App()


@app.before_enqueue
async def add_trace(draft: JobDraft) -> None:
    draft.headers["trace"] = f"t-{draft.task}"


@app.task(name="work", queue="quick")
async def work() -> None: ...
