"""Signatures of a network's kernels, read from their artifacts."""

from __future__ import annotations

from dataclasses import dataclass

from ...backends.c_family.artifact import Artifact as DeviceArtifact
from ...backends.llvm.executable import Artifact
from ...backends.signature import Argument


@dataclass(frozen=True)
class Signature:
    """A kernel's signature: its arguments, and the bytes of each workspace."""

    arguments: tuple[Argument, ...]
    workspaces: tuple[int, ...]


def signature_of(kind: str, artifact: bytes) -> Signature:
    """Return the signature of a kernel for a kind of target; ValueError where the bytes are no artifact of one."""
    if kind == "llvm":
        made = Artifact.from_bytes(artifact)
        return Signature(made.arguments, (made.workspace_bytes,))
    kernel = DeviceArtifact.from_bytes(artifact, kind).kernel
    return Signature(kernel.arguments, tuple(kernel.workspaces))
