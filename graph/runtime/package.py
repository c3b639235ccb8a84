"""A compiled network in one file: the plan, the kernels, and the constants as the kernels want them."""

from __future__ import annotations

import hashlib
import json
import operator
import os
import zipfile
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.arrays import aligned_empty
from ...dialects.numpy_types import teach_numpy
from .plan import Plan, PlanError

Array = npt.NDArray[Any]
FORMAT = "loopwright-network-2"
_HEADER = "network.json"


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
            "kernels": [hashlib.sha256(artifact).hexdigest() for artifact in self.kernels],
            "constants": [[array.dtype.name, list(array.shape)] for array in self.constants],
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
            file.writestr(_HEADER, json.dumps(header))
            for number, artifact in enumerate(self.kernels):
                file.writestr(f"kernels/{number}", artifact)
            for number, array in enumerate(self.constants):
                with file.open(f"constants/{number}", "w", force_zip64=True) as member:
                    member.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Package:
        """Read what `save` wrote; PackageError says what is wrong with a file that is something else."""
        name = os.fspath(path)
        try:
            with zipfile.ZipFile(path) as file:
                return _Reader(name, file).package()
        except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise PackageError(f"{name} is no compiled network: {error}") from error


@dataclass(frozen=True)
class _Reader:
    """Reads the parts of a package, and checks each against what the header says of it."""

    name: str
    file: zipfile.ZipFile

    def package(self) -> Package:
        header = self._header()
        try:
            plan = Plan.from_json(header.get("plan"))
            plan.check()
        except PlanError as error:
            raise PackageError(f"{self.name} is damaged: {error}") from error
        digests = self._listed(header, "kernels", len(plan.kernels))
        kernels = tuple(self._kernel(number, digest) for number, digest in enumerate(digests))
        listed = self._listed(header, "constants", len(plan.constants))
        constants = tuple(self._constant(number, described) for number, described in enumerate(listed))
        return Package(plan, kernels, constants)

    def _header(self) -> dict[str, Any]:
        try:
            header = json.loads(self._part(_HEADER))
        except ValueError as error:
            if isinstance(error, PackageError):
                raise
            raise PackageError(f"{self.name} is no compiled network: its {_HEADER} is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise PackageError(f"{self.name} is no compiled network: its {_HEADER} holds no object")
        if header.get("format") != FORMAT:
            raise PackageError(f"{self.name}: format {header.get('format')!r} is not {FORMAT!r}: compile it again")
        return header

    def _part(self, part: str) -> bytes:
        try:
            return self.file.read(part)
        except KeyError:
            raise PackageError(f"{self.name} is no compiled network: there is no {part} in it") from None
        except (zipfile.BadZipFile, RuntimeError) as error:
            raise PackageError(f"{self.name} is damaged: {part} cannot be read: {error}") from error

    def _listed(self, header: dict[str, Any], key: str, count: int) -> list[Any]:
        found = header.get(key)
        if not isinstance(found, list):
            raise PackageError(f"{self.name} is damaged: its {_HEADER} has no list of {key}")
        if len(found) != count:
            raise PackageError(f"{self.name} is damaged: {len(found)} {key} for a plan of {count}")
        return found

    def _kernel(self, number: int, digest: Any) -> bytes:
        artifact = self._part(f"kernels/{number}")
        if hashlib.sha256(artifact).hexdigest() != digest:
            raise PackageError(f"{self.name} is damaged: kernels/{number} is not the kernel that was written")
        return artifact

    def _constant(self, number: int, described: Any) -> Array:
        part = f"constants/{number}"
        try:
            dtype, shape = described
            teach_numpy(dtype)
            nbytes = prod(operator.index(n) for n in shape) * np.dtype(dtype).itemsize
        except (TypeError, ValueError) as error:
            raise PackageError(f"{self.name} is damaged: {part} cannot be an array of {described}: {error}") from error
        data = np.frombuffer(self._part(part), np.uint8)
        if data.size != nbytes:
            raise PackageError(f"{self.name} is damaged: {part} has {data.size} bytes, {dtype}{shape} takes {nbytes}")
        array = aligned_empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[...] = data
        return array
