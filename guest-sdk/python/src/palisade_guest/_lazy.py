"""Imports in advance what the standard library imports on demand.

A call cannot import anything, and many functions of the library import a module when they are first
called, such as `datetime.strptime`.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from types import CodeType
from typing import Any

# Imported by code in C, or by a form of the statement that the search does not see.
_UNSEEN = {
    "datetime": ("_strptime",),
    "time": ("_strptime",),
    "decimal": ("numbers",),
    "zoneinfo": ("importlib.resources",),
    "codecs": (
        "encodings.ascii",
        "encodings.cp1252",
        "encodings.latin_1",
        "encodings.punycode",
        "encodings.idna",
        "encodings.unicode_escape",
        "encodings.raw_unicode_escape",
        "encodings.utf_16",
        "encodings.utf_16_be",
        "encodings.utf_16_le",
        "encodings.utf_32",
        "encodings.utf_8",
        "encodings.utf_8_sig",
        "encodings.base64_codec",
        "encodings.hex_codec",
        "encodings.rot_13",
    ),
}
# Large, and of no use without threads, sockets, processes or a terminal.
_USELESS = {
    "asyncio", "bdb", "cmd", "code", "concurrent", "ctypes", "curses", "distutils", "doctest",
    "ensurepip", "ftplib", "idlelib", "multiprocessing", "pdb", "pip", "profile", "pydoc",
    "readline", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "test",
    "tkinter", "turtle", "unittest", "venv", "webbrowser", "xmlrpc", "_pyrepl", "rlcompleter",
    "_testcapi", "_winapi", "winreg", "nt", "msvcrt", "lib2to3", "sysconfig", "_pydecimal",
    "_pyio", "_pydatetime", "pickletools", "tracemalloc", "_android_support", "_ios_support",
    "_aix_support", "_osx_support", "http", "urllib.request", "dbm", "shelve", "gettext",
    "importlib", "zipfile", "tarfile", "email", "argparse", "getopt", "tempfile",
}  # fmt: skip


def import_for_library() -> None:
    """Imports what the loaded modules of the standard library import within functions."""
    for name, wanted in _UNSEEN.items():
        if name in sys.modules:
            for module in wanted:
                attempt(module)
    for name in list(sys.modules):
        if name.partition(".")[0] in sys.stdlib_module_names:
            for module in _within_functions(name):
                if not _is_useless(module):
                    attempt(module)


def attempt(name: str) -> None:
    """Imports a module if it can be imported."""
    if name in sys.modules:
        return
    try:
        importlib.import_module(name)
    except Exception:
        sys.modules.pop(name, None)


def end() -> None:
    """Ends the search for modules in files: a call has only those of the workspace.

    A search would run a file of the workspace in place of a module that the build left out. The
    host would also take the call for one of a tool that looks for files.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder]


def _is_useless(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[: at + 1]) in _USELESS for at in range(len(parts)))


def _within_functions(name: str) -> set[str]:
    loader: Any = getattr(sys.modules[name], "__loader__", None)
    try:
        code = loader.get_code(name)
    except (AttributeError, ImportError, OSError):
        return set()
    if code is None:
        return set()
    package = getattr(sys.modules[name], "__package__", None) or ""
    return {found for inner in _functions(code) for found in _imports(inner, package)}


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def _imports(code: CodeType, package: str) -> Iterator[str]:
    if "IMPORT_NAME" not in {dis.opname[op] for op in code.co_code[::2]}:
        return
    constants: list[object] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level = next((c for c in reversed(constants[:-1]) if isinstance(c, int)), 0)
            base = package.rsplit(".", level - 1)[0] + "." if level else ""
            yield f"{base}{instruction.argval}".rstrip(".")
        elif instruction.opname.startswith("LOAD_"):
            constants.append(instruction.argval)
