"""Runs one scenario of a test module in a process of its own, where it may break what it stands on.

Run as ``python -m tests.apps.apart MODULE FUNCTION ARGUMENTS``; the arguments are passed as text.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import inspect
import os
import platform
import struct
import sys
from importlib import import_module

PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_TSYNC = 1
LOAD_NUMBER = (0x20, 0, 0, 0)
RETURN = 0x06
IF_EQUAL = 0x15
ERRNO = 0x00050000
ALLOW = 0x7FFF0000

NUMBERS = {"x86_64": (317, (74, 75)), "aarch64": (277, (82, 83))}
"""By machine: the system calls `seccomp`, and `fsync` and `fdatasync`."""


class Program(ctypes.Structure):
    """The kernel's ``sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def fail_fsync() -> None:
    """Let the kernel answer EIO to this process's ``fsync`` and ``fdatasync`` from now on."""
    seccomp, syncs = NUMBERS[platform.machine()]
    steps = [
        LOAD_NUMBER,
        (IF_EQUAL, 1, 0, syncs[0]),
        (IF_EQUAL, 0, 1, syncs[1]),
        (RETURN, 0, 0, ERRNO | errno.EIO),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = Program(len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    asked = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, ctypes.byref(program)
    )
    if asked != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main() -> None:
    """Run the scenario; an assertion that fails is the end of the process."""
    module, name, *args = sys.argv[1:]
    made = getattr(import_module(module), name)(*args)
    if inspect.iscoroutine(made):
        asyncio.run(made)


if __name__ == "__main__":
    main()
