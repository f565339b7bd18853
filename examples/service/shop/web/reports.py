"""Reports: started here, followed at the job's own address."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from shop.tasks.reports import bought_together
from shop.web.jobs import Accepted, accepted

router = APIRouter(tags=["reports"])


@router.post("/reports/bought-together", status_code=202)
async def start_report(
    response: Response, best: Annotated[int, Query(gt=0, le=100)] = 10
) -> Accepted:
    """Start a report on which products are bought together."""
    return accepted(await bought_together.enqueue(best), response)
