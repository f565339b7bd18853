"""A handler's signature: its arguments by name, and the types that they and its result have.

What can't be stored is refused when the task is declared, what doesn't fit when it is called, and
what can't be read when the worker decodes it.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import asdict

from headrace.alias import aliases_of, by_any_name
from headrace.codec import Codec, Decode, Encode, EncodeArguments, read, unreadable
from headrace.errors import InvalidArguments, UsageError
from headrace.plain import cut

R = TypeVar("R")

_PLACE = re.compile(r" - at `\$\.([^`]*)`$")
"""Where msgspec says that a value is wrong, at the end of its errors."""

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature(Generic[R]):
    """How a handler is called: binds a producer's arguments by name, decodes them for the worker.

    Types may name what the handler's module defines later: they are read at first use then.

    Args:
        function: the handler.
        codec: for its arguments and its result.
        injected: classes of which the worker makes the first parameter if it is annotated so; it
            is no argument then.
        validate: hold arguments against their annotations before they are sent, and results before
            they are stored.

    Attributes:
        of_call: the parameters of a call.
        injected_name: the parameter that the worker fills in, "" if there is none.
        result_type: what the handler returns.
        aliases: the parameters by the names that they had before.
        encode: writes arguments.
        encode_result: writes a result.
        encode_plain: writes output.

    Raises:
        UsageError: a parameter can't be stored by name, values of its type or of the result's
            can't be stored, or one that is not the first mentions what the worker makes.
    """

    result_type: Any
    aliases: Mapping[str, str]
    encode: EncodeArguments
    encode_result: Encode
    encode_plain: Encode

    def __init__(
        self,
        function: Callable[..., Any],
        codec: Codec,
        *,
        injected: tuple[type, ...] = (),
        validate: bool = False,
    ) -> None:
        self._function = function
        self._codec = codec
        self._validate = validate
        self._where = f"{function.__module__}.{function.__qualname__}"
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        self.injected_name: str = self._injected(parameters, known_hints(function), injected)
        if self.injected_name:
            del parameters[0]
        self._check_kinds(parameters)
        self.of_call: inspect.Signature = signature.replace(parameters=parameters)
        self._positional = [p.name for p in parameters if p.kind in _BY_POSITION]
        self._positional_only = [
            p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        self.names: frozenset[str] = frozenset(p.name for p in parameters)
        self._required = frozenset(p.name for p in parameters if p.default is p.empty)
        self._has_defaults = len(self._required) < len(self.names)
        try:
            self._read_types()
        except NameError as error:
            if "<locals>" in function.__qualname__:
                raise self._unresolved(error) from error
            self.__class__ = LateSignature

    def resolve(self) -> None:
        """Read types that were not defined yet when the task was declared.

        Raises:
            UsageError: they are not defined now either, or as for a new signature.
        """

    def _read_types(self) -> None:
        codec = self._codec
        hints = typing.get_type_hints(self._function, include_extras=True)
        arguments = {name: hints.get(name, Any) for name in self.of_call.parameters}
        result = _result(hints)
        for name, annotation in arguments.items():
            self._stored(f"parameter {name!r}", annotation)
        self._decode_result = self._stored("its return value", result)
        self.aliases = aliases_of(self._where, arguments, self.names)
        self._decode = by_any_name(
            codec.arguments_decoder(arguments, self.names - self._required),
            self.aliases,
            read=codec.decoder(dict[str, Any]),
            write=codec.arguments_encoder({}),
        )
        self._encode = codec.arguments_encoder(arguments)
        self._encode_result = codec.encoder(result)
        self.encode_plain = codec.encoder(Any)
        self.encode = self._encode_checked if self._validate else self._encode
        self.encode_result = self._encode_result_checked if self._validate else self._encode_result
        self.result_type = result

    def _stored(self, what: str, annotation: Any) -> Decode:
        """Return what reads values of a type, or say that none can be stored."""
        try:
            return self._codec.decoder(annotation)
        except TypeError as error:
            raise UsageError(
                f"{what} of {self._where} is annotated {inspect.formatannotation(annotation)}, "
                f"which can't be stored as {self._codec.name}: {error}"
            ) from error

    def _unresolved(self, error: NameError) -> UsageError:
        return UsageError(
            f"the annotations of {self._where} name {error.name!r}, which can't be found: define "
            "or import it at module level, not in a function and not under TYPE_CHECKING"
        )

    def _injected(
        self, parameters: list[inspect.Parameter], hints: dict[str, Any], kinds: tuple[type, ...]
    ) -> str:
        """Return the name of the first parameter if the worker fills it in, else ""."""
        found = ""
        for parameter in parameters:
            hint = hints.get(parameter.name)
            is_first = parameter is parameters[0] and parameter.kind in _BY_POSITION
            if is_first and (typing.get_origin(hint) or hint) in kinds:
                found = parameter.name
            elif _mentions(hint, kinds):
                raise UsageError(
                    f"{self._where} takes {cut(str(parameter))!r}, but a worker fills in only what "
                    f"comes first: write `context: {kinds[0].__name__}` as the first parameter"
                )
        return found

    def _check_kinds(self, parameters: list[inspect.Parameter]) -> None:
        for parameter in parameters:
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise UsageError(
                    f"{self._where} takes {parameter}, but arguments are stored by name: "
                    "take a list or dict parameter instead"
                )
            if type(parameter.default).__name__ == "Depends":
                raise UsageError(
                    f"parameter {parameter.name!r} of {self._where} is a Depends(...), which only "
                    "a web framework fills in: open in the app's lifespan what handlers share"
                )

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Return the arguments by name.

        Raises:
            InvalidArguments: they don't fit the signature.
        """
        if args:
            arguments: dict[str, object] = dict(zip(self._positional, args, strict=False))
            arguments.update(kwargs)
        else:
            arguments = kwargs
        fits = (
            len(arguments) == len(args) + len(kwargs)
            and arguments.keys() <= self.names
            and arguments.keys() >= self._required
        )
        if not fits or self._positional_only:
            try:
                return self.of_call.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise InvalidArguments(f"{self._where}: {cut(str(error), 200)}") from None
        return arguments

    def default_of(self, name: str) -> object:
        """Return the default of a parameter that a call may leave out."""
        default: object = self.of_call.parameters[name].default
        return default

    def decode(self, payload: bytes) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return positional and keyword arguments for the handler.

        Raises:
            msgspec.MsgspecError: the payload can't be read, or is not of the annotated types.
        """
        try:
            arguments = asdict(self._decode(payload))
        except RecursionError as error:  # as in `read`, which would be a call more for each job
            raise unreadable(error) from None
        if self._has_defaults:
            arguments = {k: v for k, v in arguments.items() if v is not msgspec.UNSET}
        if not self._positional_only:
            return (), arguments
        args = tuple(arguments.pop(name) for name in self._positional_only if name in arguments)
        return args, arguments

    def takes(self, count: int) -> bool:
        """Whether the handler can be called with so many arguments by position."""
        try:
            self.of_call.bind(*range(count))
        except TypeError:
            return False
        return True

    def read_plain(self, payload: bytes) -> Any:
        """Return what anybody's arguments are as plain data, None if they can't be read."""
        try:
            return read(self._codec.decoder(Any), payload)
        except (msgspec.MsgspecError, UnicodeError):
            return None

    def check(self, payload: bytes) -> None:
        """Hold encoded arguments against their annotations.

        Raises:
            InvalidArguments: one is not of its type; the message names the parameter.
        """
        try:
            self.decode(payload)
        except msgspec.MsgspecError as error:
            text = str(error)
            found = _PLACE.search(text)
            what, name = (text[: found.start()], f"{found[1]}: ") if found else (text, "")
            raise InvalidArguments(f"{self._where}: {name}{cut(what, 500)}") from error

    def _encode_checked(self, arguments: Mapping[str, object]) -> bytes:
        payload = self._encode(arguments)
        self.check(payload)
        return payload

    def _encode_result_checked(self, value: object, path: str) -> bytes:
        result = self._encode_result(value, path)
        self.decode_result(result)
        return result

    def decode_result(self, result: bytes) -> R:
        """Return a result as the handler's annotation says.

        Raises:
            msgspec.MsgspecError: it is not of that type.
        """
        decoded: R = read(self._decode_result, result)
        return decoded


class LateSignature(Signature[R]):
    """A signature whose types are yet to be read; it becomes a plain one by that.

    What `_read_types` sets is missing until then, so that a signature that was read pays nothing.
    """

    def __getattr__(self, name: str) -> Any:
        """Read the types, and return what was made of them."""
        if name.startswith("__"):
            raise AttributeError(name)
        self.resolve()
        return getattr(self, name)

    def resolve(self) -> None:
        """Read the types, see `Signature.resolve`."""
        try:
            self._read_types()
        except NameError as error:
            raise self._unresolved(error) from error
        self.__class__ = Signature  # type: ignore[assignment]  # it is one from now on


def known_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations whose names are defined, without what `Annotated` adds."""
    known: dict[str, Any] = {}
    space = getattr(inspect.unwrap(function), "__globals__", {})
    for name, annotation in getattr(function, "__annotations__", {}).items():
        with suppress(NameError):
            one = SimpleNamespace(__annotations__={name: annotation})
            known |= typing.get_type_hints(one, globalns=space)
    return known


def _result(hints: Mapping[str, Any]) -> Any:
    """Return the type of what a handler's call comes to."""
    result = hints.get("return", Any)
    if typing.get_origin(result) in (Awaitable, Coroutine):
        result = typing.get_args(result)[-1]  # of a plain function that returns a coroutine
    # A handler that always raises has no result that could be of another type.
    return None if result in (typing.NoReturn, typing.Never) else result


def _mentions(hint: Any, kinds: tuple[type, ...]) -> bool:
    """Whether one of the classes, or one derived from them, is somewhere in an annotation."""
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, type) and issubclass(origin, kinds):
        return True
    return any(_mentions(inner, kinds) for inner in typing.get_args(hint))
