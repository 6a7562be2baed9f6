"""The decorator `tool`, and what it makes of a function."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, overload

from . import _codec, _docstring, _output
from ._codec import Member, Nulls, Types
from ._returned import ReturnType
from .context import Context
from .errors import DefinitionError, InvalidInput

SideEffects = Literal["none", "read", "write", "execute", "network"]
Function = TypeVar("Function", bound=Callable[..., Any])

_CLASSES = get_args(SideEffects)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Limits of the contract (`wit/types.wit`, `wit/tool.wit`).
_MAX_DESCRIPTION = 16 * 1024
_MAX_TITLE = 128
_MAX_TOOLS = 256

TOOLS: dict[str, Tool] = {}
"""The tools of this plugin, in the order of their definition."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """The definition of a tool, as the contract has it. Schemas and metadata are JSON."""

    name: str
    title: str | None
    description: str
    input_schema: str
    output_schema: str | None
    side_effects: str
    idempotent: bool
    timeout_ms: int | None
    metadata: str


class Tool:
    """A function with its definition and its conversions."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.function = function
        self.name = options["name"] or function.__name__
        _require(
            _NAME.fullmatch(self.name),
            f"`{self.name}` is no name of a tool: a name is "
            "lower-case letters, digits and `_`; give another one as `name`",
        )
        self._hints = _hints(function, self.name)
        self._context: str | None = None
        docstring = _docstring.parse(options["description"] or function.__doc__)
        self._members, self._types = self._arguments(docstring, Nulls.ABSENT)
        input_schema = self._types.object_schema(self._members)
        if self._types.none_differs_from_absence:
            self._members, self._types = self._arguments(docstring, Nulls.LISTED)
            input_schema = self._types.object_schema(self._members)
        self._output_schema, self._is_blocks = self._returned()
        self._return_type = ReturnType(self._hints.get("return", Any))
        self.definition = self._define(docstring, options, _schema(input_schema, self._types))

    def call(self, values: dict[str, Any], context: Context) -> _output.Output:
        """Runs the function as the host does: from the members of the input to the output."""
        arguments = _codec.decode_members(self._members, values, "")
        if self._context is not None:
            arguments[self._context] = context
        value = self.function(**arguments)
        self._return_type.check(value)
        is_json = self._output_schema is not None
        output = _output.to_output(value, is_json=is_json, is_blocks=self._is_blocks)
        recorded = context.files_modified
        output.files_modified += [path for path in recorded if path not in output.files_modified]
        return output

    def paths(self, values: dict[str, Any]) -> list[str]:
        """Returns the paths of the workspace among the arguments, for a test."""
        marked = [m for m in self._members if m.codec.schema.get("format") == "workspace-path"]
        return [values[m.name] for m in marked if isinstance(values.get(m.name), str)]

    def _arguments(
        self, docstring: _docstring.Docstring, nulls: Nulls
    ) -> tuple[list[Member], Types]:
        types, members = Types(nulls), []
        for name, parameter in inspect.signature(self.function).parameters.items():
            place = f"{self.name}: argument `{name}`"
            _require(
                parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY),
                f"{place}: a tool takes named arguments only",
            )
            _require(name in self._hints, f"{place} has no type; write `{name}: str`, for example")
            if self._hints[name] is Context:
                self._context = name
                continue
            codec = types.codec(self._hints[name], place)
            _codec.describe(codec, docstring.arguments.get(name))
            has_default = parameter.default is not parameter.empty
            default = parameter.default if has_default else dataclasses.MISSING
            members.append(Member(name, codec, default))
        known = {member.name for member in members} | {self._context}
        for name in docstring.arguments:
            _require(
                name in known,
                f"{self.name}: the docstring describes `{name}`, which is no "
                "argument of the function",
            )
        return members, types

    def _returned(self) -> tuple[str | None, bool]:
        """Returns the schema of a typed object, and true for a list of blocks."""
        hint = self._hints.get("return")
        if hint is None or hint in (str, bytes, Any, object, _output.Output, *_output.BLOCKS):
            return None, False
        if _is_block(hint):
            return None, False
        if get_origin(hint) in (list, tuple) and all(map(_is_block, get_args(hint))):
            return None, True
        if not _is_object(hint):
            return None, False
        types = Types(Nulls.RETURNED)
        codec = types.codec(hint, f"{self.name}: the returned value")
        reference = codec.schema.get("$ref", "").rpartition("/")[2]
        return _schema(types.definitions.get(reference, codec.schema), types), False

    def _define(
        self, docstring: _docstring.Docstring, options: Mapping[str, Any], input_schema: str
    ) -> Definition:
        description, title = docstring.description, options["title"]
        _require(
            description,
            f"{self.name} has no description: write a docstring for the model "
            "that decides when to use the tool",
        )
        size = len(description.encode())
        _require(size <= _MAX_DESCRIPTION, f"{self.name}: the description has more than 16 KiB")
        _require(
            all(c in "\t\n" or c.isprintable() or ord(c) > 0x9F for c in description),
            f"{self.name}: the description has a control character",
        )
        _require(
            title is None or 0 < len(title) <= _MAX_TITLE,
            f"{self.name}: a title has 1 to {_MAX_TITLE} characters",
        )
        metadata = dict(options["metadata"] or {})
        has_optional = any(not member.is_required for member in self._members)
        if self._types.nulls is Nulls.ABSENT and has_optional:
            metadata.setdefault("null-is-absent", True)
        return Definition(
            name=self.name,
            title=title,
            description=description,
            input_schema=input_schema,
            output_schema=self._output_schema,
            side_effects=_class(self.name, options["side_effects"]),
            idempotent=bool(options["idempotent"]),
            timeout_ms=options["timeout_ms"],
            metadata=json.dumps(metadata) if metadata else "",
        )


@overload
def tool(
    *,
    side_effects: SideEffects,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
    timeout_ms: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Function], Function]: ...


@overload
def tool(function: None = None, **options: Any) -> Callable[[Function], Function]: ...


def tool(function: Any = None, **options: Any) -> Any:
    """Offers a function as a tool. The function itself stays as it is.

    Args:
        function: Nothing; the decorator needs its arguments.
        side_effects: The most that the tool can do to the world, which the host enforces: `none`
            sees no files, `read` reads the workspace, `write` changes it.
        name: The tool's name, if not that of the function.
        title: A short name for people.
        description: The purpose of the tool, if not in the docstring.
        idempotent: True if calling twice leaves the same state as calling once.
        timeout_ms: The maximum duration of a call. It can only lower the host's limit.
        metadata: Additional properties of the definition.

    Raises:
        DefinitionError: The host would refuse the tool.
    """
    _require(
        function is None and "side_effects" in options,
        'a tool names its class: @tool(side_effects="none"), "read" or "write"',
    )
    known = {"name": None, "title": None, "description": None, "idempotent": False}
    known |= {"timeout_ms": None, "metadata": None, "side_effects": None}
    for option in options:
        _require(
            option in known, f"`{option}` is no option of @tool; the options are {', '.join(known)}"
        )

    def register(decorated: Function) -> Function:
        _require(
            not inspect.iscoroutinefunction(decorated),
            f"{decorated.__name__}: a tool is a plain function, not an `async` one",
        )
        made = Tool(decorated, {**known, **options})
        earlier = TOOLS.get(made.name)
        _require(
            earlier is None or _is_same(earlier.function, decorated),
            f"two tools have the name `{made.name}`; give one another with `name`",
        )
        TOOLS[made.name] = made
        _require(len(TOOLS) <= _MAX_TOOLS, f"a plugin offers at most {_MAX_TOOLS} tools")
        decorated.__palisade_tool__ = made  # type: ignore[attr-defined]
        return decorated

    return register


def arguments_of(text: str) -> dict[str, Any]:
    """Parses the input of a call."""
    values = json.loads(text or "{}")
    if not isinstance(values, dict):
        raise InvalidInput("", "expected an object")
    return values


def _require(holds: object, message: str) -> None:
    if not holds:
        raise DefinitionError(message)


def _class(name: str, side_effects: str) -> str:
    _require(
        side_effects in _CLASSES,
        f"{name}: {side_effects!r} is no class of side effects; the "
        f"classes are {', '.join(_CLASSES)}",
    )
    return side_effects


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        message = f"{name}: a type cannot be resolved: {error}; define it before the function, at "
        raise DefinitionError(message + "the top of the module") from error


def _schema(schema: dict[str, Any], types: Types) -> str:
    if types.definitions:
        schema = {**schema, "$defs": types.definitions}
    return json.dumps(schema, ensure_ascii=False)


def _is_block(hint: Any) -> bool:
    if hint in _output.BLOCKS:
        return True
    arguments = get_args(hint) if get_origin(hint) is not list else ()
    blocks = [_is_block(argument) for argument in arguments if argument not in (str, bytes)]
    return bool(blocks) and all(blocks)


def _is_object(hint: Any) -> bool:
    if get_origin(hint) is typing.Annotated:
        return _is_object(get_args(hint)[0])
    is_class = isinstance(hint, type) and get_origin(hint) is None
    typed = is_class and (
        dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or hasattr(hint, "_fields")
    )
    return bool(typed or get_origin(hint) is dict)


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Recognises a module that is imported a second time under another name."""
    return one.__qualname__ == other.__qualname__ and one.__code__ == other.__code__
