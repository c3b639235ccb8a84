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


def trespass(package: Package) -> str | None:  # noqa: C901
    """Find, byte by byte, an access of a package beyond its arrays; None where it keeps to them.

    Every byte of the arena knows the tensor that was last written to it. Kernels are taken to touch what their
    signatures declare.
    """
    plan = package.plan
    owner = np.zeros(plan.arena_bytes + 1, np.int64)
    tensors: dict[int, tuple[str, int]] = {}
    fixed: set[int] = set()

    def write(place: Any, dtype: str, nbytes: int, where: str) -> str | None:
        if place.kind != "arena":
            return f"{where} writes to a constant"
        if not 0 <= place.number <= place.number + nbytes <= plan.arena_bytes:
            return f"{where} writes beyond the arena"
        stretch = owner[place.number : place.number + nbytes]
        if fixed & set(stretch.tolist()):
            return f"{where} writes over an input"
        tensors[len(tensors) + 1] = (dtype, nbytes)
        stretch[...] = len(tensors)
        return None

    def read(place: Any, dtype: str, nbytes: int, where: str) -> str | None:
        if place.kind == "constant":
            array = package.constants[place.number]
            return None if (array.dtype.name, array.nbytes) == (dtype, nbytes) else f"{where} misreads a constant"
        if not 0 <= place.number <= place.number + nbytes <= plan.arena_bytes:
            return f"{where} reads beyond the arena"
        found = set(owner[place.number : place.number + nbytes].tolist())
        whole = len(found) == 1 and tensors.get(found.pop()) == (dtype, nbytes)
        return None if whole or not nbytes else f"{where} reads what nobody wrote"

    def size(dtype: str, shape: Any) -> int:
        return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize

    wrong: list[str | None] = []
    for port in plan.inputs:
        wrong.append(write(port.place, port.dtype, size(port.dtype, port.shape), port.name))
        fixed.add(len(tensors))
    for number, step in enumerate(plan.steps):
        signature, where = signature_of(plan.kind, package.kernels[step.kernel]), f"step {number}"
        before = len(tensors)
        pairs = list(zip(signature.arguments, step.places, strict=True))
        for argument, place in pairs:
            shape = argument.shape if argument.packing is None else argument.packing.packed_shape
            if not argument.is_output:
                wrong.append(read(place, argument.dtype, size(argument.dtype, shape), where))
        read_bytes = [
            set(range(p.number, p.number + size(a.dtype, a.shape)))
            for a, p in pairs
            if not a.is_output and p.kind == "arena"
        ]
        touched = [(p, a.dtype, size(a.dtype, a.shape)) for a, p in pairs if a.is_output]
        touched += [(p, "scratch", n) for p, n in zip(step.workspaces, signature.workspaces, strict=True)]
        for place, dtype, nbytes in touched:
            mine = (
                owner[place.number : place.number + nbytes]
                if place.kind == "arena" and place.number >= 0
                else owner[:0]
            )
            bytes_of = set(range(place.number, place.number + nbytes)) if place.kind == "arena" else set()
            if (mine > before).any() or any(bytes_of & r for r in read_bytes):
                wrong.append(f"{where} writes where it reads or writes")
            wrong.append(write(place, dtype, nbytes, where))
    wrong += [read(port.place, port.dtype, size(port.dtype, port.shape), port.name) for port in plan.outputs]
    return next((text for text in wrong if text is not None), None)
