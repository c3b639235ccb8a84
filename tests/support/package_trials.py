"""Damaged and made-up files of compiled networks and kernel caches, a batch of trials at a time."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from packages import Header, memory_violation, mutated, parts_of, small_network, with_header, write_parts

import loopwright as lw
from loopwright.graph.runtime.package import Package, PackageError
from loopwright.graph.runtime.reading import load_package
from loopwright.storage.binary_cache import BinaryCache, CacheWarning

BATCH = 25
Trial = Callable[[], bool]
"""Tries one file; True where it is refused."""
FAULTS = ("not one sentence", "another error", "beyond its arrays", "believed")


@dataclass
class Tried:
    """Outcome of a batch: how many were refused, how many were sound, and what must not be, by kind."""

    tried: int = 0
    refused: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)


@cache
def saved() -> bytes:
    """The file of a small network for this CPU, saved by this user."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        path = Path(folder, "net.lw")
        lw.compile(small_network(), "llvm cores=1", processes=1).save(path)
        return path.read_bytes()


def try_batch(kind: str, seed: int) -> Tried:
    """Try `BATCH` files of a kind: headers, kernels, bytes or caches."""
    rng, done = np.random.default_rng(seed), Tried()
    with tempfile.TemporaryDirectory() as folder:
        trial = _KINDS[kind](rng, Path(folder))
        for _ in range(BATCH):
            done.tried += 1
            try:
                done.refused += trial()
            except _Fault as fault:
                done.faults.append((fault.kind, f"{kind} {seed}: {fault}"))
            except Exception as error:
                done.faults.append(("another error", f"{kind} {seed}: {type(error).__name__}: {error}"))
    return done


class _Fault(Exception):
    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


def _loaded(path: Path, trusted: bool) -> Package | None:
    """The package in a file, which keeps to its arrays; None where it is refused as it should be."""
    try:
        package = load_package(path, trusted=trusted)
    except PackageError as error:
        if "\n" in str(error) or not str(error).startswith(str(path)):
            raise _Fault("not one sentence", str(error)) from error
        return None
    if (what := memory_violation(package)) is not None:
        raise _Fault("beyond its arrays", what)
    return package


def _headers(rng: np.random.Generator, folder: Path) -> Trial:
    """Random changes of the header, in a file that is trusted; what loads is run."""
    path = folder / "net.lw"
    path.write_bytes(saved())
    parts = parts_of(path)
    header = json.loads(parts["network.json"])

    def one() -> bool:
        changed = json.dumps(mutated(header, rng)).encode()
        package = _loaded(write_parts(path, {**parts, "network.json": changed}), trusted=True)
        if package is not None:
            _run(package)
        return package is None

    return one


def _run(package: Package) -> None:
    """Run a network once; it may be for another CPU, or larger than memory."""
    try:
        executor = lw.CompiledNetwork(package).executor()
    except PackageError:
        return
    executor(*(np.zeros(port.shape, port.dtype) for port in package.plan.inputs))


def _kernels(rng: np.random.Generator, folder: Path) -> Trial:
    """Random changes of what a kernel says of itself, in a file that is trusted, under digests that are right."""
    path = folder / "net.lw"
    path.write_bytes(saved())
    parts = parts_of(path)
    count = len(json.loads(parts["network.json"])["kernels"])

    def one() -> bool:
        number = int(rng.integers(count))
        magic, _, rest = parts[f"kernels/{number}"].partition(b"\n")
        text, _, code = rest.partition(b"\n")
        kernel = b"\n".join([magic, json.dumps(mutated(json.loads(text), rng)).encode(), code])

        def digested(header: Header) -> None:
            header["kernels"][number] = hashlib.sha256(kernel).hexdigest()

        changed = with_header({**parts, f"kernels/{number}": kernel}, digested)
        return _loaded(write_parts(path, changed), trusted=True) is None

    return one


def _bytes(rng: np.random.Generator, folder: Path) -> Trial:
    """Random bytes of the file changed, cut out or put in, most of them in the archive's directory."""
    path, data = folder / "net.lw", saved()
    path.write_bytes(data)
    directory, plan = data.index(b"PK\1\2"), load_package(path).plan

    def one() -> bool:
        path.write_bytes(_damaged(data, rng, directory))
        package = _loaded(path, trusted=bool(rng.integers(2)))
        if package is not None and package.plan != plan:
            raise _Fault("believed", "a file that is not what was saved")
        return package is None

    return one


def _damaged(data: bytes, rng: np.random.Generator, often_from: int = 0) -> bytes:
    made = bytearray(data)
    if rng.random() < 0.1:
        return data[: int(rng.integers(len(data)))]
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(often_from if rng.random() < 0.8 else 0, len(made)))
        size, choice = int(rng.integers(1, 30)), rng.random()
        if choice < 0.5:
            made[at] ^= 1 << int(rng.integers(8))
        elif choice < 0.7:
            made[at : at + 4] = int(rng.choice([0xFFFFFFFF, 0x7FFFFFFF, 0])).to_bytes(4, "little")
        elif choice < 0.85:
            del made[at : at + size]
        else:
            made[at:at] = rng.bytes(size)
        often_from = min(often_from, len(made) - 1)
    return bytes(made)


def _caches(rng: np.random.Generator, folder: Path) -> Trial:
    """Random bytes of an entry of the kernel cache: dropped with one line, or what was kept."""
    cache, key, kept = BinaryCache(folder / "cache"), ("key",), ("log", rng.bytes(300))
    cache.put(key, *kept)
    (entry,) = (folder / "cache").glob("*/*.bin")
    whole = entry.read_bytes()

    def one() -> bool:
        entry.write_bytes(_damaged(whole, rng))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = cache.get(key)
        if found not in (None, kept):
            raise _Fault("believed", "an entry that is not what was kept")
        notes = [str(each.message) for each in said if issubclass(each.category, CacheWarning)]
        if found is None and (len(notes) != 1 or "\n" in notes[0] or entry.exists()):
            raise _Fault("not one sentence", f"{notes}, entry left: {entry.exists()}")
        return found is None

    return one


_KINDS: dict[str, Callable[[np.random.Generator, Path], Trial]] = {
    "headers": _headers,
    "kernels": _kernels,
    "bytes": _bytes,
    "caches": _caches,
}
