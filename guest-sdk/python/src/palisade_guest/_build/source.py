"""The source of a plugin: a file, a package, or a project with a `pyproject.toml`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import BuildError

_KEYS = ("entry", "allow", "include")
# Modules of the sandbox's standard library that an earlier Python does not have.
_NEWER = ("annotationlib", "compression")


@dataclass(frozen=True)
class Source:
    """Where the author's modules are."""

    module: str
    """The name of the module with the tools."""
    directory: Path
    """The directory that the module is imported from."""
    allow: tuple[str, ...] = ()
    """Modules that the project accepts although they cannot fully work."""
    include: tuple[str, ...] = ()
    """Modules that no import statement names."""


def find(path: Path) -> Source:
    """Finds the module with the tools.

    Raises:
        BuildError: There is none, or several could be meant.
    """
    if path.is_file() and path.suffix == ".py":
        return _checked(Source(path.stem, path.resolve().parent))
    if (path / "__init__.py").is_file():
        return _checked(Source(path.resolve().name, path.resolve().parent))
    if path.is_dir():
        return _in_project(path.resolve())
    raise BuildError(f"{path} is neither a Python file nor a directory")


def _in_project(directory: Path) -> Source:
    settings = _settings(directory / "pyproject.toml")
    module = _module(directory, settings.pop("entry", ""))
    return replace(module, **{key: tuple(names) for key, names in settings.items()})


def _module(directory: Path, entry: str) -> Source:
    if entry:
        path = directory / entry
        if not path.exists():
            raise BuildError(f"{directory}/pyproject.toml: `entry`: {path} does not exist")
        return find(path)
    roots = [root for root in (directory / "src", directory) if root.is_dir()]
    for root in roots:
        packages = [p for p in sorted(root.iterdir()) if (p / "__init__.py").is_file()]
        skipped = ("test_", "conftest", "setup")
        files = [f for f in sorted(root.glob("*.py")) if not f.name.startswith(skipped)]
        found = [p for p in [*packages, *files] if p.name not in ("tests", "test", "build", "dist")]
        if len(found) == 1:
            return find(found[0])
        if found:
            names = ", ".join(path.name for path in found)
            raise BuildError(f"{root} has several modules ({names}): name one, or set `entry` in "
                             "[tool.palisade] of pyproject.toml")
    raise BuildError(f"{directory} has no Python module")


def _settings(file: Path) -> dict[str, Any]:
    """Returns the checked table [tool.palisade]."""
    if not file.is_file():
        return {}
    try:
        project = _toml().loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BuildError(f"{file}: {error}") from error
    settings = project.get("tool", {}).get("palisade", {})
    for key, value in settings.items():
        place = f"{file}: [tool.palisade]: `{key}`"
        if key not in _KEYS:
            raise BuildError(f"{place} is no key of this table; the keys are {', '.join(_KEYS)}")
        if key == "entry":
            if not isinstance(value, str):
                raise BuildError(f"{place} is not the path of a Python file or package")
        elif not isinstance(value, list) or not all(map(_is_module, value)):
            raise BuildError(f'{place} is not a list of modules, such as ["xml.dom"]')
    return dict(settings)


def _toml() -> Any:
    try:
        import tomllib
    except ImportError:
        # Python 3.10 has no parser of TOML.
        try:
            import tomli as tomllib
        except ImportError as error:
            raise BuildError(
                "this Python cannot read pyproject.toml: run "
                f"`{sys.executable} -m pip install tomli`"
            ) from error
    return tomllib


def _is_module(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _checked(source: Source) -> Source:
    if not source.module.isidentifier():
        raise BuildError(f"`{source.module}` is no name of a Python module; rename the file")
    if source.module in ("wit_world", "palisade_guest"):
        raise BuildError(f"the name `{source.module}` is taken; rename the file")
    if source.module in sys.stdlib_module_names or source.module in _NEWER:
        raise BuildError(
            f"`{source.module}` is the name of a module of the standard library, and Python would "
            "import one in place of the other: rename the file, and `entry` in [tool.palisade] of "
            "pyproject.toml"
        )
    return source
