"""A failed call names its cause, and looks for no files."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import types
from importlib.machinery import PathFinder

import pytest

from palisade_guest import ToolError, _lazy, _trace, tool
from palisade_guest.testing import call

opened: list[str] = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


library = types.ModuleType("library")
# A file of the sandbox, which is there during the build only.
library.__file__ = "/python/library.py"
exec(compile("def refuse():\n    raise ValueError", library.__file__, "exec"), vars(library))


def fail():
    try:
        library.refuse()
    except ValueError as error:
        # On several lines: Python parses the first one alone, and that is no expression.
        raise KeyError(
            "absent",
        ) from error


def test_traceback_looks_for_no_files(monkeypatch):
    monkeypatch.setattr(linecache, "cache", {})
    monkeypatch.setitem(sys.modules, "library", library)
    _trace.keep_sources()
    errors = [raised(fail), raised(importlib.import_module, "nowhere.deep")]
    looked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda file, **rest: looked.append(file) or stat(file, **rest))
    opened.clear()
    text = "".join(map(_trace.shown, errors))
    monkeypatch.undo()
    assert (looked, opened) == ([], [])
    assert "in fail\n    raise KeyError" in text
    assert "The above exception was the direct cause" in text


def test_modules_are_not_looked_for_in_files_during_a_call(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted.py").write_text("")
    _lazy.end()
    assert PathFinder not in sys.meta_path
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("planted")


@tool(side_effects="none")
def load(name: str) -> str:
    """Imports a module.

    Args:
        name: The module.
    """
    return importlib.import_module(name).__name__


def test_missing_module_is_named_whole_with_the_remedy():
    with pytest.raises(
        ToolError, match=r"'nowhere\.deep\.down': .*`include` of \[tool\.palisade\]"
    ):
        call(load, {"name": "nowhere.deep.down"})
    with pytest.raises(ToolError, match="without the Python module 'nowhere'"):
        call(load, {"name": "nowhere"})


def test_message_is_split_at_lines_and_a_long_line_between_characters():
    assert _trace.parts("") == [""]
    assert _trace.parts("a\nb") == ["a\nb"]
    long = "a" * 4000
    assert _trace.parts(f"{long}\n{long}") == [long, long]
    cut = _trace.parts("é" * 4097)
    assert [len(part.encode()) for part in cut] == [4096, 4096, 2]
    assert [len(part.encode()) for part in _trace.parts("a" + "世" * 1500)] == [4096, 405]
