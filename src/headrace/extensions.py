"""What an app calls beside its handlers: middleware around them, hooks after them."""

from __future__ import annotations

from headrace.hooks import H, Hooks
from headrace.middleware import Middleware


class Extensions:
    """The part of an `App` that keeps them; what is there when a worker starts counts for it.

    Attributes:
        middlewares: around every handler, the first outermost.
        hooks: for every task, beside those of the task.
    """

    def __init__(self) -> None:
        self.middlewares: list[Middleware] = []
        self.hooks: Hooks = Hooks()

    def middleware(self, function: Middleware) -> Middleware:
        """Register a function that is called around every handler.

        It is ``async def middleware(context, call_next)``, awaits ``call_next()`` and returns what
        that returned; the first registered is outermost. An exception that leaves it counts as the
        handler's.
        """
        self.middlewares.append(function)
        return function

    def on_success(self, hook: H) -> H:
        """Register a function that is called when an attempt of any task has completed.

        It is ``def`` or ``async def hook(attempt)`` and gets an `AttemptOutcome`. It is called in
        the worker before the outcome is recorded, and that may still be refused; what it raises
        and returns changes nothing. All hooks of an attempt have 5 seconds together.

        Raises:
            InvalidOption: it can't be called with one argument.
        """
        self.hooks = self.hooks.with_one("on_success", hook)
        return hook

    def on_failure(self, hook: H) -> H:
        """Register one that is called when a job of any task is about to become a dead letter.

        Only where the worker that ran it decides so: not where a worker has died, or the job
        expired. Otherwise as `on_success`.

        Raises:
            InvalidOption: it can't be called with one argument.
        """
        self.hooks = self.hooks.with_one("on_failure", hook)
        return hook

    def on_retry(self, hook: H) -> H:
        """Register one that is called when an attempt has failed and another one follows.

        Otherwise as `on_success`.

        Raises:
            InvalidOption: it can't be called with one argument.
        """
        self.hooks = self.hooks.with_one("on_retry", hook)
        return hook
