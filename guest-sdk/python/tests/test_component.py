"""Real components, made by componentize-py where it is installed."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from palisade_guest._build import componentize

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("componentize_py") is None and shutil.which("componentize-py") is None,
    reason=f"componentize-py=={componentize.VERSION} is not installed: no component is made",
)

PACKAGE = """
import sys

try:
    from fast._c import speed
except ImportError:
    speed = "slow"
try:
    from fast._abi import speed
except ImportError:
    speed = "slow"
if sys.platform == "win32":
    import winreg
"""

PLUGIN = """
import sys
import fast
from palisade_guest import tool

if sys.platform == "wasi" and fast.speed != "slow":
    raise AssertionError("the sandbox has loaded compiled code")

@tool(side_effects="none")
def speed() -> str:
    '''Returns the speed.'''
    return fast.speed
"""


def test_optional_compiled_part_of_a_package_is_left_out(tmp_path: Path):
    package = tmp_path / "fast"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    for name in ("_c.cpython-314-wasm32-wasi.so", "_c.so", "_abi.abi3.so"):
        (package / name).write_bytes(b"\x7fELF compiled for another machine")
    (tmp_path / "plugin.py").write_text(PLUGIN)
    output = tmp_path / "plugin.wasm"
    componentize.build(componentize.Options(tmp_path / "plugin.py", output))
    assert b"compiled for another machine" not in output.read_bytes()
