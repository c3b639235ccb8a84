"""Files of compiled networks taken apart, changed and put together again; and an oracle for the plans in them."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw
from loopwright.graph.runtime.package import Package
from loopwright.graph.runtime.signature import signature_of

Parts = dict[str, bytes]
Header = dict[str, Any]
_ODD: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    255,
    256,
    512,
    1 << 31,
    1 << 40,
    1 << 61,
    1 << 63,
    1 << 200,
    -256,
    0.5,
    float("nan"),
    True,
    None,
    "",
    "object",
    "O",
    "float32",
    "V8",
    "int8",
    "arena",
    "constant",
    "\n\x1b[31m",
    [],
    {},
    [[]],
    "llvm",
    "cuda",
)


def small_network() -> lw.Network:
    """Two inputs, three outputs of which one is a constant, seven steps and more than one constant."""
    net, random = lw.Network("small"), np.random.default_rng(0)
    x, other = net.input("data", (1, 4, 6, 6)), net.input("other", (5,))
    y = net.relu(net.conv2d(x, random.standard_normal((8, 4, 3, 3), np.float32), padding=1))
    z = net.dense(net.flatten(net.global_avg_pool(y)), np.ones((5, 8), np.float32))
    z = net.softmax(net.softmax(net.add(net.softmax(z), other)))
    fixed = net.constant(np.arange(6, dtype=np.float32), "fixed")
    net.output(z, y, fixed, names=["prob", "features", "fixed"])
    return net


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_parts(path: Path, parts: Parts) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return path


def with_header(parts: Parts, change: Callable[[Header], object]) -> Parts:
    """The parts with a changed header."""
    header = json.loads(parts["network.json"])
    change(header)
    return {**parts, "network.json": json.dumps(header).encode()}


def grow(header: Header) -> None:
    """An input that no step reads, of 2^45 bytes, behind all the others."""
    plan = header["plan"]
    place = {"kind": "arena", "number": plan["arena_bytes"]}
    plan["inputs"].append({"name": "huge", "dtype": "float32", "shape": [1 << 43], "place": place})
    plan["arena_bytes"] += 1 << 45


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in nested lists and objects."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield value, key
        yield from _places(each)


def mutated(header: Header, rng: np.random.Generator) -> Header:
    """A copy of a header with one to three random changes: values, lists, fields; mostly such as keep their types."""
    changed = copy.deepcopy(header)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(changed))
        container, key = places[int(rng.integers(len(places)))]
        value = container[key]
        others = [c[k] for c, k in places if type(c[k]) is type(value)]
        choice = rng.random()
        if choice < 0.45:
            container[key] = copy.deepcopy(others[int(rng.integers(len(others)))])
        elif choice < 0.65 and type(value) is int:
            container[key] = value + int(rng.choice([-256, -1, 1, 4, 256, 4096])) * int(rng.integers(1, 4))
        elif choice < 0.75 and isinstance(value, list) and value:
            value.insert(int(rng.integers(len(value) + 1)), copy.deepcopy(value[int(rng.integers(len(value)))]))
        elif choice < 0.85 and isinstance(value, list) and value:
            value.pop(int(rng.integers(len(value))))
        elif choice < 0.9:
            del container[key]
        else:
            container[key] = copy.deepcopy(_ODD[int(rng.integers(len(_ODD)))])
    return changed


def memory_violation(package: Package) -> str | None:
    """Find, byte by byte, an access of a package beyond its arrays; None where it keeps to them.

    Kernels are taken to touch what their signatures declare.
    """
    plan, arena = package.plan, _Arena(package)
    for port in plan.inputs:
        arena.write(port.place, port.dtype, _bytes(port.dtype, port.shape), port.name)
        arena.fixed.add(len(arena.tensors))
    for number in range(len(plan.steps)):
        arena.run(number)
    for port in plan.outputs:
        arena.read(port.place, port.dtype, _bytes(port.dtype, port.shape), port.name)
    return arena.wrong[0] if arena.wrong else None


class _Arena:
    """The arena of a plan while it runs: every byte knows the tensor that was last written to it."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.size = package.plan.arena_bytes
        self.owner = np.zeros(self.size + 1, np.int64)
        self.tensors: dict[int, tuple[str, int]] = {}
        self.fixed: set[int] = set()
        """The tensors that are inputs."""
        self.wrong: list[str] = []

    def write(self, place: Any, dtype: str, nbytes: int, where: str) -> None:
        if place.kind != "arena":
            self.wrong.append(f"{where} writes to a constant")
            return
        if not 0 <= place.number <= place.number + nbytes <= self.size:
            self.wrong.append(f"{where} writes beyond the arena")
            return
        stretch = self.owner[place.number : place.number + nbytes]
        if self.fixed & set(stretch.tolist()):
            self.wrong.append(f"{where} writes over an input")
            return
        self.tensors[len(self.tensors) + 1] = (dtype, nbytes)
        stretch[...] = len(self.tensors)

    def read(self, place: Any, dtype: str, nbytes: int, where: str) -> None:
        if place.kind == "constant":
            array = self.package.constants[place.number]
            if (array.dtype.name, array.nbytes) != (dtype, nbytes):
                self.wrong.append(f"{where} misreads a constant")
            return
        if not 0 <= place.number <= place.number + nbytes <= self.size:
            self.wrong.append(f"{where} reads beyond the arena")
            return
        found = set(self.owner[place.number : place.number + nbytes].tolist())
        held = self.tensors.get(found.pop(), ("", 0)) if len(found) == 1 else ("", 0)
        if nbytes and (held[0] != dtype or held[1] < nbytes if place.kind == "part" else held != (dtype, nbytes)):
            self.wrong.append(f"{where} reads what nobody wrote")

    def run(self, number: int) -> None:
        """Read and write as a step's kernel declares."""
        step, where = self.package.plan.steps[number], f"step {number}"
        signature = signature_of(self.package.plan.kind, self.package.kernels[step.kernel])
        before = len(self.tensors)
        pairs = list(zip(signature.arguments, step.places, strict=True))
        inputs = [(a, p) for a, p in pairs if not a.is_output]
        for argument, place in inputs:
            shape = argument.shape if argument.packing is None else argument.packing.packed_shape
            self.read(place, argument.dtype, _bytes(argument.dtype, shape), where)
        read = [_addresses(p, _bytes(a.dtype, a.shape)) for a, p in inputs]
        touched = [(p, a.dtype, _bytes(a.dtype, a.shape)) for a, p in pairs if a.is_output]
        touched += [(p, "scratch", n) for p, n in zip(step.workspaces, signature.workspaces, strict=True)]
        for place, dtype, nbytes in touched:
            inside = place.kind == "arena" and place.number >= 0
            mine = self.owner[place.number : place.number + nbytes] if inside else self.owner[:0]
            if (mine > before).any() or any(_addresses(place, nbytes) & r for r in read):
                self.wrong.append(f"{where} writes where it reads or writes")
            self.write(place, dtype, nbytes, where)


def _bytes(dtype: str, shape: Any) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def _addresses(place: Any, nbytes: int) -> set[int]:
    """The bytes of the arena that a tensor takes; none of a constant."""
    return set(range(place.number, place.number + nbytes)) if place.kind != "constant" else set()
