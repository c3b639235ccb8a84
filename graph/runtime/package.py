"""The file of a compiled network: its plan, its kernels, and the constants as the kernels want them.

It is a zip file without compression, of `network.json` (the plan, and the SHA-256 of each other part), `tag` (this
user's MAC of network.json, where there is a key), `kernels/N` and `constants/N`. Kernels are native code, which runs
with the rights of whoever loads it, so a file that this user did not save is loaded only where the caller says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.caller import warn_caller
from ...dialects.errors import Error
from ...storage.ownership import require_ours
from ...storage.user_key import NoKey, tag
from ...storage.whole_file import whole_file
from .plan import Plan

Array = npt.NDArray[Any]
FORMAT = "loopwright-network-5"
HEADER = "network.json"
TAG = "tag"


class PackageError(Error, ValueError):
    """A file is no compiled network that this version can load, or not one that it was told to trust."""


class PackageWarning(UserWarning):
    """A package is saved without this user's tag."""


@dataclass(frozen=True)
class Package:
    """A plan, an artifact for each kernel, and an array for each constant."""

    plan: Plan
    kernels: tuple[bytes, ...]
    constants: tuple[Array, ...]

    @property
    def constant_bytes(self) -> int:
        """The bytes of all constants."""
        return sum(array.nbytes for array in self.constants)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which appears whole or not at all; OSError names it where that cannot be.

        It carries this user's tag, by which `load_package` knows it again. Where there is no key and none can be made,
        a PackageWarning says so, and the file loads as a stranger's does.
        """
        header = json.dumps(
            {
                "format": FORMAT,
                "plan": self.plan.to_json(),
                "kernels": [_digest(artifact) for artifact in self.kernels],
                "constants": [[a.dtype.name, list(a.shape), _digest(data_of(a))] for a in self.constants],
            }
        ).encode()
        require_ours(path, "compiled network", [HEADER.encode()])
        with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in self._parts(header, os.fspath(path)):
                info = zipfile.ZipInfo(name)  # of no date: the same network is the same bytes
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=True) as member:
                    member.write(data)

    def _parts(self, header: bytes, path: str) -> Iterator[tuple[str, bytes | memoryview]]:
        yield HEADER, header
        try:
            yield TAG, tag(FORMAT, header).encode()
        except NoKey as error:
            text = f"{path} is saved without a tag, so loading it takes trusted=True (--trust): {error}"
            warn_caller(text, PackageWarning)
        for number, artifact in enumerate(self.kernels):
            yield f"kernels/{number}", artifact
        for number, array in enumerate(self.constants):
            yield f"constants/{number}", data_of(array)


def require_memory(plan: Plan, most_bytes: int, where: str) -> None:
    """PackageError where a network's tensors take more memory than there is."""
    if plan.arena_bytes > most_bytes:
        raise PackageError(f"network {plan.name} takes {plan.arena_bytes:,} bytes, {where} has {most_bytes:,}")


def data_of(array: Array) -> memoryview:
    """Return the bytes of an array's elements."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
