"""The schema follows from the types, the annotations and the docstring."""

from __future__ import annotations

import datetime
import enum
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import pytest

from palisade_guest import (
    Context,
    DefinitionError,
    Field,
    ReadPath,
    WorkspacePath,
    WritePath,
    tool,
)
from palisade_guest import _tool as tools
from palisade_guest.testing import call, definition


@pytest.fixture(autouse=True)
def no_tools():
    """Each test defines its own tools."""
    tools.TOOLS.clear()


def schema_of(hint: Any, **options: Any) -> dict[str, Any]:
    """Returns the schema of an argument of this type."""

    def probe(value):
        """Probes."""

    probe.__annotations__ = {"value": hint}
    return definition(tool(side_effects="none", name="probe", **options)(probe))["input_schema"]


def value_schema(hint: Any) -> dict[str, Any]:
    tools.TOOLS.clear()
    return schema_of(hint)["properties"]["value"]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place.

    Attributes:
        x: To the right.
    """

    x: int
    y: int = 0
    name: Optional[str] = None


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


class Options(TypedDict, total=False):
    depth: int


class Pair(NamedTuple):
    left: str
    right: str = "r"


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[Optional[int]], {"type": "array", "items": {"type": ["integer", "null"]}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Union[int, str], {"type": ["integer", "string"]}),
        (int | str, {"type": ["integer", "string"]}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "workspace-path"}),
        (WorkspacePath, {"type": "string", "format": "workspace-path"}),
        (ReadPath, {"type": "string", "format": "workspace-path", "x-access": "read"}),
        (WritePath, {"type": "string", "format": "workspace-path", "x-access": "write"}),
        (Annotated[int, Field(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
        (Annotated[str, Field(min_length=1)], {"type": "string", "minLength": 1}),
        (Annotated[list[int], Field(max_length=3)],
         {"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
        (Annotated[str, "What it is."], {"type": "string", "description": "What it is."}),
        (Annotated[str, Field(pattern="^a+$")], {"type": "string", "pattern": "^a+$"}),
    ],
)  # fmt: skip
def test_each_type_has_its_schema(hint, schema):
    assert value_schema(hint) == schema


def test_tuple_of_fixed_length_lists_its_items():
    assert value_schema(tuple[int, str]) == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
        "maxItems": 2,
    }


def test_dataclass_is_an_object_with_defaults_and_descriptions():
    assert value_schema(Point) == {
        "type": "object",
        "description": "A place.",
        "properties": {
            "x": {"type": "integer", "description": "To the right."},
            "y": {"type": "integer", "default": 0},
            "name": {"type": "string"},
        },
        "required": ["x"],
    }


def test_class_that_contains_itself_is_a_local_definition():
    schema = schema_of(Tree)
    assert schema["properties"]["value"] == {"$ref": "#/$defs/Tree"}
    children = schema["$defs"]["Tree"]["properties"]["children"]
    assert children == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}


def test_typed_dict_and_named_tuple_are_objects():
    assert value_schema(Options) == {"type": "object", "properties": {"depth": {"type": "integer"}}}
    assert value_schema(Pair)["required"] == ["left"]


def test_optional_argument_may_be_left_out_and_null_is_its_absence():
    @tool(side_effects="none")
    def greet(name: Optional[str], times: int = 1) -> str:
        """Greets."""
        return f"{name} {times}"

    made = definition(greet)
    assert made["input_schema"] == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
    }
    assert made["metadata"] == {"null-is-absent": True}
    assert call(greet, {}).text == "None 1"


def test_null_is_a_value_where_it_differs_from_the_default():
    @tool(side_effects="none")
    def limit(count: Optional[int] = 5) -> str:
        """Limits."""
        return repr(count)

    made = definition(limit)
    assert made["input_schema"]["properties"]["count"]["type"] == ["integer", "null"]
    assert "metadata" not in made
    assert (call(limit, {"count": None}).text, call(limit, {}).text) == ("None", "5")


def test_context_is_no_argument_of_the_input():
    @tool(side_effects="none")
    def work(ctx: Context) -> None:
        """Works."""

    assert definition(work)["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    "docstring",
    [
        """Counts words.

        Only in text.

        Args:
            path: The file,
                in UTF-8.
            depth (int): How deep.

        Returns:
            The number.

        Raises:
            OSError: Never shown.
        """,
        """Counts words.

        Only in text.

        :param path: The file,
            in UTF-8.
        :param int depth: How deep.
        :returns: The number.
        :raises OSError: Never shown.
        """,
        """Counts words.

        Only in text.

        Parameters
        ----------
        path : str
            The file,
            in UTF-8.
        depth
            How deep.

        Returns
        -------
        The number.
        """,
    ],
    ids=["google", "sphinx", "numpy"],
)
def test_docstrings_of_each_style_are_read(docstring):
    def words(path: str, depth: int = 1) -> int:
        return 0

    made = definition(tool(side_effects="none", description=docstring)(words))
    assert made["description"] == "Counts words.\n\nOnly in text.\n\nReturns: The number."
    properties = made["input_schema"]["properties"]
    assert properties["path"]["description"] == "The file, in UTF-8."
    assert properties["depth"]["description"] == "How deep."


def test_typed_result_has_an_output_schema():
    @tool(side_effects="none")
    def where() -> Point:
        """Tells where."""
        return Point(1)

    assert definition(where)["output_schema"]["required"] == ["x", "y", "name"]
    assert definition(where)["output_schema"]["properties"]["name"] == {"type": ["string", "null"]}
    assert call(where).json == {"x": 1, "y": 0, "name": None}


def refusal(define: Any) -> str:
    with pytest.raises(DefinitionError) as refused:
        define()
    return str(refused.value)


def test_faulty_definitions_are_refused_with_the_way_out():
    def plain(name: str) -> str:
        """Greets."""
        return name

    def silent(name: str) -> str:
        return name

    def untyped(name) -> str:
        """Greets."""
        return name

    def foreign(name: complex) -> str:
        """Greets."""
        return str(name)

    def misnamed(name: str) -> str:
        """Greets.

        Args:
            nmae: Whom.
        """
        return name

    def starred(*names: str) -> str:
        """Greets."""
        return str(names)

    def starless() -> str:
        """Greets too."""
        return ""

    async def later() -> str:
        """Greets."""
        return ""

    none = tool(side_effects="none")
    assert "names its class" in refusal(lambda: tool(plain))
    assert "no class of side effects" in refusal(lambda: tool(side_effects="reads")(plain))
    assert "no option of @tool" in refusal(lambda: tool(side_effects="none", timeout=5)(plain))
    assert "has no description" in refusal(lambda: none(silent))
    assert "argument `name` has no type" in refusal(lambda: none(untyped))
    assert "the type complex has no JSON form" in refusal(lambda: none(foreign))
    assert "describes `nmae`" in refusal(lambda: none(misnamed))
    assert "named arguments only" in refusal(lambda: none(starred))
    assert "not an `async` one" in refusal(lambda: none(later))
    assert "no name of a tool" in refusal(lambda: tool(side_effects="none", name="Greet")(plain))
    none(plain)
    assert "two tools" in refusal(lambda: tool(side_effects="none", name="plain")(starless))


def test_a_plugin_offers_at_most_256_tools():
    def plain() -> None:
        """Works."""

    for at in range(256):
        tool(side_effects="none", name=f"t{at}")(plain)
    assert "at most 256" in refusal(lambda: tool(side_effects="none", name="one_more")(plain))
