"""Reads the description of a tool and of its arguments from a docstring.

The styles of Google, NumPy and Sphinx are understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from inspect import cleandoc

_ARGUMENTS = {"args", "arguments", "parameters", "params", "attributes", "keyword args"}
_RETURNS = {"returns", "return", "yields"}
_FOR_PEOPLE = {"raises", "raise", "warns", "see also", "references"}
_SECTION = re.compile(r"^([A-Za-z][A-Za-z ]*):\s*$")
_ENTRY = re.compile(r"^\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}([A-Za-z_]\w*)\s*(?::.*)?$")
_SPHINX = re.compile(
    r"^:(param|parameter|arg|argument|returns?|raises?|rtype|type)\b([^:]*):\s*(.*)$"
)


@dataclass
class Docstring:
    """The content of a docstring."""

    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def parse(text: str | None) -> Docstring:
    """Parses a docstring. Sections for programmers, such as `Raises`, are left out."""
    found = Docstring()
    body: list[str] = []
    lines = cleandoc(text or "").splitlines()
    at = 0
    while at < len(lines):
        title, start = _section(lines, at)
        if title is None:
            at = _line(lines, at, body, found)
            continue
        end = _end(lines, start, is_numpy=start == at + 2)
        _read_section(title, lines[start:end], found, body, is_numpy=start == at + 2)
        at = end
    found.description = re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip()
    return found


def _section(lines: list[str], at: int) -> tuple[str | None, int]:
    """Returns the title of the section that begins here, and the index of its first line."""
    known = _ARGUMENTS | _RETURNS | _FOR_PEOPLE
    line = lines[at]
    underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip())
    if underlined and line.strip().lower() in known:
        return line.strip().lower(), at + 2
    match = _SECTION.match(line)
    if match and match[1].lower() in known:
        return match[1].lower(), at + 1
    return None, at


def _end(lines: list[str], start: int, *, is_numpy: bool) -> int:
    """Returns the index after the last line of a section."""
    at = start
    while at < len(lines):
        is_next = _section(lines, at)[0] is not None
        is_out = not is_numpy and lines[at].strip() and not lines[at].startswith((" ", "\t"))
        if is_next or is_out:
            break
        at += 1
    return at


def _read_section(
    title: str, lines: list[str], found: Docstring, body: list[str], *, is_numpy: bool
) -> None:
    if title in _ARGUMENTS:
        found.arguments.update(_entries(lines, _NUMPY_ENTRY if is_numpy else _ENTRY))
    elif title in _RETURNS:
        text = _joined(lines)
        if text:
            body += ["", f"Returns: {text}", ""]


def _entries(lines: list[str], pattern: re.Pattern[str]) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    depth = next((_depth(line) for line in lines if line.strip()), 0)
    for line in lines:
        match = pattern.match(line.strip()) if _depth(line) == depth else None
        if match:
            current = entries.setdefault(match[1], [])
            if pattern is _ENTRY:
                current.append(match[2])
        elif current is not None:
            current.append(line)
    return {name: _joined(text) for name, text in entries.items()}


def _line(lines: list[str], at: int, body: list[str], found: Docstring) -> int:
    """Reads a line outside of any section. Returns the index of the next one."""
    match = _SPHINX.match(lines[at])
    if not match:
        body.append(lines[at])
        return at + 1
    text = [match[3]]
    at += 1
    while at < len(lines) and lines[at].startswith((" ", "\t")):
        text.append(lines[at])
        at += 1
    name = match[2].split()[-1] if match[2].split() else ""
    if match[1].startswith(("param", "arg")) and name:
        found.arguments[name] = _joined(text)
    elif match[1].startswith("return"):
        body += ["", f"Returns: {_joined(text)}", ""]
    return at


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
