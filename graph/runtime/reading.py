"""Packages read from files that may be anybody's: nothing is believed before it is checked, and nothing runs here."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ...backends.arrays import aligned_empty
from ...storage.typed_json import TypeMismatch, parse_json, read_as, shown
from ...storage.user_key import NoKey, Origin, origin_of
from .check_plan import check_plan, check_target, elements
from .package import FORMAT, HEADER, TAG, Array, Package, PackageError
from .plan import Plan, PlanError
from .signature import Signature, signature_of

_MOST_HEADER_BYTES = 64 << 20
"""Of network.json: a thousand kernels with schedules of 10 KiB take a sixth of it."""
_MOST_TAG_BYTES = 1000
"""Of a package's tag, which is 64 hexadecimal digits."""
_ENCRYPTED = 1
"""The bit of a member's flags that says so (APPNOTE.TXT of the ZIP format, 4.4.4)."""
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
    struct.error,
    OSError,
)
"""Errors that `zipfile` raises for bytes that are no zip file; the file itself is open by then."""


@dataclass(frozen=True)
class _Header:
    """The contents of network.json: each kernel's SHA-256, and each constant's type, shape and SHA-256."""

    format: str
    plan: Plan
    kernels: tuple[str, ...]
    constants: tuple[tuple[str, tuple[int, ...], str], ...]


def load_package(path: str | os.PathLike[str], *, trusted: bool = False) -> Package:
    """Read what `Package.save` wrote.

    The file holds native code. PackageError where it was not saved by this user as it is, unless it is `trusted`,
    and where it is something else, damaged, or does what a network must not. OSError where it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a compiled network is given by the path of its file, got {type(path).__name__}")
    with open(path, "rb") as file:
        return _read(os.fspath(path), file, trusted)


def _read(name: str, file: IO[bytes], trusted: bool) -> Package:
    """Read the package in an open file, called `name`."""
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            return _Reader(name, archive, size).package(trusted)
    except PackageError:
        raise
    except (TypeMismatch, PlanError) as error:
        raise PackageError(f"{name} is damaged: {error}") from None
    except _BROKEN as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise PackageError(f"{name} is no compiled network: {reason}") from None


class _Reader:
    """Reads the parts of a package, and checks each against what the header says of it."""

    def __init__(self, name: str, archive: zipfile.ZipFile, size: int) -> None:
        self._name = name
        self._archive = archive
        self._members = self._checked_members(size)

    def _checked_members(self, size: int) -> dict[str, zipfile.ZipInfo]:
        """Return the members by name, each stored as it is, and all of them together no larger than the file."""
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist():
            if info.filename in members:
                raise self._damaged(f"{shown(info.filename)} is in it twice")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _ENCRYPTED:
                raise self._damaged(f"{shown(info.filename)} is compressed or encrypted")
            if info.compress_size != info.file_size:
                raise self._damaged(f"{shown(info.filename)} has two sizes")
            members[info.filename] = info
        if sum(info.file_size for info in members.values()) > size:
            raise self._damaged(f"its parts are larger than its {size} bytes")
        return members

    def package(self, trusted: bool) -> Package:
        data = self._part(HEADER, _MOST_HEADER_BYTES)
        values = self._values(data)
        if not trusted:
            self._require_own(data)
        header: _Header = read_as(_Header, values, HEADER)
        plan = header.plan
        check_target(plan)
        self._require_count(len(header.kernels), len(plan.kernels), "kernels")
        self._require_count(len(header.constants), len(plan.constants), "constants")
        self._require_members(header)
        kernels = tuple(self._verified(f"kernels/{n}", digest) for n, digest in enumerate(header.kernels))
        signatures = [self._signature(plan.kind, number, artifact) for number, artifact in enumerate(kernels)]
        held = [elements(dtype, shape, f"constants/{n}") for n, (dtype, shape, _) in enumerate(header.constants)]
        for number, each in enumerate(held):
            self._require_size(f"constants/{number}", each.nbytes, str(each))
        check_plan(plan, signatures, held)
        constants = tuple(self._constant(number, *described) for number, described in enumerate(header.constants))
        return Package(plan, kernels, constants)

    def _values(self, data: bytes) -> dict[str, Any]:
        """Return the header as JSON, of this format."""
        try:
            values = parse_json(data)
        except TypeMismatch as error:
            raise PackageError(f"{self._name} is no compiled network: its {HEADER} is {error}") from None
        if type(values) is not dict:
            raise PackageError(f"{self._name} is no compiled network: its {HEADER} holds no object")
        if values.get("format") != FORMAT:
            found = shown(values.get("format"))
            raise PackageError(f"{self._name}: format {found} is not {FORMAT!r}: compile it again")
        return values

    def _require_own(self, header: bytes) -> None:
        """PackageError where this user did not save the file as it is."""
        why = "nothing in it says who saved it"
        if TAG in self._members:
            try:
                origin = origin_of(FORMAT, header, self._part(TAG, _MOST_TAG_BYTES).decode("ascii", "replace"))
                if origin is Origin.OWN:
                    return
                why = (
                    "it was changed since you saved it"
                    if origin is Origin.CHANGED
                    else "it was not saved with your key"
                )
            except NoKey as error:
                why = f"nothing shows that you saved it, as {error}"
        raise PackageError(
            f"{self._name} holds native code, which would run with all your rights, and {why}: load it with "
            "trusted=True (--trust) if you trust where it is from"
        )

    def _require_count(self, found: int, wanted: int, what: str) -> None:
        if found != wanted:
            raise self._damaged(f"{found} {what} for a plan of {wanted}")

    def _require_members(self, header: _Header) -> None:
        """PackageError where a part is missing, or there is one that is none."""
        wanted = {HEADER, *(f"kernels/{n}" for n in range(len(header.kernels)))}
        wanted |= {f"constants/{n}" for n in range(len(header.constants))}
        for part in sorted(wanted - self._members.keys()):
            raise PackageError(f"{self._name} is no compiled network: there is no {part} in it")
        for part in sorted(self._members.keys() - wanted - {TAG}):
            raise self._damaged(f"{shown(part)} is no part of a compiled network")

    def _require_size(self, part: str, nbytes: int, what: str) -> None:
        size = self._members[part].file_size
        if size != nbytes:
            raise self._damaged(f"{part} has {size} bytes, {what} takes {nbytes}")

    def _part(self, part: str, most_bytes: int | None = None) -> bytes:
        info = self._members.get(part)
        if info is None:
            raise PackageError(f"{self._name} is no compiled network: there is no {part} in it")
        if most_bytes is not None and info.file_size > most_bytes:
            raise self._damaged(f"{part} has {info.file_size} bytes, {most_bytes} are allowed")
        try:
            return self._archive.read(info)
        except _BROKEN as error:
            raise self._damaged(f"{part} cannot be read: {str(error) or type(error).__name__}") from None

    def _verified(self, part: str, digest: str) -> bytes:
        data = self._part(part)
        if hashlib.sha256(data).hexdigest() != digest:
            raise self._damaged(f"{part} is not what was written")
        return data

    def _signature(self, kind: str, number: int, artifact: bytes) -> Signature:
        try:
            return signature_of(kind, artifact)
        except ValueError as error:
            raise self._damaged(f"kernels/{number}: {error}") from None

    def _constant(self, number: int, dtype: str, shape: Sequence[int], digest: str) -> Array:
        data = self._verified(f"constants/{number}", digest)
        array = aligned_empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8)
        return array

    def _damaged(self, what: str) -> PackageError:
        return PackageError(f"{self._name} is damaged: {what}")
