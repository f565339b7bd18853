"""What an app calls beside its handlers: before enqueues, around attempts, after them."""

from __future__ import annotations

from typing import TypeVar

from headrace.draft import Preparer
from headrace.hooks import H, Hooks, check_hook
from headrace.middleware import Middleware

Q = TypeVar("Q", bound=Preparer)


class Extensions:
    """The part of an `App` that keeps them.

    Of middleware and hooks a worker calls those that are there when it starts.

    Attributes:
        preparers: called with each job before it is sent, in order.
        middlewares: around every handler, the first outermost.
        hooks: for every task, beside those of the task.
    """

    def __init__(self) -> None:
        self.preparers: list[Preparer] = []
        self.middlewares: list[Middleware] = []
        self.hooks: Hooks = Hooks()

    def before_enqueue(self, function: Q) -> Q:
        """Register a function that is called with each job before this app sends it.

        It is ``def`` or ``async def function(draft)`` and gets a `JobDraft`, whose headers and
        options it may change; several are called in the order of their registration. What it
        raises, the enqueue raises, and the job is not sent. A plain one must not block.

        Raises:
            InvalidOption: it can't be called with one argument.
        """
        check_hook(function, name="before_enqueue", given="the draft of a job")
        self.preparers.append(function)
        return function

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
