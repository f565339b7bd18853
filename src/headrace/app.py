"""The front door: an `App` declares tasks and brings jobs to the storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, Unpack, overload

from typing_extensions import TypeVar

from headrace.admit import close_unsent
from headrace.app_options import AppOptions
from headrace.blueprint import Blueprint, join
from headrace.bulk import BulkWrites
from headrace.client import as_asked, find_record
from headrace.clients import Clients, Opening
from headrace.clock import Duration, duration_ms
from headrace.codec import Codec
from headrace.conversions import ByType, conversions_of
from headrace.declaration import default_app_name, default_name, is_redefinition
from headrace.errors import UsageError
from headrace.extensions import Extensions
from headrace.foreign import OF_APPS, WithForeignWords
from headrace.handle import JobHandle
from headrace.job import (
    DEFAULT_TENANT,
    EnqueueOutcome,
    Job,
    check_name,
    check_text,
)
from headrace.json_codec import JSON, JsonCodec
from headrace.known import KnownTasks
from headrace.lifespan import Lifespan, check_lifespan
from headrace.limit import Terms
from headrace.modules import check_modules, import_tree
from headrace.one_process import made_again
from headrace.options import (
    SharedOptions,
    TaskDefaults,
    TaskOptions,
    over,
    spelled_out,
    task_settings,
)
from headrace.plain import plain_text
from headrace.queue_events import Operator
from headrace.queues import Queue
from headrace.registry import Declare, check_fail_tasks, function_of, new_task, with_executor
from headrace.scheduled import Declared, OfTask
from headrace.schedules import Schedules
from headrace.scheduling import DeclaredSchedules
from headrace.sender import Sender
from headrace.settings import URL_VARIABLES, variable
from headrace.storage.base import Storage
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connect import check_url, open_blocking, open_storage, redacted
from headrace.task import Task
from headrace.task_limits import declared_limits
from headrace.task_ref import TaskRef

S = TypeVar("S", default=None)
Found = TypeVar("Found")

DEFAULT_URL = "redis://localhost:6379"


class App(WithForeignWords, DeclaredSchedules[S], Extensions, BulkWrites, words=OF_APPS):
    """Tasks, and the storage that holds their jobs.

    Making one connects nothing. Use ``async with app:`` around what enqueues, or call `aclose` at
    the end; the connection opens on first use and can be shared by any number of coroutines. Each
    event loop that uses the app has a connection of its own.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; without a server ``file:///directory`` or
            ``memory://``. Default: the environment's ``HEADRACE_URL``, else ``HEADRACE_REDIS_URL``,
            else ``REDIS_URL``, else ``redis://localhost:6379``.
        name: what its declared schedules are stored under, so that its releases, and they alone,
            change them. Two programs that share a tenant need two names. Default: the name of the
            module that makes the app; of the main program, of its file.
        tenant: a name that keeps this app's queues apart from other tenants'; default: the
            environment's ``HEADRACE_TENANT``, else ``default``.
        lifespan: makes an async context manager; a worker enters it before its first job and leaves
            it after its last. What it yields is every handler's ``context.state``.
        allow_eviction: use a server whose ``maxmemory-policy`` may throw jobs away.
        retry_for: how long a lost enqueue is repeated before it raises, default 10 seconds.
        include: names of the modules that declare its tasks, and of packages, which stand for all
            that is in them; `load` imports them, not this.
        skew_grace: how long a job waits for another release of the program whose arguments lack a
            field or have one that is not known here, default 5 minutes; 0: it fails at once. A task
            may say its own.
        release: what this release of the program is called where its workers are told apart, such
            as a version or a commit. Default: the environment's ``HEADRACE_RELEASE``, else none.
        encoders: from values of types of your own to plain data, a function by type; a value of a
            derived class takes its nearest base's. See ``docs/types.md``.
        decoders: from that data back to a value, for the same types.
        validate: hold the arguments of tasks against their annotations when they are enqueued, and
            results before they are stored; a task may say its own. Default no.

    Raises:
        InvalidOption: the URL, tenant, duration or a name is not valid, a variable is set but
            empty, or a type is in one of ``encoders`` and ``decoders`` alone, or needs none.
        UsageError: the lifespan makes no async context manager, or takes arguments.
    """

    codec: Codec = JSON
    """What the app's arguments, results and output are stored as."""

    @overload
    def __init__(
        self: App[None],
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
        url: str | None = None,
        *,
        name: str | None = None,
        tenant: str | None = None,
        lifespan: Lifespan[Any] | None = None,
        allow_eviction: bool = False,
        retry_for: Duration = 10.0,
        include: Iterable[str] = (),
        skew_grace: Duration = 300.0,
        release: str | None = None,
        encoders: ByType | None = None,
        decoders: ByType | None = None,
        validate: bool = False,
    ) -> None:
        if url is None:
            url = variable(*URL_VARIABLES) or DEFAULT_URL
        if tenant is None:
            tenant = variable("HEADRACE_TENANT") or DEFAULT_TENANT
        plain_url = plain_text(url)
        Extensions.__init__(self)
        self.name: str = check_text(default_app_name() if name is None else name, what="app name")
        self.tasks: dict[str, Task[..., Any]] = {}
        DeclaredSchedules.__init__(self, self.tasks)
        self.url: str = check_url(url if plain_url is None else plain_url)
        self.tenant: str = check_name(tenant, what="tenant")
        self.lifespan: Lifespan[Any] | None = None if lifespan is None else check_lifespan(lifespan)
        self.allow_eviction = allow_eviction
        if encoders or decoders:
            self.codec = JsonCodec(conversions_of(encoders, decoders))
        self._modules = check_modules(include, name="include")
        self._defaults: TaskDefaults = {"skew_grace": skew_grace, "validate": validate}
        task_settings(**self._defaults)
        said = variable("HEADRACE_RELEASE") if release is None else release
        self.release: str | None = None if said is None else check_text(said, what="release")
        self._known = KnownTasks(self.tasks, self.codec)
        self._clients = Clients(
            Opening(storage=self._open_storage, blocking=self._open_blocking),
            decoder_of=self._known.decoder_of,
            retry_for_s=duration_ms(retry_for, name="retry_for") / 1000,
        )
        self._sender = Sender(self._clients, self.preparers)

    def __repr__(self) -> str:
        return f"<App at {redacted(self.url)}, tenant {self.tenant!r}, {len(self.tasks)} tasks>"

    def __reduce__(self) -> tuple[Any, ...]:
        said: dict[str, Any] = {
            "name": self.name,
            "tenant": self.tenant,
            "allow_eviction": self.allow_eviction,
            "retry_for": self._clients.retry_for_s,
            "include": self._modules,
            "release": self.release,
            **self._defaults,
        }
        if isinstance(self.codec, JsonCodec):
            conversions = self.codec.conversions
            said |= {"encoders": conversions.encoders, "decoders": conversions.decoders}
        make: Any = partial(type(self), **said)
        if self.url.startswith("memory://"):
            return made_again, (make, self.url, os.getpid())
        return make, (self.url,)

    def _declare(self, function: Callable[..., Any], options: TaskOptions) -> Task[..., Any]:
        function = function_of(function)
        options = over(self._defaults, options)
        name = options.get("name")
        task = new_task(
            function,
            name=default_name(function) if name is None else name,
            settings=with_executor(task_settings(**options), function, options.get("executor")),
            submitter=self._sender,
            codec=self.codec,
        )
        self._enter(task)
        return task

    @spelled_out(SharedOptions, TaskDefaults)
    def include(
        self, blueprint: Blueprint[Any], *, prefix: str = "", **defaults: Unpack[TaskDefaults]
    ) -> None:
        """Make a blueprint's tasks this app's, those that it declares later too.

        What a task says itself counts first, then the defaults given here, then the blueprint's.
        With a prefix a task is called by that, the blueprint's prefix and its own name, where it
        has none the function's.

        Args:
            blueprint: included nowhere else.
            prefix: begins the tasks' names.
            **defaults: options of the tasks where these say nothing, see `TaskDefaults`.

        Raises:
            UsageError: it is included already, a task's name is taken, or an annotation of one
                can't be decoded.
            InvalidOption: an option is out of bounds, or the prefix can't begin a name.
        """
        join(blueprint, self._adopt, self._schedule, prefix, defaults)

    def _adopt(self, task: Task[..., Any], prefix: str, options: TaskOptions) -> None:
        options = over(self._defaults, options)
        function, name = task.function, options.get("name")
        if name is None:
            name = function.__qualname__ if prefix else default_name(function)
        settings = with_executor(task_settings(**options), function, options.get("executor"))
        task.place(name=prefix + name, settings=settings, submitter=self._sender, codec=self.codec)
        self._enter(task)

    def _enter(self, task: Task[..., Any]) -> None:
        names = dict.fromkeys((task.name, *task.settings.aliases))
        for name in names:
            before = self.tasks.get(name)
            if before is not None and not is_redefinition(task.function, before.function):
                raise UsageError(f"the task name {name!r} is taken: pass another name=")
        self.tasks.update(dict.fromkeys(names, task))

    def load(self) -> None:
        """Import the modules of ``include``, so that all tasks and their types are known.

        Workers, the test kit and commands that are given the app do so. A program does that looks
        tasks up by name, once all its own modules are imported: from within one of ``include`` the
        import would go in a circle. Calling it again changes nothing.

        Raises:
            AppImportError: one can't be imported.
            UsageError: an annotation of a task names what is nowhere defined, or an argument of a
                schedule is not of its type.
            InvalidOption: a task that another names for its failures can't take what it is told,
                or two tasks of a queue declare a limit of one name with other terms.
        """
        for module in self._modules:
            import_tree(module, cause=f"the app includes {module}")
        for task in self.tasks.values():
            task.signature.resolve()
        check_fail_tasks(self.tasks)
        limits_of(self)
        declared_of(self)

    # Enqueueing

    def task_ref(self, name: str, *, queue: str | None = None) -> TaskRef:
        """Return a task by its name, to enqueue it with options; nothing is sent.

        Args:
            name: the task's name.
            queue: where its jobs wait; default: the queue that it declares, if this app has it.

        Raises:
            InvalidOption: a name is not valid.
        """
        return TaskRef(name, queue, tasks=self.tasks, submitter=self._sender, codec=self.codec)

    async def enqueue(
        self, name: str, /, *args: Any, queue: str | None = None, **kwargs: Any
    ) -> JobHandle[Any]:
        """Store a job by its task's name; `task_ref` takes options too.

        For a task that this app has registered, the arguments are held against its signature. One
        that only the workers know needs ``queue`` and takes arguments by name only.

        Raises:
            UnknownTask: not registered here, and no queue is said.
            InvalidArguments: the arguments don't fit, or a foreign task got positional ones.
            UsageError, StorageError: as `TaskCall.enqueue`.
        """
        return await self.task_ref(name, queue=queue).enqueue(*args, **kwargs)

    async def enqueue_many(
        self, jobs: Iterable[Job[Found]], *, replace_ended: bool = True
    ) -> list[JobHandle[Found]]:
        """Store many jobs in chunks of up to 500, each chunk whole or not at all.

        ``jobs`` may be a generator and is read as the storage takes them, so a million need no
        list. A job that was sent before is a duplicate while the first is there.

        Args:
            jobs: made by ``task.job(...)``.
            replace_ended: a job with the id of a failed or cancelled one takes its place. False:
                it is a duplicate of any job of its id of which there is a record, for writers that
                are run again behind your back.

        Raises:
            StorageError: some chunk was not stored; ``error.accepted`` holds the handles of the
                chunks before it, and later ones were not, or may have been, stored.
            UsageError: making a job failed, or one is not valid; earlier chunks are stored.
        """
        try:
            return await self._sender.submit_many(as_asked(jobs, replace_ended=replace_ended))
        except UsageError:
            close_unsent(jobs)
            raise

    @overload
    def job(
        self, job_id: str, *, queue: str | None = None, task: Task[..., Found]
    ) -> JobHandle[Found]: ...

    @overload
    def job(
        self, job_id: str, *, queue: str | None = None, task: str | None = None
    ) -> JobHandle[Any]: ...

    def job(
        self,
        job_id: str,
        *,
        queue: str | None = None,
        task: Task[..., Any] | str | None = None,
    ) -> JobHandle[Any]:
        """Return a handle for a job enqueued elsewhere; nothing is sent.

        Args:
            job_id: its id.
            queue: its queue; default: the queue of ``task``, else ``default``. `find` looks for it.
            task: its task, or the name of one, so that the result is decoded to the type that it
                declares; without it the result is plain data.

        Raises:
            InvalidOption: the id or a name is not valid.
            UnknownTask: the name is not registered in this app.
        """
        job_id, queue, decode = self._known.named_job(job_id, queue, task)
        return JobHandle(job_id, queue, EnqueueOutcome.UNKNOWN, self._clients.jobs, decode)

    @overload
    async def find(self, job_id: str, *, task: Task[..., Found]) -> JobHandle[Found]: ...

    @overload
    async def find(self, job_id: str, *, task: str | None = None) -> JobHandle[Any]: ...

    async def find(
        self, job_id: str, *, task: Task[..., Any] | str | None = None
    ) -> JobHandle[Any]:
        """Return a handle for a job of which only the id is known.

        It costs a call for each queue that the tenant has; `job` costs none where you know the
        queue.

        Args:
            job_id: its id.
            task: its task, as for `job`; default: the one that the job names, if this app has it.

        Raises:
            JobNotFound: no queue has it.
            InvalidOption: the id is not valid, or several queues have a job with it.
            UnknownTask: the name is not registered in this app.
            StorageError: the storage can't be reached.
        """
        job_id = self._known.check_wanted(job_id, task)
        record = await find_record(self._clients.current().storage, job_id)
        return self.job(job_id, queue=record.queue, task=self._known.task_of(record, task))

    def queue(self, name: str) -> Queue:
        """Return a queue, to look at and to steer."""
        return Queue(
            name,
            self._operator,
            decode=self._known.decode_plain,
            clock=lambda: self._clients.opening.clock(),
        )

    async def queues(self) -> list[str]:
        """Return the names of all queues that this tenant ever used."""
        return await self._clients.current().storage.queues()

    @property
    def schedules(self) -> Schedules:
        """The schedules that the storage keeps for this tenant, to put, look at and steer."""
        return Schedules(
            lambda: self._clients.current().storage,
            tasks=self.tasks,
            decode=self._known.decode_plain,
            submit=lambda job: self._clients.current().submit(job),
            clock=lambda: self._clients.opening.clock(),
        )

    async def connect(self) -> None:
        """Connect now rather than on first use, and see that the storage can be used.

        Raises:
            StorageUnavailable: it can't be reached.
            StorageRefused: wrong version, eviction policy or credentials.
        """
        await self._clients.current().storage.check()

    # Connections

    def _open_storage(self) -> Storage:
        return open_storage(self.url, tenant=self.tenant, allow_eviction=self.allow_eviction)

    def _open_blocking(self) -> BlockingStorage:
        return open_blocking(self.url, tenant=self.tenant, allow_eviction=self.allow_eviction)

    def _operator(self) -> Operator:
        return self._clients.current().storage

    async def aclose(self) -> None:
        """Send what waits, then close every connection of the running event loop.

        Another loop that uses the app closes its own, or loses them at its end. The app can be used
        again afterwards.
        """
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        self._clients.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Blocks may be nested, as when a worker runs beside who enqueues: the last one closes.
        await self._clients.leave()


class AppParts(NamedTuple):
    """What an app's twin without an event loop is made of.

    Attributes:
        clients: how its storages are opened.
        known: what its tasks say of jobs.
        declare: registers a task.
        schedule: declares a task's schedule, by the id that it says.
    """

    clients: Clients
    known: KnownTasks
    declare: Declare
    schedule: Callable[[str | None, OfTask], None]


def parts_of(app: App[Any]) -> AppParts:
    """Return what `SyncApp` uses of an app, and its users don't."""
    return AppParts(app._clients, app._known, app._declare, app._schedule)  # noqa: SLF001 (its door)


def clients_of(app: App[Any]) -> Clients:
    """Return what workers, commands and the test kit use of an app, and its users don't."""
    return app._clients  # noqa: SLF001 (this is its one door)


def sender_of(app: App[Any]) -> Sender:
    """Return what sends jobs that are made already, as the command line does."""
    return app._sender  # noqa: SLF001 (likewise)


def limits_of(app: App[Any]) -> dict[str, dict[str, Terms]]:
    """Return the terms of the limits that an app's tasks declare, by queue and name.

    Raises:
        InvalidOption: two tasks of a queue declare one name with other terms.
    """
    return declared_limits((task.name, task.settings) for task in app.tasks.values())


def declared_of(app: App[Any]) -> Declared:
    """Return the schedules that an app declares, once its modules are loaded."""
    return app._declarations.declared(app.name)  # noqa: SLF001 (likewise)
