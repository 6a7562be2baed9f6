"""A failed call names its cause, and looks for no files."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import types

from palisade_guest import _trace

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
