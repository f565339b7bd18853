"""The web service: ``uvicorn shop.web.main:api``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from headrace import StorageError

from shop.app import app
from shop.web import jobs, orders, reports


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    """Keep the connection for as long as the service runs; a wrong address shows at its start."""
    async with app:
        await app.connect()
        yield


api = FastAPI(title="Shop", lifespan=lifespan)
for part in (orders, reports, jobs):
    api.include_router(part.router)


@api.exception_handler(StorageError)
async def storage_is_away(_: Request, error: StorageError) -> JSONResponse:
    """Answer 503 when jobs can't be stored or read, such as while Redis is away."""
    return JSONResponse(
        {"detail": "jobs can't be stored right now", "error": type(error).__name__},
        status_code=503,
        headers={"Retry-After": "5"},
    )
