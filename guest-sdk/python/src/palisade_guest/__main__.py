"""Builds plugins: `python -m palisade_guest build SRC -o OUT.wasm`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ._build import componentize, source
from ._build.errors import BuildError


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BuildError as error:
        print(f"palisade-guest: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m palisade_guest", description="Builds Palisade plugins from Python."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="make a plugin of a Python file or package")
    build.add_argument(
        "source",
        type=Path,
        metavar="SRC",
        help="a Python file, a package, or a project with a pyproject.toml",
    )
    build.add_argument("-o", "--output", type=Path, metavar="OUT.wasm", help="the plugin")
    build.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that is imported under a name that no source has",
    )
    build.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module of the standard library that works in part, such as threading",
    )
    build.add_argument(
        "--path",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="a directory of further packages in pure Python",
    )
    build.set_defaults(run=_build)
    show = commands.add_parser("definitions", help="print the definitions of the tools as JSON")
    show.add_argument("source", type=Path, metavar="SRC")
    show.set_defaults(run=_definitions)
    return parser


def _build(options: argparse.Namespace) -> int:
    output = options.output or Path(f"{source.find(options.source).module}.wasm")
    begun = time.monotonic()
    built = componentize.build(
        componentize.Options(options.source, output, options.include, options.allow, options.path)
    )
    packages = ", ".join(sorted(built.found.packages)) or "none"
    print(
        f"{built.output}: {built.size / 1e6:.1f} MB in {time.monotonic() - begun:.0f} s; "
        f"packages: {packages}"
    )
    return 0


def _definitions(options: argparse.Namespace) -> int:
    print(componentize.define(source.find(options.source)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
