"""Handlers for process slots: what a process can do to itself, to its worker and to the machine."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from headrace import App, Context, FailPermanently, Failure, Retry, RetryLater, current_job

app = App(tenant="process-tests")

NOW = Retry(min=0.001, max=0.001)


class Point(NamedTuple):
    """An argument and a result with a type of its own."""

    x: int
    y: int


class Awkward(Exception):
    """Can't be made again from its text, nor be pickled."""

    def __init__(self, code: int, *, where: str) -> None:
        super().__init__(f"{code} at {where}")
        self.lock = threading.Lock()


def patience(errors: int, error: BaseException) -> float:
    """A retry strategy that looks at the error itself."""
    return errors * 10 + (1 if isinstance(error, Awkward) else 0)


def touch(path: str) -> None:
    """Say that a handler has come so far, and in which process."""
    draft = Path(f"{path}.draft")
    draft.write_text(str(os.getpid()))
    draft.rename(path)


# What comes back


@app.task(queue="cpu", executor="process")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.task(queue="cpu", executor="process", result_ttl=5, keep=9)
def mirror(point: Point) -> Point:
    assert type(point) is Point
    return Point(point.y, point.x)


@app.task(queue="cpu", executor="process", timeout=50)
def whoami(context: Context) -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "job": context.job_id,
        "task": context.task,
        "start": context.start,
        "failures": context.failures,
        "nonce": context.claim.nonce,
        "timeout": context.timeout,
        "same": current_job() is context,
        "state": context.state,
        "headers": dict(context.headers),
        "cancelled": context.cancelled(),
    }


@app.task(queue="cpu", executor="process")
def write(size: int) -> str:
    return "x" * size


@app.task(queue="cpu", executor="process")
def odd() -> Any:
    return {"a": [object()]}


@app.task(queue="cpu", executor="process")
def chat(context: Context, count: int) -> int:
    for number in range(count):
        context.emit(number)
        context.progress(number / count, f"piece {number}")
    return count


@app.task(queue="cpu", executor="process")
def chat_in_threads(context: Context, count: int) -> int:
    """Speak from several threads at once, one of which goes on after the end."""

    def speak(number: int) -> None:
        for step in range(count):
            context.emit([number, step, "x" * 1_000])

    def go_on() -> None:
        while True:
            context.emit("late")
            time.sleep(0.001)

    threads = [threading.Thread(target=speak, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.Thread(target=go_on, daemon=True).start()
    return count


# Errors


@app.task(
    queue="cpu", executor="process", retry=NOW, retry_on=(OSError, Awkward), fail_on=PermissionError
)
def fail_as(name: str) -> None:
    if name == "Awkward":
        raise Awkward(5, where="here")
    raise {"OSError": OSError, "PermissionError": PermissionError, "KeyError": KeyError}[name](name)


@app.task(queue="cpu", executor="process", retry=NOW)
def fail(text: str) -> None:
    raise ValueError(text)


@app.task(queue="cpu", executor="process", retry=patience)
def fail_awkwardly() -> None:
    raise Awkward(5, where="here")


@app.task(queue="cpu", executor="process", max_attempts=1)
def poll(context: Context) -> None:
    context.snooze(7, "not yet")


@app.task(queue="cpu", executor="process")
def choose(later: bool) -> None:  # noqa: FBT001 (as users write it)
    raise RetryLater(7) if later else FailPermanently("never")


@app.task(queue="cpu", executor="process", retry=NOW)
def leave(how: str) -> None:
    match how:
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "generator":
            raise GeneratorExit
        case "stop":
            raise StopIteration
        case "recursion":
            leave.function("recursion")


@app.task(queue="cpu", executor="process", retry=NOW)
def hoard() -> None:
    """Take memory until there is none, not even a little."""
    pieces = []
    for size in (1 << 20, 1 << 14, 1 << 8):
        with suppress(MemoryError):
            while True:
                pieces.append(bytearray(size))
    while True:
        pieces.append(bytearray(1))


@app.task(queue="cpu", executor="process")
def keep(size: int) -> int:
    """Take memory and never give it back."""
    _kept.append(b"x" * size)
    return len(_kept)


_kept: list[bytes] = []


# Deaths


@app.task(queue="cpu", executor="process")
def die(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "close":
            os.closerange(3, 256)


@app.task(queue="cpu", executor="process")
def die_while_answering(size: int) -> str:
    """Die in the midst of sending a result that is too large for the buffers in between."""
    main = threading.main_thread().ident
    here = sys._getframe().f_code  # noqa: SLF001 (documented in sys)

    def kill() -> None:
        while here in codes(sys._current_frames()[main or 0]):  # noqa: SLF001 (likewise)
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    return "x" * size


def codes(frame: Any) -> list[Any]:
    found = []
    while frame is not None:
        found.append(frame.f_code)
        frame = frame.f_back
    return found


@app.task(queue="cpu", executor="process")
def fork_and_return() -> str:
    """Return in two processes."""
    os.fork()
    return "once"


# What does not end


def forever() -> NoReturn:
    while True:
        pass


@app.task(queue="cpu", executor="process")
def spin(path: str) -> None:
    touch(path)
    forever()


@app.task(queue="cpu", executor="process")
def ignore_sigterm(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    touch(path)
    forever()


@app.task(queue="cpu", executor="process")
def hold_lock(path: str) -> None:
    """Sleep in C without giving up the interpreter's lock: no other thread of the child runs."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    touch(path)
    ctypes.PyDLL(None).sleep(600)


@app.task(queue="cpu", executor="process")
def stop_itself(path: str) -> None:
    touch(path)
    os.kill(os.getpid(), signal.SIGSTOP)


@app.task(queue="cpu", executor="process")
def polite(context: Context, path: str) -> str:
    touch(path)
    while not context.cancelled():
        pass
    return "what there was"


@app.task(queue="cpu", executor="process", retry=NOW)
def polite_with_an_error(context: Context, path: str) -> str:
    touch(path)
    while not context.cancelled():
        pass
    raise ValueError("stopped half-way")


@app.task(queue="cpu", executor="process")
def start_others(path: str) -> None:
    """Start a program and a fork, which hold what they inherited, and wait for ever."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    fork = os.fork()
    if not fork:
        forever()
    Path(f"{path}.others").write_text(f"{program.pid} {fork}")
    touch(path)
    forever()


@app.task(queue="cpu", executor="process")
def start_a_daemon(path: str) -> None:
    """Start a fork in a session of its own, which holds what it inherited."""
    daemon = os.fork()
    if not daemon:
        os.setsid()
        touch(f"{path}.daemon")
        forever()
    while not Path(f"{path}.daemon").exists():
        time.sleep(0.005)
    touch(path)
    forever()


# What a test lets go on


@app.task(queue="cpu", executor="process")
def wait_for(path: str, go: str) -> int:
    touch(path)
    while not Path(go).exists():
        time.sleep(0.005)
    return os.getpid()


@app.task(queue="cpu", executor="process")
def nap(ms: int) -> int:
    time.sleep(ms / 1000)
    return os.getpid()


@app.task(queue="cpu", executor="process")
def look_around() -> dict[str, str]:
    """Return what this process has open, by descriptor."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = os.readlink(entry)
        except OSError:
            continue  # the folder's own
    return found


@app.task(queue="cpu", executor="process")
def look_into_a_program() -> str:
    """Return what a program inherits that a handler starts without closing anything."""
    look = "import os; print(*[os.readlink(f'/proc/self/fd/{n}') for n in range(3, 99) if LINK])"
    look = look.replace("LINK", "os.path.lexists(f'/proc/self/fd/{n}')")
    done = subprocess.run(
        [sys.executable, "-c", look], close_fds=False, capture_output=True, text=True, check=True
    )
    return done.stdout


# Fail jobs


@app.task(queue="cpu", executor="process")
def mourn(context: Context, job_id: str, arguments: dict[str, Any], failure: Failure) -> list[Any]:
    return [os.getpid(), context.task, job_id, arguments, failure.reason, failure.message]
