"""Damaged and crafted files of every kind that is read: one sentence each, and no crash, no hang, no code run.

Inputs are written and tried by processes of their own (tests/support/strange_files.py), under a limit on addresses; a
process that ends, or does not answer in time, is the crash or the hang of the input it was given. Some inputs try to
make a folder where they are run as code, in a shell, in Python, in LLVM IR or from a pickle.
"""

from __future__ import annotations

import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from strange_files import KINDS

from trust.row import Row

WAYS = ("no sentence", "traceback", "crash", "hang", "code run", "strays")
LIMIT_S = 120.0
"""Seconds for an input: a build of a mutated schedule may take some, on a machine that does other things too."""
_SCRIPT = Path(sys.modules["strange_files"].__file__ or "").resolve()
_EXAMPLES = 40


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """A row for each kind of file; 5,000 inputs in all at scale 1."""
    for kind, (_, count) in KINDS.items():
        yield tried(kind, max(1, round(count * scale)), seed, jobs)


def tried(kind: str, count: int, seed: int, jobs: int, script: Path = _SCRIPT, limit_s: float = LIMIT_S) -> Row:
    """Try so many inputs of one kind, in processes that run `script`."""
    start = time.perf_counter()
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(count):
        numbers.put(number)
    outcomes: queue.SimpleQueue[tuple[int, str, str]] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="loopwright-inputs-") as folder:
        threads = [
            threading.Thread(
                target=_work,
                args=(partial(_Process, script, limit_s, kind, seed), Path(folder, str(n)), numbers, outcomes),
            )
            for n in range(max(1, min(jobs, count)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [outcomes.get() for _ in range(outcomes.qsize())]
    counts = Counter(what for _, what, _ in found)
    examples = [f"{kind} seed {seed} number {n}: {what}: {text}" for n, what, text in sorted(found) if what in WAYS]
    return Row(
        f"damaged {kind}",
        len(found),
        {way: counts[way] for way in WAYS},
        time.perf_counter() - start,
        f"{counts['refused']:,} refused in a sentence, {counts['taken']:,} taken",
        tuple(examples[:_EXAMPLES]),
    )


class _Process:
    """A process that tries inputs of one kind, one at a time."""

    def __init__(self, script: Path, limit_s: float, kind: str, seed: int, folder: Path, canary: Path) -> None:
        self._limit_s = limit_s
        command = [sys.executable, str(script), kind, str(seed), str(folder), str(canary)]
        self._errors = (folder.parent / f"{folder.name}.errors").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "XDG_DATA_HOME": str(folder.parent),
                "XDG_CACHE_HOME": str(folder.parent),
            },
            start_new_session=True,
        )

    def answer(self, number: int) -> tuple[str, str]:
        """The outcome of an input, and what it said; the process has ended after a crash or a hang."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return "crash", "the process had ended before"
        ready, _, _ = select.select([self._process.stdout], [], [], self._limit_s)
        if not ready:
            return "hang", f"no answer in {self._limit_s:g} s"
        line = self._process.stdout.readline()
        if line:
            _, what, detail = json.loads(line)
            return what, detail
        code = self._process.wait()
        self._errors.seek(0)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return "crash", f"{how}: {self._errors.read()[-600:]}"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()


def _work(
    start: Callable[[Path, Path], _Process],
    base: Path,
    numbers: queue.SimpleQueue[int],
    outcomes: queue.SimpleQueue[tuple[int, str, str]],
) -> None:
    """Take inputs until there are none, with one process after the other."""
    canary = base / "canary"
    (base / "outer" / "inner").mkdir(parents=True)
    process: _Process | None = None
    while True:
        try:
            number = numbers.get_nowait()
        except queue.Empty:
            break
        process = process or start(base / "outer", canary)
        what, detail = process.answer(number)
        if canary.exists():
            what, detail = "code run", f"made {canary.name}; {detail}"
            canary.rmdir()
        if what in ("crash", "hang", "strays"):
            process.end()
            process = None
            shutil.rmtree(base / "outer", ignore_errors=True)
            (base / "outer" / "inner").mkdir(parents=True)
        shutil.rmtree(base / "outer" / "inner" / str(number), ignore_errors=True)
        outcomes.put((number, what, detail))
    if process is not None:
        process.end()
