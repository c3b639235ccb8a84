"""A compiled network in one file: the plan, the kernels, and the constants as the kernels want them."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.arrays import aligned_empty
from ...dialects.combiner import teach_numpy
from .plan import Plan

Array = npt.NDArray[Any]
FORMAT = "loopwright-network-1"


class PackageError(ValueError):
    """A file is no compiled network that this version can load."""


@dataclass(frozen=True)
class Package:
    """A plan, an artifact for each kernel, and an array for each constant."""

    plan: Plan
    kernels: tuple[bytes, ...]
    constants: tuple[Array, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file (a zip file without compression)."""
        header = {
            "format": FORMAT,
            "plan": self.plan.to_json(),
            "constants": [[array.dtype.name, list(array.shape)] for array in self.constants],
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
            file.writestr("network.json", json.dumps(header))
            for number, artifact in enumerate(self.kernels):
                file.writestr(f"kernels/{number}", artifact)
            for number, array in enumerate(self.constants):
                with file.open(f"constants/{number}", "w", force_zip64=True) as member:
                    member.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Package:
        """Read what `save` wrote; PackageError where it is something else."""
        name = os.fspath(path)
        try:
            with zipfile.ZipFile(path) as file:
                header = json.loads(file.read("network.json"))
                if header.get("format") != FORMAT:
                    raise PackageError(f"{name}: format {header.get('format')!r} is not {FORMAT!r}: compile it again")
                plan = Plan.from_json(header["plan"])
                kernels = tuple(file.read(f"kernels/{n}") for n in range(len(plan.kernels)))
                return Package(plan, kernels, _constants(file, header["constants"]))
        except (zipfile.BadZipFile, KeyError, json.JSONDecodeError) as error:
            raise PackageError(f"{name} is no compiled network: {error}") from error


def _constants(file: zipfile.ZipFile, described: Sequence[Sequence[Any]]) -> tuple[Array, ...]:
    arrays = []
    for number, (dtype, shape) in enumerate(described):
        teach_numpy(dtype)
        array = aligned_empty(shape, dtype)
        data = np.frombuffer(file.read(f"constants/{number}"), np.uint8)
        array.reshape(-1).view(np.uint8)[...] = data
        arrays.append(array)
    return tuple(arrays)
