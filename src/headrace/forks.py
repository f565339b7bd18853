"""Undoes in a forked child what it must not inherit; the one place that hears of forks.

A child has the memory of its parent but one thread, and shares what that has open. Each module
that owns something of which this matters registers here how it is given up.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from weakref import WeakSet

Call = Callable[[], None]

_before: list[Call] = []
_in_parent: list[Call] = []
_in_child: list[Call] = []
_former: dict[int, signal._HANDLER] = {}
_sockets: WeakSet[socket.socket] = WeakSet()
_masks = threading.local()
_count = 0


def count() -> int:
    """Return how many forks there were between the first process and this one."""
    return _count


def on_fork(
    *, before: Call | None = None, in_parent: Call | None = None, in_child: Call | None = None
) -> None:
    """Have calls made around every fork of this process, for as long as it lives.

    Args:
        before: in the forking thread.
        in_parent: there too, afterwards.
        in_child: in the child, by its only thread, before anything else of it runs.
    """
    for calls, call in ((_before, before), (_in_parent, in_parent), (_in_child, in_child)):
        if call is not None:
            calls.append(call)


def handle(number: int, handler: signal._HANDLER) -> None:
    """Set the handler of a signal for this process alone: its forks have the former one.

    Only the main thread may call this.
    """
    former = signal.signal(number, handler)
    # One that Python did not set can't be set again.
    _former.setdefault(number, signal.SIG_DFL if former is None else former)


def release_signals() -> None:
    """Set the former handlers again."""
    for number, former in _former.items():
        signal.signal(number, former)
    _former.clear()


def keep(ours: socket.socket) -> None:
    """Close a socket in forks, which would hold it open when this process has ended."""
    _sockets.add(ours)


def _fork_begins() -> None:
    # A signal for the child must not meet the parent's handler, and waits for the former one.
    _masks.former = signal.pthread_sigmask(signal.SIG_BLOCK, list(_former))
    for call in reversed(_before):
        call()


def _fork_ended() -> None:
    for call in _in_parent:
        call()
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former)


def _fork_began() -> None:
    global _count
    _count += 1
    for call in _in_child:
        call()
    for ours in list(_sockets):
        ours.close()
    # Else what arrives here would be told to the parent's loop.
    signal.set_wakeup_fd(-1)
    release_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.former)


os.register_at_fork(before=_fork_begins, after_in_parent=_fork_ended, after_in_child=_fork_began)
