"""Modules that cannot work in the sandbox are named when the plugin is built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from palisade_guest._build import componentize, source
from palisade_guest._build.component import imports_of
from palisade_guest._build.errors import BuildError
from palisade_guest._build.scan import Scan


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / (name.replace("__", "/", 1) + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def own(tmp_path):
    return tmp_path / "own"


@pytest.fixture
def installed(tmp_path):
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def walk(own: Path, installed: Path, *allowed: str):
    return Scan([own], [installed], allowed).walk(["plugin"])


def refusal(own: Path, installed: Path, *allowed: str) -> str:
    with pytest.raises(BuildError) as refused:
        walk(own, installed, *allowed)
    return str(refused.value)


@pytest.mark.parametrize(
    ("statement", "module", "reason"),
    [
        ("import threading", "threading", "no threads"),
        ("from concurrent.futures import ThreadPoolExecutor", "concurrent.futures", "no threads"),
        ("from concurrent import futures", "concurrent.futures", "no threads"),
        ("import socket as s", "socket", "no sockets"),
        ("import urllib.request", "urllib.request", "no sockets"),
        ("from urllib import request", "urllib.request", "no sockets"),
        ("import subprocess", "subprocess", "no other processes"),
        ("def f():\n    import ssl", "ssl", "no sockets"),
        ("import ctypes.util", "ctypes", "no native code"),
        ("import bz2", "bz2", "compiled without it"),
    ],
)
def test_unusable_module_is_named_with_its_place(own, installed, statement, module, reason):
    write(own, plugin=statement)
    message = refusal(own, installed)
    assert f"{own / 'plugin.py'}:" in message
    assert f"imports {module!r}" in message
    assert reason in message


@pytest.mark.parametrize(
    "statement",
    [
        "import csv, json, urllib.parse, http, sqlite3, logging, random, hashlib, zlib",
        "try:\n    import ssl\nexcept ImportError:\n    ssl = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ssl",
    ],
)
def test_usable_and_guarded_modules_are_accepted(own, installed, statement):
    write(own, plugin=statement)
    walk(own, installed)


def test_module_that_works_in_part_can_be_allowed(own, installed):
    write(own, plugin="import threading")
    assert "--allow threading" in refusal(own, installed)
    walk(own, installed, "threading")
    write(own, plugin="import ssl")
    assert "--allow" not in refusal(own, installed)


def test_imports_within_functions_are_made_when_building(own, installed):
    write(own, plugin="def f():\n    import csv\n    from helper import g", helper="g = 1")
    assert walk(own, installed).required == {"csv", "helper"}


def test_all_modules_of_the_author_are_followed(own, installed):
    write(own, plugin="import parts.deep", parts____init__="", parts__deep="from . import end")
    (own / "parts" / "end.py").write_text("import socket")
    assert "end.py:1: imports 'socket'" in refusal(own, installed)


def test_packages_may_import_what_they_never_use(own, installed):
    write(own, plugin="import lib")
    write(installed, lib____init__="import threading\ndef f():\n    import ssl, lib.more")
    write(installed, lib__more="")
    found = walk(own, installed)
    assert found.packages == {"lib"}
    assert "lib.more" in found.optional
    write(installed, lib____init__="import ssl")
    assert "lib/__init__.py:1: imports 'ssl'" in refusal(own, installed)


@pytest.mark.parametrize(
    "guard",
    [
        "try:\n    import lib.fast\nexcept ImportError:\n    pass",
        "try:\n    import lib.fast\nexcept ModuleNotFoundError:\n    pass",
        "try:\n    import lib.fast\nexcept Exception:\n    pass",
        "try:\n    import lib.fast\nexcept:\n    pass",
        "import sys\nif sys.platform == 'win32':\n    import lib.fast",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lib.fast",
        "def f():\n    import lib.fast",
    ],
)
def test_guard_holds_for_everything_below_the_guarded_module(own, installed, guard):
    write(own, plugin="import lib")
    write(installed, lib____init__=guard, lib__fast="from lib import deep", lib__deep="import ssl")
    (installed / "lib" / "_c.cpython-311-x86_64-linux-gnu.so").touch()
    with (installed / "lib" / "deep.py").open("a") as deep:
        deep.write("\nfrom lib._c import parse\nimport absent")
    walk(own, installed)
    # The same module without a guard is refused, in either order.
    for order in ("import lib, lib.fast", "import lib.fast, lib"):
        write(own, plugin=order)
        message = refusal(own, installed)
        assert "deep.py:1: imports 'ssl'" in message
        assert "deep.py:2: imports 'lib._c', which is compiled code" in message


def test_missing_and_compiled_packages_are_told_apart(own, installed):
    write(own, plugin="import absent")
    assert "pip install absent" in refusal(own, installed)
    (installed / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    write(own, plugin="import fast")
    assert "compiled code (fast.cpython-311-x86_64-linux-gnu.so)" in refusal(own, installed)


def test_file_that_is_no_python_is_named(own, installed):
    write(own, plugin="def")
    assert "plugin.py:1" in refusal(own, installed)


def test_source_is_a_file_a_package_or_a_project(tmp_path):
    write(tmp_path, tool="", src____init__="")
    assert source.find(tmp_path / "tool.py") == source.Source("tool", tmp_path)
    project = tmp_path / "project"
    write(project / "src", word_count="")
    assert source.find(project) == source.Source("word_count", project / "src")
    write(project / "src", other="")
    with pytest.raises(BuildError, match="several modules"):
        source.find(project)
    with pytest.raises(BuildError, match="neither a Python file"):
        source.find(tmp_path / "absent.py")
    write(tmp_path, **{"word-count": ""})
    with pytest.raises(BuildError, match="rename the file"):
        source.find(tmp_path / "word-count.py")


@pytest.mark.parametrize("name", ["json", "compression"])
def test_name_of_a_module_of_the_standard_library_is_refused(tmp_path, name):
    write(tmp_path, **{name: "from palisade_guest import tool\nimport threading\n"})
    said = f"`{name}` is the name of a module of the standard library"
    with pytest.raises(BuildError, match=said):
        source.find(tmp_path)
    # In the directory of the file, Python itself would import it.
    sdk = Path(componentize.__file__).parents[2]
    command = [sys.executable, "-m", "palisade_guest", "build", "."]
    variables = {**os.environ, "PYTHONPATH": str(sdk)}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert (ran.returncode, said in ran.stderr) == (1, True), ran.stderr


def project(tmp_path: Path, table: str) -> Path:
    write(tmp_path, plugin="import threading\n")
    (tmp_path / "pyproject.toml").write_text(f"[tool.palisade]\n{table}\n")
    return tmp_path


def test_project_names_the_modules_that_it_accepts_and_includes(tmp_path, monkeypatch):
    lists = 'allow = ["threading"]\ninclude = ["xml.dom.minidom", "csv"]'
    found = source.find(project(tmp_path, lists))
    assert found.allow == ("threading",)
    assert found.include == ("xml.dom.minidom", "csv")
    entries = []
    monkeypatch.setattr(componentize, "define", lambda source: "")
    monkeypatch.setattr(componentize, "_program", lambda: [])

    def run(program, paths, output):
        entries.append((paths[0] / "palisade_entry.py").read_text())
        output.write_bytes(b"\0asm\x0d\0\x01\0")

    monkeypatch.setattr(componentize, "_run", run)
    componentize.build(componentize.Options(tmp_path, tmp_path / "a.wasm", include=["json"]))
    assert "start(['plugin', 'xml.dom.minidom', 'csv', 'json']," in entries[0]
    with pytest.raises(BuildError, match=r"'threading' into the list `allow` of \[tool.palisade\]"):
        componentize.build(componentize.Options(project(tmp_path, ""), tmp_path / "a.wasm"))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('allwo = ["csv"]', "`allwo` is no key of this table; the keys are entry, allow, include"),
        ('allow = "csv"', r"`allow` is not a list of modules, such as \[\"xml.dom\"\]"),
        ('include = ["a b"]', "`include` is not a list of modules"),
        ("include = [1]", "`include` is not a list of modules"),
        ("entry = 1", "`entry` is not the path of a Python file"),
        ("entry =", r"pyproject\.toml: "),
    ],
)
def test_faulty_settings_of_a_project_are_named(tmp_path, table, reason):
    with pytest.raises(BuildError, match=reason):
        source.find(project(tmp_path, table))


def test_faulty_definition_is_reported_with_its_line_before_the_component_is_made(own):
    write(
        own,
        plugin="from palisade_guest import tool\n\n@tool(side_effects='none')\ndef f() -> str:\n    return ''\n",
    )
    with pytest.raises(BuildError, match=r"plugin\.py:[34]: f has no description"):
        componentize.define(source.find(own / "plugin.py"))
    write(own, plugin="x = 1")
    with pytest.raises(BuildError, match="plugin defines no tool"):
        componentize.define(source.find(own / "plugin.py"))
    write(own, plugin="1 / 0")
    with pytest.raises(BuildError, match=r"plugin\.py:1: .*ZeroDivisionError"):
        componentize.define(source.find(own / "plugin.py"))


def test_definitions_of_the_tools_are_shown(own):
    write(
        own,
        plugin="from palisade_guest import tool\n\n@tool(side_effects='none')\ndef f() -> str:\n    '''Works.'''\n",
    )
    (shown,) = json.loads(componentize.define(source.find(own / "plugin.py")))
    assert shown["name"] == "f"


def test_error_of_the_sandbox_has_the_paths_of_the_author():
    said = (
        'Traceback (most recent call last):\n  File "x", line 1\nAssertionError: Traceback (most '
        'recent call last):\n  File "/1/plugin.py", line 1, in <module>\nValueError: no\n\n\nCaused by:\n 0: x'
    )
    shown = componentize.readable(said, [Path("/a"), Path("/b")])
    assert 'File "/b/plugin.py", line 1' in shown
    assert "Caused by" not in shown


def section(kind: int, body: bytes) -> bytes:
    return bytes([kind, len(body)]) + body


def test_imports_of_a_component_are_checked():
    def component(name: str) -> bytes:
        imports = b"\x01\x00" + bytes([len(name)]) + name.encode() + b"\x05\x00"
        return b"\0asm\x0d\0\x01\0" + section(7, b"\x00") + section(10, imports)

    assert imports_of(component("wasi:cli/exit@0.2.6")) == ["wasi:cli/exit@0.2.6"]
    componentize.check_imports(component("palisade:tool/host@0.1.0"))
    with pytest.raises(BuildError, match="imports wasi:http/types@0.2.0"):
        componentize.check_imports(component("wasi:http/types@0.2.0"))
    with pytest.raises(BuildError, match="no WebAssembly component"):
        componentize.check_imports(b"\0asm\x01\0\0\0")
