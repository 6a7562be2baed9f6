"""Conversions of single values of JSON, which name the place of a wrong one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from .errors import InvalidInput
from .types import Check

Decode = Callable[[Any, str], Any]

TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_NAMES = {str: "a string", bool: "a boolean", int: "an integer", float: "a number"}
_NAMES |= {list: "an array", dict: "an object", type(None): "null"}


@dataclasses.dataclass
class Codec:
    """The schema of a type, and the conversion of its values."""

    schema: dict[str, Any]
    """The schema of a value other than None."""
    decode: Decode
    may_be_none: bool = False

    def with_null(self) -> dict[str, Any]:
        """Returns the schema of every value, for a place where a value cannot be left out."""
        schema = self.schema
        kind = schema.get("type")
        if not self.may_be_none or kind == "null" or not schema:
            return schema
        if not isinstance(kind, str) or "const" in schema:
            return {"anyOf": [schema, {"type": "null"}]}
        nullable = {**schema, "type": [kind, "null"]}
        return {**nullable, "enum": [*schema["enum"], None]} if "enum" in schema else nullable


def expect(kind: type) -> Decode:
    """Accepts values of one type of JSON."""

    def decode(value: Any, pointer: str) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        # A boolean is an integer in Python, and none in JSON.
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        found = _NAMES.get(type(value), type(value).__name__)
        raise InvalidInput(pointer, f"expected {_NAMES[kind]}, not {found}")

    return decode


def choice(members: dict[Any, Any]) -> Codec:
    """Accepts the keys, and converts each to its value."""
    values = [value for value in members if value is not None]
    schema: dict[str, Any] = {"enum": values}
    kinds = {TYPES.get(type(value)) for value in values}
    if len(kinds) == 1 and None not in kinds:
        schema = {"type": kinds.pop(), **schema}
    shown = ", ".join(str(value) for value in values)

    def decode(value: Any, pointer: str) -> Any:
        for known, member in members.items():
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return member
        raise InvalidInput(pointer, f"must be one of {shown}")

    return Codec(schema, decode, may_be_none=None in members)


def formatted(format_: str, parse: Callable[[str], Any]) -> Codec:
    """Accepts a string in a format of JSON Schema."""
    is_string = expect(str)

    def decode(value: Any, pointer: str) -> Any:
        try:
            return parse(is_string(value, pointer))
        except ValueError as error:
            raise InvalidInput(pointer, f"is not a {format_}: {error}") from None

    return Codec({"type": "string", "format": format_}, decode)


def path(kind: type[PurePath]) -> Codec:
    """Accepts a path of the workspace, which the host has checked."""
    is_string = expect(str)
    make = Path if kind is PurePath else kind

    def decode(value: Any, pointer: str) -> Any:
        return make(is_string(value, pointer))

    return Codec({"type": "string", "format": "workspace-path"}, decode)


def either(decoders: list[Decode], *, may_be_none: bool) -> Decode:
    """Accepts what one of these accepts, the first one first."""

    def decode(value: Any, pointer: str) -> Any:
        if value is None and may_be_none:
            return None
        first: InvalidInput | None = None
        for alternative in decoders:
            try:
                return alternative(value, pointer)
            except InvalidInput as error:
                first = first or error
        if len(decoders) == 1 and first:
            raise first
        raise InvalidInput(pointer, "matches none of the accepted types")

    return decode


def checked(decode: Decode, checks: list[Check]) -> Decode:
    """Accepts values that pass the checks of their annotations."""
    if not checks:
        return decode

    def convert(value: Any, pointer: str) -> Any:
        converted = decode(value, pointer)
        if value is not None:
            for check in checks:
                check(value, pointer)
        return converted

    return convert


def escape(name: str) -> str:
    """Escapes a member's name for a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def utc(text: str) -> str:
    """Replaces the suffix `Z` by an offset."""
    # Before Python 3.11, `fromisoformat` did not know `Z`.
    return text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
