"""A kernel for a GPU as bytes that travel between processes: source, binary, and what launching it takes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ...dialects.errors import Error
from ...storage.typed_json import parse_json, read_as, shown
from .kernel_source import KernelSource, TensorMap

_MAGIC = b"loopwright-gpu-3\n"
_BEFORE = b"loopwright-gpu-2\n"
"""Of artifacts that do not say which launches wait for the one ahead: none does."""


class CompileError(Error):
    """A compiler refused a kernel's source; the message holds its log."""


@dataclass(frozen=True)
class Resources:
    """Resources that one thread or block of a kernel takes, as its compiler says."""

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True)
class Artifact:
    """A compiled function; `architecture` says what `binary` is for, an empty one is compiled where it is loaded."""

    kind: str
    architecture: str
    kernel: KernelSource
    resources: tuple[Resources, ...]
    binary: bytes

    def identity(self) -> bytes:
        """Return what decides how it runs: equal for artifacts that are the same on the device.

        Machine code where it is there, which names and notes in the source leave as it is; else the source.
        """
        code = self.binary if self.kind == "cuda" and self.binary else self.kernel.source.encode()
        arguments = [asdict(argument) for argument in self.kernel.arguments]
        launches = [asdict(launch) for launch in self.kernel.launches]
        how = json.dumps([self.architecture, self.kernel.workspaces, launches, arguments])
        return how.encode() + b"\n" + code

    def to_bytes(self) -> bytes:
        """Return the artifact as a header line and the binary."""
        header = _Header(self.kind, self.architecture, self.kernel, self.resources)
        return _MAGIC + json.dumps(asdict(header), separators=(",", ":")).encode() + b"\n" + self.binary

    @staticmethod
    def from_bytes(data: bytes, kind: str) -> Artifact:
        """Read what `to_bytes` returned; ValueError if it is something else, or for another kind of device."""
        if not data.startswith((_MAGIC, _BEFORE)):
            raise ValueError("this is no GPU kernel artifact of this version")
        text, _, binary = data[len(_MAGIC) :].partition(b"\n")
        said = parse_json(text)
        header: _Header = read_as(_Header, said if data.startswith(_MAGIC) else _of_before(said), "the kernel")
        if header.kind != kind:
            raise ValueError(f"this artifact is for {shown(header.kind)}, not for {kind}")
        _check(header.kernel)
        return Artifact(kind, header.architecture, header.kernel, header.resources, binary)


@dataclass(frozen=True)
class _Header:
    """An artifact's header: all but the binary."""

    kind: str
    architecture: str
    kernel: KernelSource
    resources: tuple[Resources, ...]


def _of_before(said: Any) -> Any:
    """Return a header that does not say which launches wait with that, where it has launches."""
    kernel = said.get("kernel") if isinstance(said, dict) else None
    launches = kernel.get("launches") if isinstance(kernel, dict) else None
    for launch in launches if isinstance(launches, list) else ():
        if isinstance(launch, dict):
            launch["waits"] = False
    return said


def _check(kernel: KernelSource) -> None:
    """ValueError where what launching a kernel takes cannot be."""
    for argument in kernel.arguments:
        argument.check()
    buffers = len(kernel.arguments) + len(kernel.workspaces)
    for launch in kernel.launches:
        shared_bytes = (launch.static_shared_bytes, launch.dynamic_shared_bytes)
        if min(*launch.grid, *launch.block) < 1 or min(*shared_bytes, *kernel.workspaces, *launch.buffers, 0) < 0:
            raise ValueError(f"a launch of {shown(launch.name)} has sizes that cannot be")
        taken = (*launch.buffers, *(each.buffer for each in launch.maps))
        if max((*taken, -1)) >= buffers or min((*taken, 0)) < 0:
            raise ValueError(f"a launch of {shown(launch.name)} takes buffer {max(taken)} of {buffers}")
        if any(not _has_boxes(each) for each in launch.maps):
            raise ValueError(f"a launch of {shown(launch.name)} copies boxes that cannot be")


def _has_boxes(described: TensorMap) -> bool:
    """True where a tensor map's dimensions are those of its boxes, or of its walk."""
    walk, rank = described.walk, len(described.shape)
    if walk is None:
        return 0 < rank == len(described.box)
    return len(described.box) == 2 < rank and len(walk.first) == len(walk.last) == len(walk.steps) == rank - 2
