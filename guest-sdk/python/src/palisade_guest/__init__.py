"""Write a Palisade plugin in Python: tools for agents, each call in its own sandbox.

from palisade_guest import tool

@tool(side_effects="none")
def greet(name: str) -> str:
    '''Greets a person by name.'''
    return f"Hello, {name}!"
"""

# Before everything that imports the standard library.
from . import _path as _path  # isort: skip
from ._output import Audio, Content, Image, Json, Link, Output, Resource, Text
from ._tool import SideEffects, tool
from .context import Context
from .errors import (
    Cancelled,
    DefinitionError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ToolError,
)
from .types import Field, ReadPath, WorkspacePath, WritePath

__version__ = "0.1.0"

__all__ = [
    "Audio",
    "Cancelled",
    "Content",
    "Context",
    "DefinitionError",
    "Field",
    "Image",
    "InvalidInput",
    "Json",
    "Link",
    "NotFound",
    "Output",
    "PermissionDenied",
    "ReadPath",
    "Resource",
    "SideEffects",
    "Text",
    "ToolError",
    "WorkspacePath",
    "WritePath",
    "tool",
]
