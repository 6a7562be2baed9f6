"""A call goes from JSON to the output, and every failure is one clean error."""

from __future__ import annotations

import datetime
import enum
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, TypeVar, Union

import pytest

from palisade_guest import (
    Audio,
    Cancelled,
    Content,
    Context,
    Field,
    Image,
    InvalidInput,
    Json,
    Link,
    NotFound,
    Output,
    PermissionDenied,
    ReadPath,
    Resource,
    Text,
    ToolError,
    WritePath,
    testing,
    tool,
)
from palisade_guest import _tool as tools
from palisade_guest.testing import Record, call

PNG = b"\x89PNG\r\n\x1a\n rest"
WAV = b"RIFF\0\0\0\0WAVEfmt "


@pytest.fixture(autouse=True)
def no_tools():
    """Each test defines its own tools."""
    tools.TOOLS.clear()


def returning(value: Any, hint: Any = None) -> Output:
    """Calls a tool that returns a value."""

    def probe():
        """Probes."""
        return value

    probe.__annotations__ = {"return": hint} if hint else {}
    tools.TOOLS.clear()
    return call(tool(side_effects="none")(probe)).output


def taking(hint: Any, value: Any) -> Any:
    """Calls a tool with a value, and returns what its function gets."""
    got = []

    def probe(value):
        """Probes."""
        got.append(value)

    probe.__annotations__ = {"value": hint}
    tools.TOOLS.clear()
    call(tool(side_effects="none")(probe), {"value": value})
    return got[0]


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


class Partial(TypedDict, total=False):
    a: int
    b: int


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (float, 1, 1.0),
        (Color, "red", Color.RED),
        (Point, {"x": 1, "unknown": True}, Point(1)),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
        (Partial, {"a": 1}, {"a": 1}),
        (set[int], [1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, Point], {"a": {"x": 1}}, {"a": Point(1)}),
        (Union[int, str], "a", "a"),
        (Optional[int], None, None),
        (datetime.datetime, "2026-11-01T10:00:00Z",
         datetime.datetime(2026, 11, 1, 10, tzinfo=datetime.timezone.utc)),
        (Path, "a/b", Path("a/b")),
    ],
)  # fmt: skip
def test_arguments_have_the_types_of_the_function(hint, value, expected):
    got = taking(hint, value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "pointer", "reason"),
    [
        (str, 5, "/value", "expected a string, not an integer"),
        (int, True, "/value", "expected an integer, not a boolean"),
        (bool, 1, "/value", "expected a boolean, not an integer"),
        (list[int], [1, "a"], "/value/1", "expected an integer, not a string"),
        (dict[str, int], {"a/b": "c"}, "/value/a~1b", "expected an integer, not a string"),
        (Point, {}, "/value/x", "is required"),
        (Tree, {"name": "a", "children": [{}]}, "/value/children/0/name", "is required"),
        (Color, "green", "/value", "must be one of red"),
        (Annotated[int, Field(ge=1)], 0, "/value", "must be at least 1"),
        (Annotated[str, Field(max_length=2)], "abc", "/value", "must have at most 2 characters"),
        (datetime.date, "soon", "/value", "is not a date: Invalid isoformat string: 'soon'"),
        (Union[int, list[int]], "a", "/value", "matches none of the accepted types"),
    ],
)
def test_wrong_argument_is_named_by_a_pointer(hint, value, pointer, reason):
    with pytest.raises(InvalidInput) as refused:
        taking(hint, value)
    assert (refused.value.field, refused.value.reason) == (pointer, reason)


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        (None, []),
        ("a", [Text("a")]),
        (Text("a"), [Text("a")]),
        (PNG, [Image(PNG, "image/png")]),
        (WAV, [Audio(WAV, "audio/wav")]),
        (b"?", [Resource("tool:output", b"?", "application/octet-stream")]),
        (1, [Json(1)]),
        ({"a": Point(1)}, [Json({"a": {"x": 1, "y": 0}})]),
        (["a", "b"], [Json(["a", "b"])]),
        ([Text("a"), "b", PNG], [Text("a"), Text("b"), Image(PNG)]),
        (Link("https://a.example", "a"), [Link("https://a.example", "a")]),
        (Output([Text("a")], success=False), [Text("a")]),
        ((n for n in range(2)), [Json([0, 1])]),
        (datetime.date(2026, 1, 2), [Json("2026-01-02")]),
    ],
)
def test_each_returned_value_becomes_its_blocks(value, blocks):
    assert returning(value).content == blocks


def test_annotated_list_of_blocks_is_never_json():
    assert returning([], list[Content]).content == []
    assert returning(["a"], list[Union[Text, Image]]).content == [Text("a")]
    assert returning(["a"], list[str]).content == [Json(["a"])]


@pytest.mark.parametrize(
    ("value", "hint", "said"),
    [
        ({1, 2}, str, "type set, and its return type is str"),
        ("a", int, "type str, and its return type is int"),
        (None, str, "type NoneType, and its return type is str"),
        (1, type(None), "type int, and its return type is None"),
        ("a", list[str], r"type str, and its return type is list\[str\]"),
        ({"x": 1}, Point, "type dict, and its return type is .*Point"),
        (1.5, int | str, r"type float, and its return type is int \| str"),
        ("a", Literal[1, 2], "type str, and its return type is Literal"),
        ([], Partial, "type list, and its return type is .*Partial"),
        (1, Annotated[str, "A name."], "type int, and its return type is .*Annotated"),
    ],
)
def test_value_of_another_type_than_the_annotated_one_is_an_error(value, hint, said):
    with pytest.raises(ToolError, match=f"TypeError: the tool returned a value of {said}"):
        returning(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, float),
        (bytearray(b"?"), bytes),
        (None, Optional[str]),
        ("a", Any),
        ({1}, object),
        ({"a": 1}, Partial),
        ((n for n in "ab"), Iterator[str]),
        (["a"], Sequence[str]),
        (1, Literal[1]),
        (Output(success=False), str),
        (Text("a"), Content),
        ("a", TypeVar("T")),
    ],
)
def test_value_of_the_annotated_type_is_returned(value, hint):
    returning(value, hint)


def test_value_without_json_form_is_an_error():
    with pytest.raises(ToolError, match="type complex has no JSON form"):
        returning({"a": 1j})
    with pytest.raises(ToolError, match="not JSON compliant"):
        returning([float("nan")])
    with pytest.raises(ToolError, match="media type of this image is not known"):
        call(tool(side_effects="none", name="t", description="T.")(lambda: Image(b"?")))


def test_text_that_is_not_unicode_is_an_error_and_replaced_in_messages():
    for value in ["a\ud800b", {"a\ud800b": 1}]:
        with pytest.raises(ToolError, match="not Unicode at character"):
            returning(value)
    with pytest.raises(ValueError, match="not Unicode at character"):
        Link("a:b", "\ud800")
    assert failing(ToolError("no \ud800")).message == "no ?"
    assert failing(ToolError(ValueError("odd"))).message == "odd"  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of type int, and not a str"):
        Text(1)  # type: ignore[arg-type]
    assert failing(InvalidInput("/a\udc80", "is \ud800")).reason == "is ?"


def failing(error: BaseException) -> ToolError:
    def probe():
        """Probes."""
        raise error

    tools.TOOLS.clear()
    with pytest.raises(ToolError) as failed:
        call(tool(side_effects="none")(probe))
    return failed.value


def test_exceptions_become_clean_errors():
    failed = failing(ValueError("no such unit"))
    assert (failed.kind, failed.message) == ("failed", "ValueError: no such unit")
    assert isinstance(failed.__cause__, ValueError)
    assert failing(KeyError("a")).message == "KeyError: 'a'"
    assert failing(RecursionError()).message == "RecursionError"
    assert failing(NotFound("no a")).message == "no a"
    missing = failing(ModuleNotFoundError("No module named 'csv'", name="csv"))
    assert missing.message.startswith("the plugin was built without the Python module 'csv': its")


def test_errors_of_files_keep_their_kind_and_path():
    @tool(side_effects="read")
    def read(path: ReadPath) -> str:
        """Reads."""
        return path.read_text()

    with pytest.raises(NotFound, match=r"^a\.txt: No such file or directory$"):
        call(read, {"path": "a.txt"})
    denied = failing(PermissionError(13, "Permission denied", "b.txt"))
    assert (denied.kind, denied.message) == ("permission-denied", "b.txt: Permission denied")
    assert failing(OSError(30, "Read-only file system", "c")).kind == "permission-denied"
    assert failing(OSError(28, "No space left on device")).kind == "failed"


def test_files_of_the_workspace_are_read_and_written():
    @tool(side_effects="write")
    def copy(source: ReadPath, target: WritePath, ctx: Context) -> str:
        """Copies."""
        target.write_text(source.read_text())
        ctx.modified(target)
        return "done"

    result = call(copy, {"source": "a/b.txt", "target": "c.txt"}, files={"a/b.txt": "hello"})
    assert result.files == {"a/b.txt": b"hello", "c.txt": b"hello"}
    assert result.output.files_modified == ["c.txt"]


def test_a_given_workspace_is_used(tmp_path):
    @tool(side_effects="write")
    def touch(path: WritePath) -> None:
        """Touches."""
        path.touch()

    call(touch, {"path": "a"}, workspace=tmp_path)
    assert (tmp_path / "a").exists()


def test_tool_of_class_read_that_writes_is_refused():
    @tool(side_effects="read")
    def sneak(path: ReadPath) -> None:
        """Reads."""
        path.write_text("changed")

    with pytest.raises(PermissionDenied, match="class `read` changed a"):
        call(sneak, {"path": "a"}, files={"a": "b"})


def test_tool_of_class_none_sees_no_files():
    @tool(side_effects="none")
    def look() -> list[str]:
        """Looks."""
        return [str(path) for path in Path().iterdir()]

    assert call(look, files={"a": "b"}).json == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b"])
def test_path_outside_of_the_workspace_is_refused(path):
    @tool(side_effects="read")
    def read(path: ReadPath) -> str:
        """Reads."""
        return path.read_text()

    with pytest.raises(PermissionDenied):
        call(read, {"path": path})


def test_messages_to_the_host_are_recorded():
    @tool(side_effects="none")
    def work(ctx: Context) -> str:
        """Works."""
        ctx.debug("a")
        ctx.info("b")
        ctx.warn("c")
        ctx.error("\ud800d")
        ctx.progress(1, 2, "half")
        ctx.progress(2)
        ctx.emit("x")
        logging.getLogger("lib").info("of a library")
        return ctx.call_id

    result = call(work, call_id="c1")
    assert result.record.logs == [("debug", "a"), ("info", "b"), ("warn", "c"), ("error", "?d")]
    assert result.record.progress_reports == [(1.0, 2.0, "half"), (2.0, None, None)]
    assert result.record.emitted == ["x"]
    assert result.text == "c1"


def test_cancelled_call_stops_at_a_checkpoint():
    rounds = []

    @tool(side_effects="none")
    def work(ctx: Context) -> None:
        """Works."""
        for at in range(100):
            ctx.checkpoint()
            rounds.append(at)

    with pytest.raises(Cancelled):
        call(work, cancel_after=2)
    assert rounds == [0, 1]


def test_function_stays_a_function_with_a_context_for_tests():
    @tool(side_effects="none")
    def greet(name: str, ctx: Context) -> str:
        """Greets."""
        ctx.info(name)
        return f"Hello, {name}!"

    record = Record()
    assert greet("Ada", testing.context(record, session_id="s")) == "Hello, Ada!"
    assert record.logs == [("info", "Ada")]


def test_properties_of_the_call_reach_the_tool():
    @tool(side_effects="none")
    def about(ctx: Context) -> dict[str, Any]:
        """Tells."""
        return {"caller": ctx.caller, "metadata": ctx.metadata, "left": ctx.remaining > 0}

    result = call(about, context='{"user": 1}', remaining_ms=0)
    assert result.json == {"caller": {"user": 1}, "metadata": {}, "left": False}


def test_input_of_another_type_is_refused():
    @tool(side_effects="none")
    def work() -> None:
        """Works."""

    with pytest.raises(InvalidInput):
        call(work, "[]")
    with pytest.raises(TypeError, match="lacks @tool"):
        call(print)
