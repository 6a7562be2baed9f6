"""Types and annotations for the arguments of a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from .errors import InvalidInput


@dataclass(frozen=True)
class Field:
    """Bounds and a description of a value, for `typing.Annotated`.

    Annotations of the package `annotated-types` have the same effect as the bounds here, and a
    string has that of `description`.
    """

    description: str | None = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    examples: Sequence[Any] | None = None
    schema: Mapping[str, Any] | None = None
    """Further keywords of JSON Schema, which the host checks."""


WorkspacePath = Annotated[Path, Field(format="workspace-path")]
"""A file of the workspace. The host checks the path before the call and passes it relative."""

ReadPath = Annotated[Path, Field(format="workspace-path", schema={"x-access": "read"})]
"""A file of the workspace that the tool only reads."""

WritePath = Annotated[Path, Field(format="workspace-path", schema={"x-access": "write"})]
"""A file of the workspace that the tool may change."""

_NUMBERS = {
    "ge": ("minimum", lambda value, bound: value >= bound, "must be at least {}"),
    "gt": ("exclusiveMinimum", lambda value, bound: value > bound, "must be greater than {}"),
    "le": ("maximum", lambda value, bound: value <= bound, "must be at most {}"),
    "lt": ("exclusiveMaximum", lambda value, bound: value < bound, "must be less than {}"),
    "multiple_of": ("multipleOf", lambda value, by: value % by == 0, "must be a multiple of {}"),
}
_SIZES = {"string": ("Length", "characters"), "array": ("Items", "items")}
_SIZES["object"] = ("Properties", "entries")

Check = Callable[[Any, str], None]


def constrain(schema: dict[str, Any], annotations: Sequence[object]) -> list[Check]:
    """Adds annotations to a schema. Returns the checks for values before they are converted."""
    checks: list[Check] = []
    for annotation in annotations:
        if isinstance(annotation, str):
            schema["description"] = annotation
            continue
        _describe(schema, annotation)
        checks += _bounds(schema, annotation) + _lengths(schema, annotation)
        checks += _pattern(schema, annotation)
    return checks


def _describe(schema: dict[str, Any], annotation: object) -> None:
    # `typing_extensions.Doc` keeps its text in `documentation`.
    text = getattr(annotation, "description", None) or getattr(annotation, "documentation", None)
    if isinstance(text, str):
        schema["description"] = text
    if isinstance(annotation, Field):
        if annotation.format is not None:
            schema["format"] = annotation.format
        if annotation.examples is not None:
            schema["examples"] = list(annotation.examples)
        schema.update(annotation.schema or {})


def _bounds(schema: dict[str, Any], annotation: object) -> list[Check]:
    checks = []
    for name, (keyword, holds, message) in _NUMBERS.items():
        bound = getattr(annotation, name, None)
        if isinstance(bound, (int, float)):
            schema[keyword] = bound
            checks.append(
                _check(lambda value, b=bound, h=holds: h(value, b), message.format(bound))
            )
    return checks


def _lengths(schema: dict[str, Any], annotation: object) -> list[Check]:
    suffix, unit = _SIZES.get(str(schema.get("type")), ("Length", "characters"))
    checks = []
    low, high = getattr(annotation, "min_length", None), getattr(annotation, "max_length", None)
    # `annotated_types.MinLen` without an upper bound has 0 for its lower one.
    if isinstance(low, int) and low > 0:
        schema[f"min{suffix}"] = low
        checks.append(_check(lambda value: len(value) >= low, f"must have at least {low} {unit}"))
    if isinstance(high, int):
        schema[f"max{suffix}"] = high
        checks.append(_check(lambda value: len(value) <= high, f"must have at most {high} {unit}"))
    return checks


def _pattern(schema: dict[str, Any], annotation: object) -> list[Check]:
    pattern = getattr(annotation, "pattern", None)
    if not isinstance(pattern, str):
        return []
    schema["pattern"] = pattern
    # Not checked here: the host has done so, with an engine of another dialect.
    return []


def _check(holds: Callable[[Any], bool], message: str) -> Check:
    def check(value: Any, pointer: str) -> None:
        if not holds(value):
            raise InvalidInput(pointer, message)

    return check
