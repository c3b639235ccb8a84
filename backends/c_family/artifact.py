"""A kernel for a GPU as bytes that travel between processes: source, binary, and what launching it takes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ..signature import Argument
from .source import KernelSource, Launch

_MAGIC = b"loopwright-gpu-1\n"


class CompileError(Exception):
    """A compiler refused a kernel's source; the message holds its log."""


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel takes, as its compiler says."""

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
        launches = [launch.to_json() for launch in self.kernel.launches]
        arguments = [argument.to_json() for argument in self.kernel.arguments]
        how = json.dumps([self.architecture, self.kernel.workspaces, launches, arguments])
        return how.encode() + b"\n" + code

    def to_bytes(self) -> bytes:
        """Return the artifact as a header line and the binary."""
        header = {
            "kind": self.kind,
            "architecture": self.architecture,
            "name": self.kernel.name,
            "arguments": [argument.to_json() for argument in self.kernel.arguments],
            "workspaces": list(self.kernel.workspaces),
            "launches": [launch.to_json() for launch in self.kernel.launches],
            "resources": [asdict(each) for each in self.resources],
            "source": self.kernel.source,
        }
        return _MAGIC + json.dumps(header, separators=(",", ":")).encode() + b"\n" + self.binary

    @staticmethod
    def from_bytes(data: bytes, kind: str) -> Artifact:
        """Read what `to_bytes` returned; ValueError if it is something else, or for another kind of device."""
        if not data.startswith(_MAGIC):
            raise ValueError("this is no GPU kernel artifact of this version")
        header, _, binary = data[len(_MAGIC) :].partition(b"\n")
        values: dict[str, Any] = json.loads(header)
        if values["kind"] != kind:
            raise ValueError(f"this artifact is for {values['kind']}, not for {kind}")
        kernel = KernelSource(
            values["name"],
            tuple(Argument.from_json(argument) for argument in values["arguments"]),
            tuple(values["workspaces"]),
            tuple(Launch.from_json(launch) for launch in values["launches"]),
            values["source"],
        )
        resources = tuple(Resources(**each) for each in values["resources"])
        return Artifact(kind, values["architecture"], kernel, resources, binary)
