"""The values that a tool returns: blocks, outputs, and the conversion of other values to them."""

from __future__ import annotations

import collections.abc as abc
import json
from dataclasses import dataclass, field
from typing import Any, Union

from ._json import jsonable, unicode_text

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def media_type(data: bytes) -> str | None:
    """Returns the media type of an image or audio by its first bytes, if they are known."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)


@dataclass
class Text:
    """Text for the model."""

    text: str

    def __post_init__(self) -> None:
        unicode_text(self.text)


@dataclass
class Json:
    """One JSON value."""

    value: Any


@dataclass
class Image:
    """An image. The media type may be left out for PNG, JPEG, GIF and WebP."""

    data: bytes
    mime: str = ""

    def __post_init__(self) -> None:
        self.mime = unicode_text(self.mime) or _known(self.data, "image")


@dataclass
class Audio:
    """Audio. The media type may be left out for WAV, Ogg, FLAC and MP3 with a tag."""

    data: bytes
    mime: str = ""

    def __post_init__(self) -> None:
        self.mime = unicode_text(self.mime) or _known(self.data, "audio")


@dataclass
class Resource:
    """A whole document, as text or bytes. The URI is a name that the host never follows."""

    uri: str
    body: str | bytes
    mime: str | None = None

    def __post_init__(self) -> None:
        unicode_text(self.uri)
        unicode_text(self.mime or "")
        if not isinstance(self.body, (bytes, bytearray, memoryview)):
            unicode_text(self.body)


@dataclass
class Link:
    """A document, by reference."""

    uri: str
    name: str
    mime: str | None = None

    def __post_init__(self) -> None:
        for text in (self.uri, self.name, self.mime or ""):
            unicode_text(text)


Content = Union[Text, Json, Image, Audio, Resource, Link]
"""One block of an output."""

BLOCKS = (Text, Json, Image, Audio, Resource, Link)


@dataclass
class Output:
    """The result of a tool that ran to its end.

    Attributes:
        content: The blocks that the model reads, in order. A string counts as a text block.
        success: False if the outcome is a failure for the model, such as failing tests, although
            the tool did its work. A tool that could not do its work raises an error.
        metadata: For the program that embeds the host. The model never sees it.
        files_modified: The files that the tool changed, relative to the workspace.
        command_executed: The command that the tool ran, if any.
    """

    content: list[Content] = field(default_factory=list)
    success: bool = True
    metadata: dict[str, Any] = field(default_factory=dict)
    files_modified: list[str] = field(default_factory=list)
    command_executed: str | None = None

    def __post_init__(self) -> None:
        self.content = [_block(value) for value in _listed(self.content)]

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def json(self) -> Any:
        """The value of the first JSON block, or None."""
        return next((block.value for block in self.content if isinstance(block, Json)), None)


def to_output(value: Any, *, is_json: bool, is_blocks: bool) -> Output:
    """Converts what a tool returned.

    Args:
        value: The returned value.
        is_json: True if the tool has an output schema.
        is_blocks: True if the tool is annotated to return a list of blocks.
    """
    if isinstance(value, Output):
        return value
    if is_json:
        return Output([Json(jsonable(value))])
    if value is None:
        return Output()
    if isinstance(value, (str, bytes, bytearray, memoryview, *BLOCKS)):
        return Output([_block(value)])
    if isinstance(value, (abc.Generator, map, filter, zip)):
        value = list(value)
    is_list = isinstance(value, (list, tuple)) and not hasattr(value, "_asdict")
    if is_list and (is_blocks or any(isinstance(element, BLOCKS) for element in value)):
        return Output(list(value))
    return Output([Json(jsonable(value))])


def dumps(value: Any) -> str:
    """Writes JSON as the contract demands it: without NaN, in UTF-8."""
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _listed(content: Any) -> list[Any]:
    return list(content) if isinstance(content, (list, tuple)) else [content]


def _block(value: Any) -> Content:
    if isinstance(value, BLOCKS):
        return value
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        mime = media_type(data)
        if mime is None:
            return Resource("tool:output", data, "application/octet-stream")
        return Image(data, mime) if mime.startswith("image/") else Audio(data, mime)
    return Json(jsonable(value))


def _known(data: bytes, kind: str) -> str:
    mime = media_type(data)
    if mime is None or not mime.startswith(kind):
        raise ValueError(f"the media type of this {kind} is not known: give `mime`")
    return mime
