"""Mails go into a folder here; a real shop would talk to a mail server."""

from pathlib import Path

import anyio

from shop.models import Message


class Mailer:
    """Sends mails: one file each.

    Args:
        folder: where they go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(exist_ok=True)

    async def send(self, message: Message, *, key: str) -> None:
        """Send a mail; one of the same key takes its place, so that sending twice does no harm.

        Raises:
            OSError: it could not be sent, and may be sent again.
        """
        mail = f"To: {message.to}\nSubject: {message.subject}\n\n{message.text}\n"
        await anyio.Path(self._folder / f"{key}.eml").write_text(mail)
