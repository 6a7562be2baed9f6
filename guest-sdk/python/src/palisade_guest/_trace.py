"""Tracebacks for the log, without a look at files that a call does not have."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

# A longer message would be cut by the host (`wit/host.wit`).
_MAX_MESSAGE = 4 * 1024


def keep_sources() -> None:
    """Keeps the author's source, which a call cannot read, for the lines of a traceback.

    The other modules get no lines. Otherwise a traceback would look for their files, and the host
    would take the call for one of a tool that looks for files.
    """
    sdk = Path(__file__).parent
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if getattr(getattr(module, "__spec__", None), "origin", None) == "frozen":
            _keep(f"<frozen {name}>", [])
        if file:
            is_shown = not file.startswith("/python/") and Path(file).parent != sdk
            _keep(file, linecache.getlines(file) if is_shown else [])


def _keep(file: str, lines: list[str]) -> None:
    # Without a time of modification, the cache does not look for the file again.
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)


def shown(error: BaseException) -> str:
    """Returns the traceback of an error, from the author's function on."""
    made = traceback.TracebackException.from_exception(_without_sdk(error))
    _remove_columns(made)
    # The build mounts each directory under a number.
    return re.sub(r'File "/\d+/', 'File "', "".join(made.format()))


def _without_sdk(error: BaseException) -> BaseException:
    """Removes the frames above the author's function."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    return error.with_traceback(trace or error.__traceback__)


def _remove_columns(made: traceback.TracebackException) -> None:
    """Removes the marks below the lines. To place them, Python parses a part of a line, and looks
    for a file when the part is no expression."""
    for frame in made.stack:
        if hasattr(frame, "colno"):
            frame.colno = frame.end_colno = None
    others = (made.__cause__, made.__context__, *(getattr(made, "exceptions", None) or ()))
    for other in filter(None, others):
        _remove_columns(other)


def parts(message: str) -> list[str]:
    """Splits a message that is too long for the log, at the ends of lines where possible."""
    joined = [""]
    for line in message.splitlines(keepends=True):
        if joined[-1] and len((joined[-1] + line).encode()) > _MAX_MESSAGE:
            joined.append("")
        joined[-1] += line
    return [part for text in joined for part in _cut(text.rstrip("\n"))]


def _cut(text: str) -> Iterator[str]:
    """Cuts a text that is too long for the log, between characters."""
    data = text.encode()
    while len(data) > _MAX_MESSAGE:
        end = _MAX_MESSAGE
        while data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[:end].decode()
        data = data[end:]
    yield data.decode()
