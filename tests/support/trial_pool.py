"""Trials spread over processes, of which none can end the run: one that dies or hangs is an answer like any other."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

_POLL_S = 1.0
_MOST_A_PROCESS = 300
"""Trials after which a process makes room for a new one, so that none grows for hours."""


@dataclass(frozen=True)
class Answer:
    """The value that a trial returned, or the end of its process."""

    arguments: tuple[Any, ...]
    result: Any = None
    died: str = ""


class _Process:
    """One process and the trial that it has."""

    def __init__(self, function: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_work, args=(function, there, list(sys.path)), daemon=True)
        self.process.start()
        there.close()
        self.arguments: tuple[Any, ...] | None = None
        self.deadline_s = 0.0
        self.done = 0

    def give(self, arguments: tuple[Any, ...], limit_s: float) -> None:
        self.arguments = arguments
        self.deadline_s = time.monotonic() + limit_s
        self.pipe.send(arguments)

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()

    def answer(self) -> Answer:
        """The answer that has come, or what became of the process."""
        assert self.arguments is not None
        arguments, self.arguments = self.arguments, None
        try:
            self.done += 1
            return Answer(arguments, self.pipe.recv())
        except (EOFError, ConnectionResetError):
            self.process.join()
            return Answer(arguments, died=_ending(self.process.exitcode or 0))


def spread(function: str, trials: Iterable[tuple[Any, ...]], jobs: int, limit_s: float = 300.0) -> Iterator[Answer]:
    """Call `module:function` on each tuple of arguments, in `jobs` processes; answers come as they are ready."""
    waiting = iter(trials)
    idle = [_Process(function) for _ in range(jobs)]
    busy: list[_Process] = []
    try:
        while True:
            while idle and (arguments := next(waiting, None)) is not None:
                process = idle.pop()
                if process.done >= _MOST_A_PROCESS:
                    process.end()
                    process = _Process(function)
                busy.append(process)
                process.give(arguments, limit_s)
            if not busy:
                return
            ready = wait([p.pipe for p in busy], timeout=_POLL_S)
            for process in [p for p in busy if p.pipe in ready or time.monotonic() > p.deadline_s]:
                busy.remove(process)
                if process.pipe in ready:
                    answer = process.answer()
                else:
                    answer = Answer(process.arguments or (), died=f"hung for {limit_s:g} s")
                if answer.died or getattr(answer.result, "device_lost", False):
                    process.end()
                    process = _Process(function)
                idle.append(process)
                yield answer
    finally:
        for process in (*idle, *busy):
            process.end()


def _ending(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _work(function: str, pipe: Connection, path: list[str]) -> None:
    """Run trials in a process of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    module, _, name = function.partition(":")
    call = getattr(importlib.import_module(module), name)
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(call(*arguments))
