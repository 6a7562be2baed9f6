"""Checks a returned value against the return type of its function."""

from __future__ import annotations

import collections.abc as abc
import inspect
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ._output import Output

_WIDER = {float: (float, int), bytes: (bytes, bytearray, memoryview)}


class ReturnType:
    """The return type of a function. Only the class of a value is checked, not its members."""

    def __init__(self, hint: Any) -> None:
        self._hint = hint
        classes = _classes(hint)
        # An `Output` has what no type says, such as a failure for the model.
        self._classes = None if classes is None else (*classes, Output)

    def check(self, value: Any) -> None:
        """Checks a value.

        Raises:
            TypeError: The value does not fit the type.
        """
        if self._classes is not None and not isinstance(value, self._classes):
            raise TypeError(
                f"the tool returned a value of type {inspect.formatannotation(type(value))}, and "
                f"its return type is {inspect.formatannotation(self._hint)}"
            )


def _classes(hint: Any) -> tuple[type, ...] | None:
    """Returns the classes of the values that fit a type, or None if that cannot be told."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(hint, "__value__"):
        return _classes(hint.__value__)
    if hasattr(hint, "__supertype__"):
        return _classes(hint.__supertype__)
    if origin is Annotated:
        return _classes(arguments[0])
    if origin in (Union, types.UnionType):
        alternatives = [_classes(argument) for argument in arguments]
        known = [classes for classes in alternatives if classes is not None]
        return sum(known, ()) if len(known) == len(alternatives) else None
    if origin is Literal:
        return tuple(type(value) for value in arguments)
    cls = origin or hint
    if not isinstance(cls, type) or cls in (Any, object) or getattr(cls, "_is_protocol", False):
        return None
    return (abc.Mapping,) if typing.is_typeddict(cls) else _WIDER.get(cls, (cls,))
