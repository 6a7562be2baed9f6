"""The error of a build."""


class BuildError(Exception):
    """A plugin that cannot be built, with the reason and what to do."""
