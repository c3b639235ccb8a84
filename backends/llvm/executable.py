"""A compiled kernel: as bytes that travel between processes, and loaded, ready to run on arrays."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy.typing as npt

from ...storage.typed_json import parse_json, read_as
from ..arrays import workspace_of
from ..constants import Constants
from ..forkable import ForkableLock
from ..signature import Argument
from .amx import allow_tiles
from .cpu import MissingFeatures, why_not_here
from .loaded_object import LoadedObject
from .outside import CheckedAccess, TrapRecord
from .sequence import KernelSequence
from .symbols import MOST_THREADS
from .turns import Turns

_MAGIC = b"loopwright-llvm-4\n"


@dataclass(frozen=True)
class Artifact:
    """Machine code of one kernel and what calling it takes; `accesses` if it checks their addresses.

    `features` are what the code may use of a CPU, by LLVM's names, the architecture first.
    """

    name: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int
    threads: int
    object_code: bytes
    accesses: tuple[CheckedAccess, ...] = ()
    features: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the artifact as a header line and the object file."""
        header = {each.name: getattr(self, each.name) for each in fields(_Header)}
        text = json.dumps(asdict(_Header(**header)), separators=(",", ":"))
        return _MAGIC + text.encode() + b"\n" + self.object_code

    @staticmethod
    def from_bytes(data: bytes) -> Artifact:
        """Read what `to_bytes` returned; ValueError if it is something else."""
        if not data.startswith(_MAGIC):
            raise ValueError("this is no LLVM kernel artifact of this version")
        text, _, object_code = data[len(_MAGIC) :].partition(b"\n")
        header: _Header = read_as(_Header, parse_json(text), "the kernel")
        if header.workspace_bytes < 0 or not 1 <= header.threads <= MOST_THREADS:
            raise ValueError(f"a kernel takes {header.workspace_bytes} bytes of memory and {header.threads} threads")
        for argument in header.arguments:
            argument.check()
        return Artifact(object_code=object_code, **{each.name: getattr(header, each.name) for each in fields(header)})


@dataclass(frozen=True)
class _Header:
    """An artifact's header: all but the code."""

    name: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int
    threads: int
    accesses: tuple[CheckedAccess, ...]
    features: tuple[str, ...]


class LlvmExecutable:
    """A loaded kernel; arrays passed to it must be contiguous, aligned and of the right type and shape.

    Constants in `params` (by name) are held from the start, and left out of the arrays. Others come in their original
    layout; `time` takes those of the `run` before to be unchanged, and does not count their packing. Of an artifact
    that checks its addresses, both raise OutsideBufferError for the first access outside of its buffer.
    MissingFeatures where it is compiled for instructions that this CPU does not have.
    """

    def __init__(self, artifact: Artifact, params: Mapping[str, Any] | None = None) -> None:
        if (reason := why_not_here(artifact.features)) is not None:
            raise MissingFeatures(f"kernel {artifact.name} {reason}")
        allow_tiles(artifact.features)
        self._constants = Constants(artifact.name, artifact.arguments, params)
        self.arguments = self._constants.open
        self._loaded = LoadedObject(artifact.object_code, artifact.threads, has_trap=bool(artifact.accesses))
        trap = self._loaded.trap
        self._trap = None if trap is None else TrapRecord(artifact.name, artifact.accesses, trap)
        self._threads = artifact.threads
        self._workspace = workspace_of(artifact.workspace_bytes)
        self._all_arguments = artifact.arguments
        self._turns: Turns | None = None
        self._lock = ForkableLock()

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        """Run once on `args`, inputs then outputs; outputs are written in place and complete on return."""
        with self._lock:
            self._sequence(self._constants.complete(args)).run()
            self._check_trap()
            if self._turns is not None:
                self._turns.forget()

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        """Return the seconds that `number` runs, back to back, take."""
        with self._lock:
            calls = self._calls(args, number)
            start_s = time.perf_counter()
            for sequence, times in calls:
                sequence.run_often(times)
            elapsed_s = time.perf_counter() - start_s
            self._check_trap()
            return elapsed_s

    def take_turns(self, nbytes: int) -> None:
        """Have `time` take its constants from copies in turn, which have so many bytes all together."""
        self._turns = Turns(self._all_arguments, nbytes)

    def _calls(self, args: Sequence[npt.NDArray[Any]], number: int) -> list[tuple[KernelSequence, int]]:
        """Calls of the kernel, and how often each sequence of them is run, for so many runs."""
        arrays = self._constants.complete(args, again=True)
        if self._turns is not None:
            return self._turns.sequences(self._loaded.run, arrays, self._workspace, number, self._threads)
        return [(self._sequence(arrays), number)]

    def _sequence(self, arrays: Sequence[npt.NDArray[Any]]) -> KernelSequence:
        """One call with arrays for all arguments."""
        addresses = [array.ctypes.data for array in (*arrays, self._workspace)]
        return KernelSequence([(self._loaded.run, addresses)], self._threads)

    def _check_trap(self) -> None:
        if self._trap is not None:
            self._trap.check()

    def __del__(self) -> None:
        loaded = getattr(self, "_loaded", None)
        if loaded is not None:
            loaded.close()


class ElsewhereExecutable:
    """A kernel for another CPU than this one: it can be looked at and exported, and MissingFeatures where it is run."""

    def __init__(self, artifact: Artifact, params: Mapping[str, Any] | None = None) -> None:
        self.arguments = Constants(artifact.name, artifact.arguments, params).open
        self._sentence = f"kernel {artifact.name} {why_not_here(artifact.features)}"

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        """Refuse to run."""
        raise MissingFeatures(self._sentence)

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        """Refuse to run."""
        raise MissingFeatures(self._sentence)
