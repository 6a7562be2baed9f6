"""The source of a plugin: a file, a package, or a project with a `pyproject.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import BuildError


@dataclass(frozen=True)
class Source:
    """Where the author's modules are."""

    module: str
    """The name of the module with the tools."""
    directory: Path
    """The directory that the module is imported from."""


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
    configured = _configured(directory)
    if configured:
        path = directory / configured
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


def _configured(directory: Path) -> str | None:
    file = directory / "pyproject.toml"
    if not file.is_file():
        return None
    try:
        import tomllib
    except ImportError:
        # Python 3.10 has no parser of TOML; the only module of a project is found without it.
        return None
    try:
        project = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{file}: {error}") from error
    entry = project.get("tool", {}).get("palisade", {}).get("entry")
    return str(entry) if entry else None


def _checked(source: Source) -> Source:
    if not source.module.isidentifier():
        raise BuildError(f"`{source.module}` is no name of a Python module; rename the file")
    if source.module in ("wit_world", "palisade_guest"):
        raise BuildError(f"the name `{source.module}` is taken; rename the file")
    return source
