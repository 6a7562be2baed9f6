"""The modules of the standard library that cannot work in the sandbox, with the reasons."""

from __future__ import annotations

_THREADS = "there are no threads in the sandbox"
_SOCKETS = "there are no sockets in the sandbox"
_PROCESSES = "there are no other processes in the sandbox"
_NATIVE = "there is no native code in the sandbox"
_TERMINAL = "there is no terminal in the sandbox"
_SYSTEM = "there is no operating system with users and signals in the sandbox"
_MISSING = "the Python of the sandbox was compiled without it"

# True: importing it fails. False: it can be imported, and does not work.
_BY_REASON: dict[tuple[str, bool], tuple[str, ...]] = {
    (_THREADS, False): ("threading", "_thread", "concurrent.futures", "sched"),
    (_SOCKETS, False): (
        "asyncio", "ftplib", "http.client", "http.server", "imaplib", "poplib", "select",
        "selectors", "smtplib", "socket", "socketserver", "urllib.request", "webbrowser",
        "xmlrpc.client", "xmlrpc.server",
    ),
    (_SOCKETS, True): ("ssl",),
    (_PROCESSES, False): ("multiprocessing", "subprocess"),
    (_PROCESSES, True): ("pty",),
    (_NATIVE, True): ("ctypes", "mmap", "msvcrt", "winreg", "winsound"),
    (_TERMINAL, True): ("curses", "readline", "termios", "tkinter", "tty", "turtle", "idlelib"),
    (_TERMINAL, False): ("getpass",),
    (_SYSTEM, True): ("fcntl", "grp", "pwd", "resource", "syslog"),
    (_SYSTEM, False): ("signal",),
    (_MISSING, True): ("bz2", "lzma"),
    (_MISSING, False): ("ensurepip", "venv"),
}  # fmt: skip

REASONS = {name: reason for (reason, _), names in _BY_REASON.items() for name in names}
"""The reason why a module cannot work, by its name."""

_FAILING = {name for (_, fails), names in _BY_REASON.items() if fails for name in names}


def unusable(name: str) -> str | None:
    """Returns the module that cannot work and that an import of `name` would import."""
    return _prefix(name, REASONS)


def failing(name: str) -> str | None:
    """Returns the module whose import fails and that an import of `name` would import."""
    return _prefix(name, _FAILING)


def _prefix(name: str, known: dict[str, str] | set[str]) -> str | None:
    parts = name.split(".")
    prefixes = (".".join(parts[: at + 1]) for at in range(len(parts)))
    return next((prefix for prefix in prefixes if prefix in known), None)
