"""A web service that answers at once and leaves the work to a worker.

A plain ASGI application that sends itself a request. With FastAPI, ``async with app: yield`` goes
in the lifespan and ``await send_mail.enqueue(...)`` in a route.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from headrace import App

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples")
Message = MutableMapping[str, Any]


@app.task(queue="mails", max_attempts=5)
async def send_mail(to: str) -> None:
    """Would talk to a mail server."""


async def service(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[..., Awaitable[None]]
) -> None:
    """Answer 202 with the job's id; the connection lives as long as the service."""
    if scope["type"] == "lifespan":
        await receive()
        async with app:
            await app.connect()  # a wrong address shows now, not at the first request
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    job = await send_mail.enqueue(parse_qs(scope["query_string"].decode())["to"][0])
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps({"job": job.id}).encode()})


async def main() -> None:
    """Play the server: start up, pass one request, shut down."""
    to_service, from_service = asyncio.Queue[Message](), asyncio.Queue[Message]()
    async with asyncio.TaskGroup() as group:
        group.create_task(service({"type": "lifespan"}, to_service.get, from_service.put))
        await to_service.put({"type": "lifespan.startup"})
        print((await from_service.get())["type"])
        request = {"type": "http", "method": "POST", "query_string": b"to=ada@example.org"}
        await service(request, to_service.get, from_service.put)
        print("status", (await from_service.get())["status"])
        job = json.loads((await from_service.get())["body"])["job"]
        print("state", (await app.job(job, queue="mails").status()).state)
        await app.queue("mails").purge("queued", job)  # no worker is here
        await to_service.put({"type": "lifespan.shutdown"})


if __name__ == "__main__":
    asyncio.run(main())
