"""Turns type hints into JSON Schema and into functions that convert values of JSON."""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import datetime
import enum
import types
import typing
import uuid
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from . import _decode, _docstring
from ._decode import Codec, Decode, escape, utc
from ._json import jsonable
from .errors import DefinitionError, InvalidInput
from .types import constrain

# `Required` and `NotRequired` exist since Python 3.11.
_MARKS = [m for m in (getattr(typing, n, None) for n in ("Required", "NotRequired")) if m]
_FORMATS: dict[type, tuple[str, Callable[[str], Any]]] = {
    datetime.datetime: ("date-time", lambda text: datetime.datetime.fromisoformat(utc(text))),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", lambda text: datetime.time.fromisoformat(utc(text))),
    uuid.UUID: ("uuid", uuid.UUID),
}
_LISTS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.Iterable: list,
    abc.Collection: list,
}
_LISTS |= {set: set, frozenset: frozenset, abc.Set: frozenset}
_DICTS = {dict, abc.Mapping, abc.MutableMapping}
_SUPPORTED = (
    "str, int, float, bool, Literal, Enum, Optional, list, dict, tuple, dataclasses, TypedDict, "
    "NamedTuple, Path, date, datetime, time, UUID and Any"
)


class Member:
    """A member of an object: an argument of a tool or a field of a class."""

    def __init__(
        self,
        name: str,
        codec: Codec,
        default: Any = dataclasses.MISSING,
        factory: Any = dataclasses.MISSING,
    ) -> None:
        self.name = name
        self.codec = codec
        self.default = default
        self.factory = factory

    @property
    def is_required(self) -> bool:
        """An optional member may be left out even without a default; it is then None."""
        has_default = self.default is not dataclasses.MISSING
        return not (
            has_default or self.factory is not dataclasses.MISSING or self.codec.may_be_none
        )

    def absent(self) -> Any:
        """Returns the value of a member that was left out."""
        if self.factory is not dataclasses.MISSING:
            return self.factory()
        return None if self.default is dataclasses.MISSING else self.default


class Nulls(enum.Enum):
    """The form of None in a member of an object."""

    ABSENT = "its absence; the host passes no null"
    LISTED = "null, or its absence"
    RETURNED = "null; every member is present"


class Types:
    """Describes the types of one schema, which share their definitions."""

    def __init__(self, nulls: Nulls) -> None:
        self.nulls = nulls
        self.definitions: dict[str, Any] = {}
        self.none_differs_from_absence = False
        """True if a member that may be None has another default."""
        self._names: dict[str, type] = {}
        self._active: dict[type, str] = {}
        self._recursive: set[type] = set()
        self._decoders: dict[type, Decode] = {}

    def codec(self, hint: Any, place: str) -> Codec:
        """Describes a type.

        Raises:
            DefinitionError: JSON has no such type.
        """
        origin, arguments = get_origin(hint), get_args(hint)
        if hasattr(hint, "__value__"):
            return self.codec(hint.__value__, place)
        if hasattr(hint, "__supertype__"):
            return self.codec(hint.__supertype__, place)
        if origin is Annotated:
            return self._annotated(arguments, place)
        if origin in (Union, types.UnionType):
            return self._union(arguments, place)
        if origin is Literal:
            return _decode.choice({value: value for value in arguments})
        if origin is not None and origin in _MARKS:
            return self.codec(arguments[0], place)
        if (origin or hint) is tuple:
            return self._tuple(arguments, place)
        if (origin or hint) in _LISTS:
            return self._list(_LISTS[origin or hint], arguments, place)
        if (origin or hint) in _DICTS:
            return self._dict(arguments, place)
        return self._plain(hint, place)

    def _plain(self, hint: Any, place: str) -> Codec:
        if hint is Any or hint is object:
            return Codec({}, lambda value, _: value)
        if hint is None or hint is type(None):
            return Codec({"type": "null"}, _decode.expect(type(None)), may_be_none=True)
        if hint in _decode.TYPES:
            return Codec({"type": _decode.TYPES[hint]}, _decode.expect(hint))
        if hint in _FORMATS:
            return _decode.formatted(*_FORMATS[hint])
        if isinstance(hint, type):
            if issubclass(hint, enum.Enum):
                return _decode.choice({member.value: member for member in hint})
            if issubclass(hint, PurePath):
                return _decode.path(hint)
            if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or _is_named_tuple(hint):
                return self._class(hint, place)
        shown = getattr(hint, "__name__", None) or str(hint)
        raise DefinitionError(f"{place}: the type {shown} has no JSON form; use {_SUPPORTED}")

    def _annotated(self, arguments: tuple[Any, ...], place: str) -> Codec:
        inner = self.codec(arguments[0], place)
        # The definition of a class is shared: keywords beside its reference are not.
        schema = dict(inner.schema)
        checks = constrain(schema, arguments[1:])
        return Codec(schema, _decode.checked(inner.decode, checks), inner.may_be_none)

    def _union(self, arguments: tuple[Any, ...], place: str) -> Codec:
        others = [hint for hint in arguments if hint is not type(None)]
        codecs = [self.codec(hint, place) for hint in others]
        may_be_none = len(others) < len(arguments) or any(codec.may_be_none for codec in codecs)
        if len(codecs) == 1:
            schema = codecs[0].schema
        elif all(set(codec.schema) == {"type"} for codec in codecs):
            schema = {"type": [codec.schema["type"] for codec in codecs]}
        else:
            schema = {"anyOf": [codec.schema for codec in codecs]}
        decoders = [codec.decode for codec in codecs]
        return Codec(schema, _decode.either(decoders, may_be_none=may_be_none), may_be_none)

    def _list(self, make: Callable[[Any], Any], arguments: tuple[Any, ...], place: str) -> Codec:
        schema: dict[str, Any] = {"type": "array"}
        item = self.codec(arguments[0], f"{place}[]") if arguments else Codec({}, lambda v, _: v)
        if item.schema:
            schema["items"] = item.with_null()
        if make in (set, frozenset):
            schema["uniqueItems"] = True
        is_list, decode = _decode.expect(list), item.decode

        def convert(value: Any, pointer: str) -> Any:
            values = is_list(value, pointer)
            return make([decode(element, f"{pointer}/{at}") for at, element in enumerate(values)])

        return Codec(schema, convert)

    def _tuple(self, arguments: tuple[Any, ...], place: str) -> Codec:
        if not arguments or arguments[-1] is Ellipsis:
            return self._list(tuple, arguments[:1], place)
        items = [self.codec(hint, f"{place}[{at}]") for at, hint in enumerate(arguments)]
        count = len(items)
        prefix = [item.with_null() for item in items]
        schema: dict[str, Any] = {"type": "array", "prefixItems": prefix}
        schema |= {"minItems": count, "maxItems": count}
        is_list = _decode.expect(list)

        def convert(value: Any, pointer: str) -> Any:
            values = is_list(value, pointer)
            if len(values) != count:
                raise InvalidInput(pointer, f"must have {count} items")
            pairs = zip(items, values, strict=True)
            return tuple(item.decode(v, f"{pointer}/{at}") for at, (item, v) in enumerate(pairs))

        return Codec(schema, convert)

    def _dict(self, arguments: tuple[Any, ...], place: str) -> Codec:
        schema: dict[str, Any] = {"type": "object"}
        if not arguments:
            return Codec(schema, _decode.expect(dict))
        key, value = (self.codec(hint, f"{place}{{}}") for hint in arguments)
        if key.schema.get("type") != "string":
            raise DefinitionError(f"{place}: the keys of a JSON object are strings")
        if key.schema != {"type": "string"}:
            schema["propertyNames"] = key.schema
        schema["additionalProperties"] = value.with_null() or True
        is_dict = _decode.expect(dict)

        def convert(members: Any, pointer: str) -> Any:
            return {
                key.decode(name, pointer): value.decode(member, f"{pointer}/{escape(name)}")
                for name, member in is_dict(members, pointer).items()
            }

        return Codec(schema, convert)

    def _class(self, cls: type, place: str) -> Codec:
        """Describes a class in place, or by reference if it contains itself."""
        name = self._active.get(cls)
        if name is not None:
            self._recursive.add(cls)
            return Codec(
                {"$ref": f"#/$defs/{name}"}, lambda value, at: self._decoders[cls](value, at)
            )
        name = self._active[cls] = self._name(cls)
        try:
            members = class_members(cls, self, place)
        finally:
            del self._active[cls]
        schema = self.object_schema(members)
        description = _own_docstring(cls)
        if description.description:
            schema["description"] = description.description
        self._decoders[cls] = decode = _object_decoder(cls, members)
        if cls in self._recursive:
            self.definitions[name] = schema
            schema = {"$ref": f"#/$defs/{name}"}
        return Codec(schema, decode)

    def object_schema(self, members: list[Member]) -> dict[str, Any]:
        """Returns the schema of an object. It stays open: unknown members are ignored."""
        properties = {}
        for member in members:
            lists_null = self.nulls is not Nulls.ABSENT
            schema = dict(member.codec.with_null() if lists_null else member.codec.schema)
            has_default = member.default is not dataclasses.MISSING and member.default is not None
            if has_default and self.nulls is not Nulls.RETURNED:
                schema["default"] = jsonable(member.default)
            self.none_differs_from_absence |= has_default and member.codec.may_be_none
            properties[member.name] = schema
        is_returned = self.nulls is Nulls.RETURNED
        required = [member.name for member in members if is_returned or member.is_required]
        result: dict[str, Any] = {"type": "object", "properties": properties}
        return {**result, "required": required} if required else result

    def _name(self, cls: type) -> str:
        name = cls.__name__
        while self._names.setdefault(name, cls) is not cls:
            name += "_"
        return name


def class_members(cls: type, types_: Types, place: str) -> list[Member]:
    """Returns the members of a dataclass, a TypedDict or a NamedTuple."""
    hints = typing.get_type_hints(cls, include_extras=True)
    texts = _own_docstring(cls).arguments
    members = []
    if dataclasses.is_dataclass(cls):
        fields = [field for field in dataclasses.fields(cls) if field.init]
        rows = [(f.name, f.default, f.default_factory, f.metadata) for f in fields]
    else:
        absent = getattr(cls, "_field_defaults", {})
        optional = getattr(cls, "__optional_keys__", ())
        defaults = {name: None for name in optional} | absent
        missing = dataclasses.MISSING
        rows = [(name, defaults.get(name, missing), missing, {}) for name in hints]
    for name, default, factory, metadata in rows:
        codec = types_.codec(hints[name], f"{place}.{name}")
        describe(codec, metadata.get("description") or texts.get(name))
        members.append(Member(name, codec, default, factory))
    return members


def describe(codec: Codec, text: str | None) -> None:
    """Adds the description of a docstring. One at the type takes precedence."""
    if text and "description" not in codec.schema:
        codec.schema = {**codec.schema, "description": text}


def decode_members(members: list[Member], values: dict[str, Any], pointer: str) -> dict[str, Any]:
    """Converts the members of an object."""
    decoded = {}
    for member in members:
        if member.name in values:
            at = f"{pointer}/{escape(member.name)}"
            decoded[member.name] = member.codec.decode(values[member.name], at)
        elif member.is_required:
            raise InvalidInput(f"{pointer}/{escape(member.name)}", "is required")
        else:
            decoded[member.name] = member.absent()
    return decoded


def _object_decoder(cls: type, members: list[Member]) -> Decode:
    is_dict = _decode.expect(dict)
    optional = getattr(cls, "__optional_keys__", ())

    def decode(value: Any, pointer: str) -> Any:
        given = is_dict(value, pointer)
        decoded = decode_members(members, given, pointer)
        try:
            return cls(**{k: v for k, v in decoded.items() if k in given or k not in optional})
        except (TypeError, ValueError) as error:
            raise InvalidInput(pointer, str(error)) from error

    return decode


def _own_docstring(cls: type) -> _docstring.Docstring:
    text = cls.__doc__ or ""
    # `dataclass` and `NamedTuple` write a signature where there is no docstring.
    return _docstring.parse("" if text.startswith(f"{cls.__name__}(") else text)


def _is_named_tuple(hint: type) -> bool:
    return issubclass(hint, tuple) and hasattr(hint, "_fields")
