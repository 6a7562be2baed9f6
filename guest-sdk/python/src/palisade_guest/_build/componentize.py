"""Makes the component: writes its entry module and runs `componentize-py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import source as sources
from .component import imports_of
from .errors import BuildError
from .scan import Found, Scan

VERSION = "0.25.1"
"""The version of componentize-py that this package was tested with."""

_ENTRY = "palisade_entry"
_PACKAGE = Path(__file__).resolve().parent.parent
# The interfaces that a plugin may import; the host refuses others when it loads the plugin
# (`wit/world.wit`).
_INTERFACES = re.compile(r"palisade:tool/\w+@|wasi:(cli|clocks|filesystem|io|random|sockets)/")


@dataclass(frozen=True)
class Options:
    """The options that the author gave."""

    source: Path
    output: Path
    include: Sequence[str] = ()
    allow: Sequence[str] = ()
    path: Sequence[Path] = ()


@dataclass(frozen=True)
class Built:
    """A built plugin."""

    output: Path
    size: int
    found: Found


def build(options: Options) -> Built:
    """Builds a plugin.

    Raises:
        BuildError: With the reason, and what to do.
    """
    source = sources.find(options.source)
    installed = [*options.path, *installed_packages()]
    scan = Scan([source.directory], installed, [*source.allow, *options.allow])
    modules = [source.module, *source.include, *options.include]
    found = scan.walk(modules)
    define(source)
    program = _program()
    with tempfile.TemporaryDirectory(prefix="palisade-") as work:
        entry = Path(work) / f"{_ENTRY}.py"
        entry.write_text(_entry(modules, found))
        made = Path(work) / "plugin.wasm"
        paths = [Path(work), source.directory, _PACKAGE.parent, *installed]
        _run(program, paths, made)
        check_imports(made.read_bytes())
        options.output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, options.output)
    return Built(options.output, options.output.stat().st_size, found)


def define(source: sources.Source) -> str:
    """Imports the module natively, and returns the definitions of its tools as JSON.

    A faulty definition is reported in a second: `componentize-py` needs twenty to do so.

    Raises:
        BuildError: The module cannot be imported, or defines no tool.
    """
    code = "import sys; from palisade_guest._build.definitions import show; show(sys.argv[1])"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    own = [str(source.directory), str(_PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, own))
    command = [sys.executable, "-c", code, source.module]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BuildError(ran.stderr.strip())
    return ran.stdout


def installed_packages() -> list[Path]:
    """Returns the directories of installed packages of this Python."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    candidates = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *user, *sys.path]
    ends = ("site-packages", "dist-packages")
    named = [Path(c) for c in candidates if c and c.rstrip("/").endswith(ends)]
    return list(dict.fromkeys(path for path in named if path.is_dir()))


def check_imports(component: bytes) -> None:
    """Checks the imports of a component.

    Raises:
        BuildError: The host would refuse the plugin.
    """
    foreign = [name for name in imports_of(component) if not _INTERFACES.match(name)]
    if foreign:
        raise BuildError(
            f"the component imports {', '.join(foreign)}, which no host of plugins has; a package "
            "brings its own `componentize-py.toml`: leave that package out"
        )


def _entry(modules: Sequence[str], found: Found) -> str:
    return (
        "from palisade_guest._component import Tool, start\n\n"
        f"start({modules!r}, {sorted(found.required)!r}, {sorted(found.optional)!r})\n"
    )


def _program() -> list[str]:
    """Returns the command of componentize-py: that of this Python, or that on the path."""
    if importlib.util.find_spec("componentize_py") is not None:
        code = "import sys; from componentize_py import script; sys.exit(script())"
        return [sys.executable, "-c", code]
    found = shutil.which("componentize-py")
    if found is None:
        raise BuildError(
            f"componentize-py is not installed: run `{sys.executable} -m pip install "
            f"componentize-py=={VERSION}`"
        )
    return [found]


def _run(program: Sequence[str], paths: Sequence[Path], output: Path) -> None:
    command = [*program, "--wit-path", str(_PACKAGE / "wit"), "--world", "plugin", "--quiet"]
    command += ["componentize", "--output", str(output)]
    for path in paths:
        command += ["--python-path", str(path)]
    # Its own search for packages would add those of another Python.
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment |= {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    command.append(_ENTRY)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0 or not output.is_file():
        raise BuildError(readable(ran.stderr or ran.stdout, paths))


def readable(said: str, paths: Sequence[Path]) -> str:
    """Returns the Python traceback in the output of `componentize-py`, with the author's paths."""
    last = said.rfind("Traceback (most recent call last):")
    text = said[last:].split("\n\n", 1)[0] if last >= 0 else said
    # The directories are mounted under their numbers.
    for at, path in enumerate(paths):
        text = text.replace(f'"/{at}/', f'"{path}/')
    if "No module named" in text:
        text += "\nThe sandbox has no such module: it is compiled code, or not installed."
    return f"the plugin cannot be imported in the sandbox's Python:\n{text.strip()}"
