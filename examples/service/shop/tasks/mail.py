"""Mails."""

from headrace import Context, Retry

from shop.app import Resources, app
from shop.models import Message


@app.task(queue="mail", timeout=30, max_attempts=8, retry=Retry(min=5, max=600), retry_on=OSError)
async def send(context: Context[Resources], message: Message) -> None:
    """Send a mail; the job's id is the mail's key, so a second run sends no second mail."""
    await context.state.mailer.send(message, key=context.job_id)
