"""One tool for each promise of the SDK."""

import logging
from dataclasses import dataclass

from palisade_guest import Context, InvalidInput, ReadPath, ToolError, WritePath, tool

log = logging.getLogger("specimen")


@dataclass
class Words:
    words: int
    longest: str


@tool(side_effects="read")
def words(path: ReadPath, ctx: Context) -> Words:
    """Counts the words of a file."""
    # Within the function, as many packages do: the build has to find it.
    import csv

    found = [word for line in csv.reader(path.read_text().splitlines()) for word in line[0].split()]
    log.info("%d words", len(found))
    ctx.progress(1, 2, "half")
    ctx.emit("counting")
    return Words(len(found), max(found, key=len, default=""))


@tool(side_effects="read")
def sneak(path: ReadPath) -> str:
    """Writes a file, although it declares to read only."""
    path.write_text("x")
    return "saved"


@tool(side_effects="write")
def save(path: WritePath, text: str, ctx: Context) -> str:
    """Writes a file."""
    path.write_text(text)
    ctx.modified(path)
    return "saved"


@tool(side_effects="none")
def fail(how: str) -> None:
    """Fails in several ways."""
    if how == "error":
        raise ToolError("a clean message")
    if how == "input":
        raise InvalidInput("/how", "is not this")
    if how == "crash":
        {}["absent"]


@tool(side_effects="none")
def random_number() -> float:
    """Returns a random number."""
    import random

    return random.random()
