"""Looking at processes from outside: which live, and which belong to a run that is marked in its environment."""

import contextlib
from pathlib import Path


def alive(pid: int | str) -> bool:
    """True where a process runs; one that has ended and waits for its parent does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
    return False


def marked_processes(mark: str) -> list[int]:
    """The ids of living processes that inherited `mark`, a variable of the environment as NAME=VALUE."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0") and alive(entry.name):
                found.append(int(entry.name))
    return found
