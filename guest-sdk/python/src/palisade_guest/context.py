"""The context of a call: its properties, and the messages that a tool can send to the host."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ._json import replaced
from .errors import Cancelled

Level = Literal["trace", "debug", "info", "warn", "error"]


class Backend(Protocol):
    """Where the messages go: to the host, or to the record of a test."""

    def log(self, level: str, message: str) -> None:
        """Writes to the log."""

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Reports progress."""

    def emit(self, chunk: str) -> None:
        """Shows a part of the output."""

    def cancelled(self) -> bool:
        """Returns true if the caller wants the call to stop."""


@dataclass
class Call:
    """The properties of a call, as the contract has them."""

    call_id: str = "call_1"
    session_id: str | None = None
    turn_id: str | None = None
    remaining_ms: int = 60_000
    context: str = ""
    metadata: str = ""


class Context:
    """The context of a call. A tool gets it through a parameter of this type.

    Its methods never fail and grant nothing. The host limits what they send: a message to 4 KiB,
    all log messages of a call to 256 KiB, all emitted chunks to 1 MiB.
    """

    def __init__(self, call: Call, backend: Backend) -> None:
        self._call = call
        self._backend = backend
        self._end = time.monotonic() + call.remaining_ms / 1000
        self._modified: list[str] = []

    def log(self, level: Level, message: object) -> None:
        """Writes to the host's log, under the ID of the call. The model does not see it."""
        self._backend.log(level, replaced(message))

    def debug(self, message: object) -> None:
        """Logs a detail for debugging the tool."""
        self.log("debug", message)

    def info(self, message: object) -> None:
        """Logs information."""
        self.log("info", message)

    def warn(self, message: object) -> None:
        """Logs a problem that does not stop the tool: `warning` by the name of the level."""
        self.warning(message)

    def warning(self, message: object) -> None:
        """Logs a problem that does not stop the tool."""
        self.log("warn", message)

    def error(self, message: object) -> None:
        """Logs a failure."""
        self.log("error", message)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Reports progress: `done` of `total`, in any unit. Values should grow."""
        self._backend.progress(
            float(done), None if total is None else float(total), replaced(message or "") or None
        )

    def emit(self, chunk: str) -> None:
        """Shows a part of the output to those who watch, before the call has ended.

        The model reads only what the tool returns.
        """
        self._backend.emit(replaced(chunk))

    def cancelled(self) -> bool:
        """Returns true if the caller has cancelled the call.

        A tool that polls has 25 ms from then on to clean up. A tool that never polls is stopped.
        """
        return self._backend.cancelled()

    def checkpoint(self) -> None:
        """Stops a loop of a cancelled call.

        Raises:
            Cancelled: The caller has cancelled the call.
        """
        if self.cancelled():
            raise Cancelled

    def modified(self, path: object) -> None:
        """Records a file that the tool changed, relative to the workspace."""
        self._modified.append(str(path))

    @property
    def call_id(self) -> str:
        """The ID of this call in results, events and logs."""
        return self._call.call_id

    @property
    def session_id(self) -> str | None:
        """The conversation that the call belongs to, if the caller has one."""
        return self._call.session_id

    @property
    def turn_id(self) -> str | None:
        """The turn within the conversation, if the caller has one."""
        return self._call.turn_id

    @property
    def remaining(self) -> float:
        """The seconds left before the deadline of the call."""
        return max(0.0, self._end - time.monotonic())

    @property
    def caller(self) -> Any:
        """The value that the caller passes along. The host does not read it."""
        return json.loads(self._call.context or "{}")

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the call, usually empty."""
        return json.loads(self._call.metadata or "{}")

    @property
    def files_modified(self) -> list[str]:
        """The files that the tool has recorded as changed."""
        return list(self._modified)
