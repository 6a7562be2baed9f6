"""Tests tools without a sandbox.

The function of a tool stays a function, and a test can call it directly. `call` goes the host's
way, from JSON to the output, in a workspace of its own:

    from palisade_guest.testing import call

    def test_words_are_counted():
        result = call(count_words, {"path": "a.txt"}, files={"a.txt": "one two"})
        assert result.text == "2"
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from . import _output
from ._tool import Tool, arguments_of
from .context import Call, Context
from .errors import PermissionDenied, ToolError, from_exception

__all__ = ["Record", "Result", "call", "context", "definition"]


@dataclass
class Record:
    """The messages of a tool to the host, each list in order. Stands for the host in a test.

    Args:
        cancel_after: The call appears cancelled after this number of polls. None for never.
    """

    cancel_after: int | None = None
    logs: list[tuple[str, str]] = field(default_factory=list)
    progress_reports: list[tuple[float, float | None, str | None]] = field(default_factory=list)
    emitted: list[str] = field(default_factory=list)
    polls: int = 0

    def log(self, level: str, message: str) -> None:
        """Records a message."""
        self.logs.append((level, message))

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Records a report of progress."""
        self.progress_reports.append((done, total, message))

    def emit(self, chunk: str) -> None:
        """Records a part of the output."""
        self.emitted.append(chunk)

    def cancelled(self) -> bool:
        """Counts a poll."""
        self.polls += 1
        return self.cancel_after is not None and self.polls > self.cancel_after


@dataclass
class Result:
    """The result of a call in a test."""

    output: _output.Output
    record: Record
    files: dict[str, bytes]
    """The files of the workspace after the call, by their relative paths."""

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines."""
        return self.output.text

    @property
    def json(self) -> Any:
        """The value of the first JSON block, or None."""
        return self.output.json

    @property
    def content(self) -> list[_output.Content]:
        """The blocks."""
        return self.output.content

    @property
    def success(self) -> bool:
        """False if the outcome is a failure for the model."""
        return self.output.success


def call(
    tool: Callable[..., Any],
    values: Mapping[str, Any] | str | None = None,
    *,
    files: Mapping[str, str | bytes] | None = None,
    workspace: Path | None = None,
    cancel_after: int | None = None,
    **properties: Any,
) -> Result:
    """Calls a tool as the host does.

    The tool runs with the workspace as its working directory. A tool of class `none` runs in an
    empty one, and a tool of class `read` must leave it as it was.

    Args:
        tool: A function under `@tool`.
        values: The input: an object, or its JSON.
        files: The files of the workspace before the call, by their relative paths.
        workspace: The workspace, such as `tmp_path` of pytest. By default a temporary directory.
        cancel_after: The call appears cancelled after this number of polls.
        properties: Properties of the call, such as `session_id` or `remaining_ms`.

    Raises:
        ToolError: The tool failed. An exception of the tool is its `__cause__`.
    """
    made = _tool(tool)
    text = values if isinstance(values, str) else _output.dumps(dict(values or {}))
    record = Record(cancel_after)
    given = context(record, **properties)
    with _directory(workspace) as directory:
        _write(directory, files or {})
        side_effects = made.definition.side_effects
        before = _read(directory)
        with _sandbox(directory, side_effects):
            output = _run(made, text, given)
        after = _read(directory)
    if side_effects in ("none", "read") and before != after:
        changed = sorted(p for p in {*before, *after} if before.get(p) != after.get(p))
        raise PermissionDenied(
            f"a tool of class `{side_effects}` changed {', '.join(changed)}; the sandbox refuses it"
        )
    return Result(output, record, after)


def context(record: Record | None = None, **properties: Any) -> Context:
    """Returns a context for a direct call of a tool's function."""
    return Context(Call(**properties), record or Record())


def definition(tool: Callable[..., Any]) -> dict[str, Any]:
    """Returns what the host reads when it loads the plugin, with parsed schemas."""
    from ._build.definitions import plain

    return plain(_tool(tool).definition)


def _tool(function: Callable[..., Any]) -> Tool:
    made = getattr(function, "__palisade_tool__", None)
    if not isinstance(made, Tool):
        raise TypeError(f"{getattr(function, '__name__', function)!r} is no tool: it lacks @tool")
    return made


def _run(made: Tool, text: str, given: Context) -> _output.Output:
    try:
        values = arguments_of(text)
        for path in made.paths(values):
            _check_path(path)
        output = made.call(values, given)
        for block in output.content:
            if isinstance(block, _output.Json):
                _output.dumps(block.value)
    except ToolError:
        raise
    except Exception as error:
        raise from_exception(error) from error
    return output


def _check_path(path: str) -> None:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise PermissionDenied(f"{path}: the host refuses paths outside of the workspace")


@contextmanager
def _directory(workspace: Path | None) -> Iterator[Path]:
    if workspace is not None:
        yield workspace
        return
    with tempfile.TemporaryDirectory(prefix="workspace-") as directory:
        yield Path(directory)


@contextmanager
def _sandbox(directory: Path, side_effects: str) -> Iterator[None]:
    """Changes the working directory, which is all that a test can do without a sandbox."""
    earlier = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="empty-") as empty:
        os.chdir(empty if side_effects == "none" else directory)
        try:
            yield
        finally:
            os.chdir(earlier)


def _write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def _read(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
