"""Converts returned values to JSON."""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import datetime
import enum
import uuid
from pathlib import PurePath
from typing import Any


def jsonable(value: Any) -> Any:
    """Converts a returned value to what `json` can write.

    Raises:
        TypeError: The value has no JSON form.
    """
    if isinstance(value, enum.Enum):
        return jsonable(value.value)
    if isinstance(value, str):
        return unicode_text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, abc.Mapping):
        return {_key(key): jsonable(member) for key, member in value.items()}
    if hasattr(value, "_asdict"):
        return jsonable(value._asdict())
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(member) for member in value), key=repr)
    if isinstance(value, (list, tuple, abc.Iterator)):
        return [jsonable(member) for member in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (PurePath, uuid.UUID)):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def unicode_text(text: str) -> str:
    """Returns a text that has a form in UTF-8, as the contract demands it.

    Raises:
        ValueError: The text has a lone surrogate, such as those of `errors="surrogateescape"`.
        TypeError: The value is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text of the result is of type {type(text).__name__}, and not a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a text of the result is not Unicode at character {error.start}; "
            'decode with `errors="replace"`'
        ) from None
    return text


def replaced(text: object) -> str:
    """Returns the text of a message. It replaces lone surrogates: a message never fails."""
    return str(text).encode(errors="replace").decode()


def _key(key: Any) -> str:
    plain = jsonable(key)
    return plain if isinstance(plain, str) else str(plain)
