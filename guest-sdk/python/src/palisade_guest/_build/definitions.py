"""Imports a module natively and prints the definitions of its tools."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import traceback
from typing import Any

from .._tool import TOOLS
from ..errors import DefinitionError


def show(module: str) -> None:
    """Prints the definitions as JSON, or ends with the reason on standard error."""
    try:
        importlib.import_module(module)
    except DefinitionError as error:
        sys.exit(f"{_place(error)}{error}")
    except BaseException as error:
        last = _place(error)
        sys.exit(f"{last}{module} cannot be imported: {type(error).__name__}: {error}")
    if not TOOLS:
        sys.exit(f"{module} defines no tool: put @tool(side_effects=...) before a function")
    print(json.dumps([plain(tool.definition) for tool in TOOLS.values()], indent=2))


def plain(definition: Any) -> dict[str, Any]:
    """Returns a definition with parsed schemas, without what has its default."""
    values = dataclasses.asdict(definition)
    for name in ("input_schema", "output_schema", "metadata"):
        values[name] = json.loads(values[name]) if values[name] else None
    return {name: value for name, value in values.items() if value not in (None, False)}


def _place(error: BaseException) -> str:
    """Returns the author's last line that led to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = ("palisade_guest", "importlib")
    own = [frame for frame in frames if not any(name in frame.filename for name in foreign)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
