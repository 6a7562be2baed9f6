"""The errors of a tool, and the conversion from other exceptions."""

from __future__ import annotations

import errno
import traceback

from ._json import replaced

_DENIED = {errno.EPERM, errno.EACCES, errno.EROFS, getattr(errno, "ENOTCAPABLE", errno.EPERM)}


class DefinitionError(Exception):
    """A tool that the host would refuse. Raised when the module is imported, never in a call."""


class ToolError(Exception):
    """The tool failed. The model reads the message, and nothing else."""

    kind = "failed"

    def __init__(self, message: str) -> None:
        message = replaced(message)
        super().__init__(message)
        self.message = message


class InvalidInput(ToolError):
    """The input conforms to the schema and still cannot be used.

    Args:
        field: The argument's name, or a JSON pointer to the value.
        reason: The fault of the value, and the accepted values.
    """

    kind = "invalid-input"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = replaced("" if field is None else field)
        self.reason = self.message

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class NotFound(ToolError):
    """Something that the input names does not exist."""

    kind = "not-found"


class PermissionDenied(ToolError):
    """Something that the tool needs is not permitted."""

    kind = "permission-denied"


class Cancelled(ToolError):
    """The tool stopped because the caller cancelled the call."""

    kind = "cancelled"

    def __init__(self, message: str = "the call was cancelled") -> None:
        super().__init__(message)


def from_exception(error: BaseException) -> ToolError:
    """Converts an exception to an error that the model can read: one line, no traceback."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, OSError):
        return _from_os_error(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return ToolError(_missing(error, error.name))
    if isinstance(error, SystemExit):
        return ToolError(f"the tool ended itself with sys.exit({error.code!r})")
    message = str(error)
    name = type(error).__name__
    return ToolError(f"{name}: {message}" if message else name)


def _missing(error: ModuleNotFoundError, name: str) -> str:
    # `import_module("a.b")` misses `a` first, and naming that would not be enough.
    wanted = (
        frame.f_locals.get("name", "")
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>"
    )
    name = next((whole for whole in wanted if whole.startswith(f"{name}.")), name)
    return (
        f"the plugin was built without the Python module {name!r}: its author imports it at the "
        "top of a file, or names it in `include` of [tool.palisade] in pyproject.toml"
    )


def _from_os_error(error: OSError) -> ToolError:
    reason = error.strerror or str(error) or type(error).__name__
    message = f"{_name(error.filename)}: {reason}" if error.filename is not None else reason
    if isinstance(error, FileNotFoundError):
        return NotFound(message)
    if isinstance(error, PermissionError) or error.errno in _DENIED:
        return PermissionDenied(message)
    return ToolError(message)


def _name(filename: object) -> str:
    return filename.decode(errors="replace") if isinstance(filename, bytes) else str(filename)
