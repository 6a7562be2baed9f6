"""Finds the modules that a plugin imports, without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import modules
from .errors import BuildError

_SDK = "palisade_guest"
_COMPILED = (".so", ".pyd", ".dylib")


@dataclass(frozen=True)
class Import:
    """An import statement."""

    name: str
    file: Path
    line: int
    is_guarded: bool
    """True within `try` with a handler of `ImportError`, or under `TYPE_CHECKING`."""
    is_lazy: bool
    """True within a function."""
    member_of: str | None = None
    """Of `from a import b`, the module `a`: `b` may be a module or not."""


@dataclass
class Found:
    """The imports of a plugin."""

    required: set[str] = field(default_factory=set)
    """Modules that the author's modules import within functions."""
    optional: set[str] = field(default_factory=set)
    """Modules that their packages import within functions."""
    packages: set[str] = field(default_factory=set)
    """The packages of others."""


class Scan:
    """A walk over the author's modules and the packages that these import.

    Args:
        own: The directories of the author's modules.
        installed: The directories of installed packages.
        allowed: Modules that the author accepts although they cannot fully work.
    """

    def __init__(
        self, own: Sequence[Path], installed: Sequence[Path], allowed: Sequence[str]
    ) -> None:
        self._own = own
        self._installed = installed
        self._allowed = set(allowed)
        self._seen: dict[str, bool] = {}
        """The modules so far. True if the plugin cannot be imported without the module."""
        self._problems: list[str] = []
        self.found = Found()

    def walk(self, names: Sequence[str]) -> Found:
        """Follows the imports of these modules.

        Raises:
            BuildError: A module cannot work in the sandbox, or does not exist.
        """
        waiting = [(name, True) for name in names]
        while waiting:
            name, is_needed = waiting.pop()
            is_done = name in self._seen and (self._seen[name] or not is_needed)
            if is_done or name.partition(".")[0] == _SDK:
                continue
            self._seen[name] = is_needed
            file, is_own = self._locate(name)
            if file is None:
                continue
            waiting += [(parent, is_needed) for parent in [name.rpartition(".")[0]] if parent]
            for found in imports(file, _package(name, file)):
                # A failure within a module ends at the guard of its import.
                guarded = replace(found, is_guarded=found.is_guarded or not is_needed)
                is_fatal = not guarded.is_guarded and (is_own or not found.is_lazy)
                waiting += [(n, is_fatal) for n in self._follow(guarded, is_own=is_own)]
        if self._problems:
            raise BuildError("\n".join(dict.fromkeys(self._problems)))
        return self.found

    def _follow(self, found: Import, *, is_own: bool) -> list[str]:
        top = found.name.partition(".")[0]
        if top in sys.stdlib_module_names or modules.unusable(found.name):
            self._library(found, is_own=is_own)
            return []
        file, target_is_own = self._locate(found.name)
        if file is None:
            if found.member_of is None:
                self._absent(found, is_own=is_own)
            return []
        if not target_is_own and top != _SDK:
            self.found.packages.add(top)
        self._remember(found, is_own=is_own)
        return [found.name]

    def _library(self, found: Import, *, is_own: bool) -> None:
        is_fatal = is_own or not found.is_lazy
        unusable = modules.unusable(found.name) if is_own else modules.failing(found.name)
        if unusable and not found.is_guarded and is_fatal and unusable not in self._allowed:
            advice = (
                f"; if you need only a part that works, write {unusable!r} into the list `allow` "
                f"of [tool.palisade] in pyproject.toml, or give --allow {unusable}"
            )
            if modules.failing(unusable):
                advice = ""
            self._report(found, f"imports {unusable!r}: {modules.REASONS[unusable]}{advice}")
        elif not modules.failing(found.name):
            self._remember(found, is_own=is_own)

    def _remember(self, found: Import, *, is_own: bool) -> None:
        if found.is_lazy:
            is_certain = is_own and not found.is_guarded and found.member_of is None
            (self.found.required if is_certain else self.found.optional).add(found.name)

    def _absent(self, found: Import, *, is_own: bool) -> None:
        top = found.name.partition(".")[0]
        compiled = next((f for d in self._installed for f in _compiled(d, found.name)), None)
        if found.is_guarded or (not is_own and found.is_lazy):
            return
        if compiled:
            self._report(found, f"imports {found.name!r}, which is compiled code ({compiled.name}): "
                         "only packages in pure Python work in the sandbox")
        elif is_own and top != _SDK:
            self._report(found, f"imports {found.name!r}, which is not installed: run "
                         f"`{sys.executable} -m pip install {top}`, and add it to requirements.txt")

    def _report(self, found: Import, message: str) -> None:
        self._problems.append(f"{found.file}:{found.line}: {message}")

    def _locate(self, name: str) -> tuple[Path | None, bool]:
        relative = Path(*name.split("."))
        for directories, is_own in ((self._own, True), (self._installed, False)):
            for directory in directories:
                for file in (relative / "__init__.py", relative.with_suffix(".py")):
                    if (directory / file).is_file():
                        return directory / file, is_own
        return None, False


def imports(file: Path, package: str) -> list[Import]:
    """Returns the import statements of a file.

    Raises:
        BuildError: The file is no Python.
    """
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError) as error:
        raise BuildError(f"{file}:{getattr(error, 'lineno', 0)}: {error}") from error
    return list(_walk(tree, file, package, is_guarded=False, is_lazy=False))


def _walk(
    node: ast.AST, file: Path, package: str, *, is_guarded: bool, is_lazy: bool
) -> Iterator[Import]:
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, file, node.lineno, is_guarded, is_lazy)
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, package)
        yield Import(base, file, node.lineno, is_guarded, is_lazy)
        for alias in node.names:
            name = f"{base}.{alias.name}"
            yield Import(name, file, node.lineno, is_guarded, is_lazy, member_of=base)
    elif isinstance(node, ast.Try) and any(map(_catches_import_error, node.handlers)):
        for child in node.body:
            yield from _walk(child, file, package, is_guarded=True, is_lazy=is_lazy)
        for child in [*node.handlers, *node.orelse, *node.finalbody]:
            yield from _walk(child, file, package, is_guarded=is_guarded, is_lazy=is_lazy)
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for child in node.orelse:
            yield from _walk(child, file, package, is_guarded=is_guarded, is_lazy=is_lazy)
    else:
        # A branch of `if` may not be taken, as on another system or version.
        maybe = is_guarded or isinstance(node, ast.If)
        for child in ast.iter_child_nodes(node):
            yield from _walk(
                child, file, package, is_guarded=maybe, is_lazy=is_lazy or is_function
            )


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    caught = ast.dump(handler.type) if handler.type else "Exception"
    return any(name in caught for name in ("ImportError", "ModuleNotFoundError", "Exception"))


def _package(name: str, file: Path) -> str:
    return name if file.name == "__init__.py" else name.rpartition(".")[0]


def _compiled(directory: Path, name: str) -> Iterator[Path]:
    place = directory.joinpath(*name.split("."))
    if place.parent.is_dir():
        for file in place.parent.glob(f"{place.name}.*"):
            if file.suffix in _COMPILED:
                yield file
