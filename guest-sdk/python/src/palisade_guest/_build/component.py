"""Reads the names of a component's imports."""

from __future__ import annotations

from .errors import BuildError

_HEADER = b"\0asm\x0d\0\x01\0"
_IMPORTS = 10


def imports_of(component: bytes) -> list[str]:
    """Returns the names of the imported interfaces.

    Raises:
        BuildError: The bytes are no component.
    """
    if not component.startswith(_HEADER):
        raise BuildError("the result is no WebAssembly component")
    names = []
    at = len(_HEADER)
    while at < len(component):
        section, at = component[at], at + 1
        size, at = _number(component, at)
        if section == _IMPORTS:
            names += _names(component[at : at + size])
        at += size
    return names


def _names(section: bytes) -> list[str]:
    count, at = _number(section, 0)
    names = []
    for _ in range(count):
        # A kind of name, the name, and the type: of an instance, its kind and its index.
        size, at = _number(section, at + 1)
        names.append(section[at : at + size].decode())
        at += size
        kind, at = section[at], at + 1
        if kind != 0x05:
            break
        _, at = _number(section, at)
    return names


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Reads an unsigned LEB128 number. Returns it and the index after it."""
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
