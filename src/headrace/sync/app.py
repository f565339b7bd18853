"""The front door of code without an event loop: an app whose calls block."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, Unpack, overload

from typing_extensions import TypeVar

from headrace.admit import close_unsent
from headrace.app import App, parts_of
from headrace.app_options import AppOptions
from headrace.client import as_asked, find_record
from headrace.errors import UsageError
from headrace.foreign import OF_APPS, WithForeignWords, without_await
from headrace.job import EnqueueOutcome, Job
from headrace.lifespan import Lifespan
from headrace.plain import shown
from headrace.queues import Queue
from headrace.schedules import KeptSchedules
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connect import redacted
from headrace.storage.steps import at_once
from headrace.sync.bulk import SyncBulkWrites
from headrace.sync.clients import ProcessClients
from headrace.sync.declaring import SyncDeclarations
from headrace.sync.handle import SyncJobHandle
from headrace.sync.queue import SyncQueue
from headrace.sync.schedules import SyncSchedules
from headrace.sync.sender import SyncSender
from headrace.sync.task import C, P, R, SyncTask, SyncTaskRef
from headrace.task import Task

S = TypeVar("S", default=None)
Found = TypeVar("Found")


AnyTask = SyncTask[..., Any] | Task[..., Any] | str
"""How a job's task may be said."""


class SyncApp(WithForeignWords, SyncBulkWrites, SyncDeclarations[S], words=without_await(OF_APPS)):
    """An `App` for code without an event loop: Django, Flask, scripts, notebooks.

    It has what an `App` has, and nothing of it is awaited. It runs no event loop and no thread:
    a call is made by the thread that makes it, and any number of threads share the app. Each
    process has connections of its own, after a fork too. `headrace worker`, the other commands and
    a `Kit` take it in place of an `App`; handlers are ``def`` or ``async def``.

    Making one connects nothing; the first call does. ``with app:`` closes the connections at the
    end, as `close` and the end of the process do. What is used after that connects again.

    It pickles as its configuration, URL and tenant and all but the lifespan, and has no tasks on
    the other side; tasks pickle by the name of their function.

    Args:
        url: as for `App`; or an async app, to have its tasks, storage and hooks.
        lifespan: as for `App`.
        **options: as for `App`: ``name``, ``tenant``, ``allow_eviction``, ``retry_for``,
            ``include``, ``skew_grace``, ``release``, ``encoders``, ``decoders``, ``validate``.

    Raises:
        InvalidOption, UsageError: as `App`.

    Attributes:
        app: the async app inside, with the tasks: for a `Worker`, and for code with a loop.
    """

    @overload
    def __init__(self, url: App[S], /) -> None: ...

    @overload
    def __init__(
        self: SyncApp[None],
        url: str | None = None,
        *,
        lifespan: None = None,
        **options: Unpack[AppOptions],
    ) -> None: ...

    @overload
    def __init__(
        self, url: str | None = None, *, lifespan: Lifespan[S], **options: Unpack[AppOptions]
    ) -> None: ...

    def __init__(
        self,
        url: App[Any] | str | None = None,
        *,
        lifespan: Lifespan[Any] | None = None,
        **options: Unpack[AppOptions],
    ) -> None:
        app = _app_of(url, lifespan, options)
        parts = parts_of(app)
        self._known = parts.known
        self._clients = ProcessClients(parts.clients, decoder_of=parts.known.decoder_of)
        super().__init__(app, SyncSender(self._clients, app.preparers))

    def __repr__(self) -> str:
        app = self.app
        return f"<SyncApp at {redacted(app.url)}, tenant {app.tenant!r}, {len(app.tasks)} tasks>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.app,)

    # Enqueueing

    def bind(self, task: Task[P, R, C]) -> SyncTask[P, R, C]:
        """Return a task of the async app as one whose calls block.

        Raises:
            UsageError: it is no task of that app.
        """
        if not isinstance(task, Task) or self.app.tasks.get(task.name) is not task:
            raise UsageError(
                f"{shown(task)} is no task of {self.app!r}: bind one that was declared on it, or "
                "in a blueprint that it includes"
            )
        return BoundTask(self, task, self._sender)

    def task_ref(self, name: str, *, queue: str | None = None) -> SyncTaskRef:
        """Return a task by its name, to enqueue it with options; nothing is sent.

        Args:
            name: the task's name.
            queue: where its jobs wait; default: the queue that it declares, if this app has it.

        Raises:
            InvalidOption: a name is not valid.
        """
        return SyncTaskRef(self.app.task_ref(name, queue=queue), self._sender)

    def enqueue(
        self, name: str, /, *args: Any, queue: str | None = None, **kwargs: Any
    ) -> SyncJobHandle[Any]:
        """Store a job by its task's name, see `App.enqueue`; `task_ref` takes options too.

        Raises:
            UsageError, StorageError: as `App.enqueue`.
        """
        return self.task_ref(name, queue=queue).enqueue(*args, **kwargs)

    def submit(self, job: Job[Found]) -> SyncJobHandle[Found]:
        """Store one job that ``task.job(...)`` has made, as `SyncTask.enqueue` does.

        Raises:
            UsageError, StorageError: as `SyncTaskCall.enqueue`.
        """
        return self._sender.submit(job)

    def enqueue_many(
        self, jobs: Iterable[Job[Found]], *, replace_ended: bool = True
    ) -> list[SyncJobHandle[Found]]:
        """Store many jobs in chunks of up to 500, each chunk whole or not at all.

        ``jobs`` may be a generator and is read as the storage takes them, so a million need no
        list; two chunks are on their way at once. A job that was sent before is a duplicate while
        the first is there.

        Args:
            jobs: made by ``task.job(...)``.
            replace_ended: as for `App.enqueue_many`.

        Raises:
            StorageError: some chunk was not stored; ``error.accepted`` holds the handles of the
                chunks before it, and later ones were not, or may have been, stored.
            UsageError: making a job failed, or one is not valid; earlier chunks are stored.
        """
        try:
            return self._sender.submit_many(as_asked(jobs, replace_ended=replace_ended))
        except UsageError:
            close_unsent(jobs)
            raise

    # Looking

    @overload
    def job(
        self,
        job_id: str,
        *,
        queue: str | None = None,
        task: SyncTask[..., Found] | Task[..., Found],
    ) -> SyncJobHandle[Found]: ...

    @overload
    def job(
        self, job_id: str, *, queue: str | None = None, task: str | None = None
    ) -> SyncJobHandle[Any]: ...

    def job(
        self, job_id: str, *, queue: str | None = None, task: AnyTask | None = None
    ) -> SyncJobHandle[Any]:
        """Return a handle for a job enqueued elsewhere, see `App.job`; nothing is sent.

        Args:
            job_id: its id.
            queue: its queue; default: the queue of ``task``, else ``default``. `find` looks for it.
            task: its task, or the name of one, so that the result is decoded to the type that it
                declares; without it the result is plain data.

        Raises:
            InvalidOption: the id or a name is not valid.
            UnknownTask: the name is not registered in this app.
        """
        job_id, queue, decode = self._known.named_job(job_id, queue, _plain(task))
        return SyncJobHandle(job_id, queue, EnqueueOutcome.UNKNOWN, self._clients.jobs, decode)

    @overload
    def find(
        self, job_id: str, *, task: SyncTask[..., Found] | Task[..., Found]
    ) -> SyncJobHandle[Found]: ...

    @overload
    def find(self, job_id: str, *, task: str | None = None) -> SyncJobHandle[Any]: ...

    def find(self, job_id: str, *, task: AnyTask | None = None) -> SyncJobHandle[Any]:
        """Return a handle for a job of which only the id is known, see `App.find`.

        Args:
            job_id: its id.
            task: its task, as for `job`; default: the one that the job names, if this app has it.

        Raises:
            JobNotFound: no queue has it.
            InvalidOption: the id is not valid, or several queues have a job with it.
            UnknownTask: the name is not registered in this app.
            StorageError: the storage can't be reached.
        """
        said = _plain(task)
        job_id = self._known.check_wanted(job_id, said)
        record = at_once(find_record(self._storage(), job_id))
        return self.job(job_id, queue=record.queue, task=self._known.task_of(record, said))

    def queue(self, name: str) -> SyncQueue:
        """Return a queue, to look at and to steer."""
        queue = Queue(name, self._storage, decode=self._known.decode_plain, clock=self._clock)
        return SyncQueue(queue)

    def queues(self) -> list[str]:
        """Return the names of all queues that this tenant ever used."""
        return at_once(self._storage().queues())

    @property
    def schedules(self) -> SyncSchedules:
        """The schedules that the storage keeps for this tenant, to put, look at and steer."""
        kept = KeptSchedules(
            self._storage,
            tasks=self.app.tasks,
            decode=self._known.decode_plain,
            clock=self._clock,
        )
        return SyncSchedules(kept, self._storage, lambda job: self._clients.current().submit(job))

    # Connections

    def _clock(self) -> int:
        return parts_of(self.app).clients.opening.clock()

    def _storage(self) -> BlockingStorage:
        return self._clients.current().storage

    def connect(self) -> None:
        """Connect now rather than on first use, and see that the storage can be used.

        Raises:
            StorageUnavailable: it can't be reached.
            StorageRefused: wrong version, eviction policy or credentials.
        """
        at_once(self._storage().check())

    def close(self) -> None:
        """Close the connections of this process that are not in use, and the others after use.

        Whatever is used afterwards, the app or a handle, connects again.
        """
        self._clients.close()

    def __enter__(self) -> Self:
        self._clients.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Blocks may be nested, and threads may each have one: the last one closes.
        self._clients.leave()


class BoundTask(SyncTask[P, R, C]):
    """A task of an async app that a `SyncApp` was bound to."""

    def __init__(self, app: SyncApp[Any], task: Task[P, R, C], sender: SyncSender) -> None:
        super().__init__(task, sender)
        self._app = app

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self._app, self.task)


def _bound(app: SyncApp[Any], task: Task[P, R, C]) -> BoundTask[P, R, C]:
    return BoundTask(app, task, app._sender)  # noqa: SLF001 (made from the parts of another's)


def _plain(task: AnyTask | None) -> Task[..., Any] | str | None:
    return task.task if isinstance(task, SyncTask) else task


def _app_of(
    url: App[Any] | str | None, lifespan: Lifespan[Any] | None, options: AppOptions
) -> App[Any]:
    if isinstance(url, SyncApp):
        raise UsageError(f"{url!r} is a sync app already: use it, or make one of its `app`")
    if not isinstance(url, App):
        return App(url, lifespan=lifespan, **options) if lifespan else App(url, **options)
    if lifespan is not None or options:
        said = ", ".join(options) or "lifespan"
        raise UsageError(f"{url!r} has options of its own, and takes no others ({said}) here")
    return url
