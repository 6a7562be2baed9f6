"""The plugin inside of the sandbox: imports the author's modules, and serves the contract.

Only `componentize-py` imports this module. Code that runs at import runs once, when the plugin is
built: the memory of that moment is where every call begins. No module can be imported later, so
everything that a call may import is imported here.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import host, types

from . import _lazy, _output, _trace
from ._json import replaced
from ._tool import TOOLS, arguments_of
from .context import Call, Context
from .errors import (
    Cancelled,
    DefinitionError,
    InvalidInput,
    NotFound,
    ToolError,
    from_exception,
)


_LEVELS = {level.name.lower(): level for level in host.Level}
_ERRORS = {
    "not-found": types.ToolError_NotFound,
    "permission-denied": types.ToolError_PermissionDenied,
    "failed": types.ToolError_Failed,
}
_definitions: list[types.Definition] = []


def start(modules: Iterable[str], required: Iterable[str], optional: Iterable[str]) -> None:
    """Imports everything that a call may need, when the plugin is built.

    Args:
        modules: The author's modules with tools.
        required: Modules that these import within functions.
        optional: Modules that their packages may import, if they exist.
    """
    for name in [*modules, *required]:
        importlib.import_module(name)
    for name in optional:
        _lazy.attempt(name)
    _lazy.import_for_library()
    if not TOOLS:
        raise DefinitionError("no tool is defined: put @tool(side_effects=...) before a function")
    _definitions.extend(map(_definition, (tool.definition for tool in TOOLS.values())))
    _trace.keep_sources()
    _forward_logging()
    _lazy.end()
    # Objects of now are never garbage: without this, a collection in a call would touch them all.
    gc.collect()
    gc.freeze()


class Tool(exports.Tool):
    """The interface of the contract."""

    def definitions(self) -> list[types.Definition]:
        return _definitions

    def execute(self, call: types.Call) -> types.Output:
        try:
            _reseed()
            tool = TOOLS.get(call.tool)
            if tool is None:
                raise NotFound(f"this plugin has no tool `{call.tool}`")
            context = Context(_call(call), Host())
            return _wit_output(tool.call(arguments_of(call.input), context))
        except BaseException as error:
            _fail(error)


class Host:
    """Sends messages to the host."""

    def log(self, level: str, message: str) -> None:
        for part in _trace.parts(replaced(message)):
            host.log(_LEVELS[level], part)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        host.progress(done, total, message)

    def emit(self, chunk: str) -> None:
        host.emit(chunk)

    def cancelled(self) -> bool:
        return host.cancelled()


def _fail(error: BaseException) -> NoReturn:
    """Ends the call with an error for the model, and the traceback in the log."""
    is_meant = isinstance(error, ToolError)
    if not is_meant or error.__cause__ is not None:
        level = "debug" if is_meant else "error"
        # Line by line: a log has one line for each message.
        for line in _trace.shown(error).splitlines():
            Host().log(level, line)
    shown = from_exception(error)
    if isinstance(shown, Cancelled):
        raise Err(types.ToolError_Cancelled()) from None
    if isinstance(shown, InvalidInput):
        value = types.InvalidInput(shown.field, shown.reason)
        raise Err(types.ToolError_InvalidInput(value)) from None
    raise Err(_ERRORS[shown.kind](shown.message)) from None


def _call(call: types.Call) -> Call:
    names = ("call_id", "session_id", "turn_id", "remaining_ms", "context", "metadata")
    return Call(**{name: getattr(call, name) for name in names})


def _definition(definition: Any) -> types.Definition:
    values = {**vars(definition)}
    values["side_effects"] = types.SideEffects[definition.side_effects.upper()]
    return types.Definition(**values)


def _wit_output(output: _output.Output) -> types.Output:
    return types.Output(
        [_content(block) for block in output.content],
        output.success,
        _output.dumps(output.metadata) if output.metadata else "",
        [replaced(path) for path in output.files_modified],
        None if output.command_executed is None else replaced(output.command_executed),
    )


def _content(block: _output.Content) -> types.Content:
    match block:
        case _output.Text(text):
            return types.Content_Text(text)
        case _output.Json(value):
            return types.Content_Json(_output.dumps(value))
        case _output.Image(data, mime):
            return types.Content_Image(types.Media(mime, bytes(data)))
        case _output.Audio(data, mime):
            return types.Content_Audio(types.Media(mime, bytes(data)))
        case _output.Link(uri, name, mime):
            return types.Content_Link(types.ResourceLink(uri, name, mime))
        case _output.Resource(uri, str() as text, mime):
            body = types.ResourceBody_Text(text)
        case _output.Resource(uri, data, mime):
            body = types.ResourceBody_Bytes(bytes(data))
    return types.Content_Resource(types.EmbeddedResource(uri, mime, body))


def _reseed() -> None:
    """Makes `random` differ between calls: its state is that of the build."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed()


def _forward_logging() -> None:
    """Sends the messages of `logging` to the host's log, if the author's modules use it."""
    logging = sys.modules.get("logging")
    if logging is None or logging.root.handlers:
        return
    levels = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))

    class Handler(logging.Handler):  # type: ignore[name-defined,misc]
        def emit(self, record: Any) -> None:
            level = next((name for least, name in levels if record.levelno >= least), "debug")
            Host().log(level, self.format(record))

    handler = Handler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.INFO)
