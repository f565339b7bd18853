"""What goes to executors, and says there what is missing.

Spark pickles objects and functions of a module as names, which the other side imports: where that
has no headrace, all that its user hears is the name of a module. What is pickled here brings a
function by value instead, which needs nothing but Python to say what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle


class Shipped:
    """Of what is pickled on the driver and used on executors; to be inherited.

    Raises:
        ModuleNotFoundError: when it is unpickled where a module is missing; the message says where,
            and what to do.
    """

    def __reduce__(self) -> tuple[Callable[..., object], tuple[bytes]]:
        return _unpacking(), (cloudpickle.dumps((type(self), self.__dict__)),)


def _unpacking() -> Callable[[bytes], object]:
    # cloudpickle sends a function inside of another one by value. What it uses it has to import.
    def unpack(packed: bytes) -> object:
        import pickle
        import platform
        import sys

        try:
            kind, state = pickle.loads(packed)  # noqa: S301 (Spark itself has just done the same)
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name} is not installed for {sys.executable} on {platform.node()}: "
                "install it there, with pyarrow beside headrace, or send the executors an "
                "environment that has it (spark.archives). Modules of your own go with "
                "spark.sparkContext.addPyFile(...), on Spark Connect with "
                "spark.addArtifacts(..., pyfile=True)",
                name=missing.name,
            ) from None
        made: Any = kind.__new__(kind)
        made.__dict__.update(state)
        return made

    return unpack
