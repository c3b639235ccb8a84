"""Matrix intrinsics: instructions that multiply small matrices, with who holds which element of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from xdsl.ir import Attribute

from .cpu_models import features_of_cpu
from .element import DTYPES, element_bytes
from .index import ZERO, Div, IndexExpr, Mod, axis
from .index_text import parse_index
from .intrinsics_cpu import CPU_INSTRUCTIONS, CpuInstruction
from .intrinsics_cuda import CUDA_INSTRUCTIONS, MATRIX_ROWS, REGISTER_BYTES, CudaInstruction
from .names import check_name
from .target import Target

LEAST_TILE_CYCLES = 9
"""Cycles between two products of tiles with few rows; more rows take a cycle each. On a Xeon of family 6, model 207, at
an assumed 8/7 of its time stamps: 16 of 16 rows, 14.5 of 14, 12.5 of 12, 11 of 10, 10 of 8 and 9 of 2, whatever their
columns and groups of k."""

AXES = (I_AXIS, J_AXIS, K_AXIS) = "i", "j", "k"
"""Axes of an intrinsic, `c[i, j] += a[i, k] * b[k, j]`."""


@dataclass(frozen=True)
class Fragment:
    """The part of a matrix that each thread holds: `lane` holds an element, at `held` of its registers.

    Both are index expressions over the matrix's axes, of `i`, `j` and `k`; the digits of `held` are those of a position
    among the elements that a thread holds, the outermost first. `element` is a type by NumPy's name.
    """

    element: str
    lane: IndexExpr
    held: tuple[IndexExpr, ...]

    @property
    def type(self) -> Attribute:
        """The element type in the IR."""
        return DTYPES[self.element]

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return element_bytes(self.type)


class Digit(NamedTuple):
    """A digit of a row or column of `c`: its step and extent, and the lanes it moves by, or its number among `held`."""

    step: int
    extent: int
    lanes: int = 0
    held: int = -1


@dataclass(frozen=True)
class Intrinsic:
    """One instruction, or a few, of `threads` threads: `c[i, j] += a[i, k] * b[k, j]` for i < m, j < n and k < k.

    Factors are widened to the type of the sums before they are multiplied. `since` is the least compute capability of
    a GPU, `features` are those that a CPU needs, by LLVM's names. `cycles` are those between two of them, on one of a
    multiprocessor's four schedulers, on all four for one of a warp group, or on a core; the manuals' rates say it for a
    GPU. `exact` ones are of GPUs of capability `since` alone, whose architecture NVIDIA calls `sm_90a`.

    `code`, for CUDA: C statements on the registers `c0, c1, ...` of the sums, and `a0, ...`, `b0, ...` of 32 bits each.
    For a CPU the name of LLVM's intrinsic of (c, a, b), with the type that it takes factors in: `... : <16 x i32>`, or
    `... : x86_amx` for tiles; or LLVM IR on `%c`, `%a` and `%b`, vectors of what is held of them, that ends with `ret`.
    There `threads` is 1, and each matrix lies in memory as it is held: in one stretch, or, of `tiles`, in rows of even
    distance. An `a` of fewer bytes than `b` is repeated to as many. Tiles may be cut: `cut_to`.

    One that `reads_shared` reads its factors from shared memory by itself, while its threads go on: its fragment of
    `b` is a type alone, and its code is on `a` and `b`, which are descriptors of 64 bits, with the words `{a_turned}`
    and `{b_turned}` for 1 where rows of the matrix are neighbours in memory. Its `held_code` is that on an `a` that
    threads hold, in registers `a0, ...`; empty where it takes none, and the fragment of `a` is a type alone as well.
    Code with the words `{adds}` and `{sums}`, for 1 and `+`, may write sums instead of adding to them, for 0 and `=`.

    One that `rounds` takes factors that `te.round_to` rounds, to "tf32", and does that itself; where it also
    `reads_shared`, it cuts them off, and the copy engine rounds what it brings.
    """

    name: str
    target: str
    m: int
    n: int
    k: int
    a: Fragment
    b: Fragment
    c: Fragment
    threads: int
    code: str
    since: int = 0
    features: tuple[str, ...] = ()
    cycles: float = 1
    tiles: bool = False
    exact: bool = False
    reads_shared: bool = False
    held_code: str = ""
    rounds: str = ""

    def verify(self) -> None:
        """ValueError unless each element of each matrix has a place of its own, and no place is left empty."""
        check_name("an intrinsic", self.name)
        for operand in self.held_operands:
            wanted = set(product(range(self.threads), range(self.elements(operand) // self.threads)))
            if set(self.places(operand)) != wanted:
                rule = f"the elements of {operand} and the places of {self.threads} threads are not one to one"
                raise ValueError(f"intrinsic '{self.name}': {rule}")

    # -- shapes -------------------------------------------------------------------------------------------------------

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each axis."""
        return {I_AXIS: self.m, J_AXIS: self.n, K_AXIS: self.k}

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one of them."""
        return self.m * self.n * self.k

    def fragment(self, operand: str) -> Fragment:
        """The fragment of `a`, `b` or `c`."""
        return {"a": self.a, "b": self.b, "c": self.c}[operand]

    def cut_to(self, m: int, n: int, k: int) -> Intrinsic | None:
        """One on tiles of fewer rows and columns, and of fewer groups of k; None where there is none."""
        sizes, most = (m, n, k), self.extents.values()
        if (
            not self.tiles
            or k % self.held_extents("b")[-1]
            or any(not 1 <= x <= y for x, y in zip(sizes, most, strict=True))
        ):
            return None
        name = self.name.replace(_sizes(self.m, self.n, self.k), _sizes(*sizes))
        return replace(self, name=name, m=m, n=n, k=k, cycles=max(m, LEAST_TILE_CYCLES))

    def rows(self, operand: str) -> int:
        """Rows of even distance that a matrix lies in: one stretch, or those of a tile."""
        return self.held_extents(operand)[0] if self.tiles else 1

    @property
    def may_start(self) -> bool:
        """True for one that may write sums of its product alone, whatever was in the registers before."""
        return "{adds}" in self.code

    @property
    def held_operands(self) -> str:
        """The matrices that threads hold, or may hold, in registers."""
        if not self.reads_shared:
            return "abc"
        return "ac" if self.held_code else "c"

    def axes(self, operand: str) -> tuple[str, str]:
        """The rows and columns of `a` (i, k), of `b` (j, k) or of `c` (i, j)."""
        return {"a": (I_AXIS, K_AXIS), "b": (J_AXIS, K_AXIS), "c": (I_AXIS, J_AXIS)}[operand]

    def elements(self, operand: str) -> int:
        """Elements of a matrix."""
        return prod(self.extents[x] for x in self.axes(operand))

    def held_extents(self, operand: str) -> tuple[int, ...]:
        """The extents of the digits by which a thread's elements are told apart."""
        return tuple(e.bounds(self._ranges)[1] + 1 for e in self.fragment(operand).held)

    @property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        return {name: (0, extent - 1) for name, extent in self.extents.items()}

    def digits(self, name: str) -> list[Digit]:
        """The digits of `i` or `j`, the outermost first: those of a thread's sums, and of the lanes in between."""
        held = zip(self.c.held, self.held_extents("c"), strict=True)
        own = [Digit(step, n, held=k) for k, (e, n) in enumerate(held) for x, step in [_digit(e)] if x == name]
        found: list[Digit] = []
        above = self.extents[name]
        for digit in (*sorted(own, reverse=True), None):
            below = digit.step * digit.extent if digit is not None else 1
            if above > below:
                lanes = self.c.lane.evaluate(dict.fromkeys(AXES, 0) | {name: below})
                found.append(Digit(below, above // below, lanes=lanes))
            if digit is not None:
                found.append(digit)
                above = digit.step
        return found

    # -- places -------------------------------------------------------------------------------------------------------

    def place(self, operand: str, row: int, column: int) -> tuple[int, int]:
        """The lane that holds an element, and its position among what this thread holds."""
        lane, position = self._place(operand, row, column)
        return int(lane), int(position)

    def _place(self, operand: str, row: Any, column: Any) -> tuple[Any, Any]:
        """The same of one element, or of arrays of them."""
        values = dict.fromkeys(AXES, 0) | dict(zip(self.axes(operand), (row, column), strict=True))
        fragment, position = self.fragment(operand), 0
        for digit, extent in zip(fragment.held, self.held_extents(operand), strict=True):
            position = position * extent + digit.evaluate(values)
        return fragment.lane.evaluate(values), position

    def places(self, operand: str) -> Mapping[tuple[int, int], tuple[int, int]]:
        """The elements of a matrix by the lane and the position that hold them; found once for each intrinsic."""
        return _places(self, operand)

    def registers(self, operand: str) -> int:
        """Registers of 32 bits that a thread holds a matrix in."""
        return self.elements(operand) // self.threads * self.fragment(operand).bytes // REGISTER_BYTES

    # -- matrices of 16-byte rows -------------------------------------------------------------------------------------

    def matrix_place(self, operand: str, lane: IndexExpr, turned: bool) -> tuple[IndexExpr, IndexExpr]:
        """The row and the `k` of `a` or `b` that a lane names when 8 x 8 matrices of 16-byte rows are loaded.

        Lane `8 * m + r` names row r of matrix m, and register m gets it. `turned` where memory has `k` along its rows.
        """
        row_name, _ = self.axes(operand)
        digits, extents = self.fragment(operand).held[:-1], self.held_extents(operand)[:-1]
        row, k, matrix = ZERO, ZERO, lane // MATRIX_ROWS
        for digit, extent in zip(reversed(digits), reversed(extents), strict=True):
            name, step = _digit(digit)
            value = matrix % extent * step
            matrix = matrix // extent
            row, k = (row + value, k) if name == row_name else (row, k + value)
        within = lane % MATRIX_ROWS
        return (row, k + within) if turned else (row + within, k)

    @property
    def is_loaded_as_matrices(self) -> bool:
        """True where registers of `a` and `b` are those that loading 8 x 8 matrices of 16-byte rows gives."""
        return not self.reads_shared and all(_has_matrices(self, operand) for operand in "ab")

    # -- targets ------------------------------------------------------------------------------------------------------

    def why_not(self, target: Target) -> str | None:
        """Say why a target does not have it; None where it does."""
        if target.kind != self.target:
            return f"is one of {self.target}, the target is {target.kind}"
        if target.compute_capability < self.since:
            return f"needs compute capability {self.since}, the target has {target.compute_capability}"
        if self.exact and target.compute_capability != self.since:
            return f"is of compute capability {self.since} alone (sm_{self.since}a), the target has " + str(
                target.compute_capability
            )
        has = features_of_cpu(target.model, target.arch, target.features) if self.features else ()
        missing = [name for name in self.features if name not in has]
        rule = f"needs a CPU with {', '.join(missing)}, the target's model is {target.model}"
        return f"{rule}: name another, or features=+{',+'.join(missing)}" if missing else None


@cache
def _has_matrices(intrinsic: Intrinsic, operand: str) -> bool:
    fragment = intrinsic.fragment(operand)
    row, _ = intrinsic.axes(operand)
    per = REGISTER_BYTES // fragment.bytes
    lane = axis(row) % MATRIX_ROWS * 4 + axis(K_AXIS) % (4 * per) // per
    return (
        intrinsic.threads == 32
        and intrinsic.registers(operand) in (1, 2, 4)
        and fragment.lane == lane
        and fragment.held[-1] == axis(K_AXIS) % per
    )


@cache
def _places(intrinsic: Intrinsic, operand: str) -> Mapping[tuple[int, int], tuple[int, int]]:
    rows, columns = np.indices([intrinsic.extents[x] for x in intrinsic.axes(operand)]).reshape(2, -1)
    places = np.broadcast_arrays(*intrinsic._place(operand, rows, columns), rows)[:2]
    keys, elements = (zip(*(part.tolist() for part in pair), strict=True) for pair in (places, (rows, columns)))
    return MappingProxyType(dict(zip(keys, elements, strict=True)))


@dataclass(frozen=True)
class Family:
    """Intrinsics that differ in nothing but their columns, whose number their names hold, the fewest columns first."""

    members: tuple[Intrinsic, ...]

    @property
    def widest(self) -> Intrinsic:
        """The member with the most columns, which stands for all where columns do not matter."""
        return self.members[-1]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of each member."""
        return tuple(x.n for x in self.members)

    @property
    def name_parts(self) -> tuple[str, str]:
        """The text before and behind the number of columns in names; all of it, and "", for a single member."""
        if len(self.members) == 1:
            return self.widest.name, ""
        return without_columns(self.widest)

    @property
    def name(self) -> str:
        """The names without their columns: `wgmma.m64k16.f16`; a single member's own."""
        before, after = self.name_parts
        return f"{before.removesuffix('n')}{after}" if after else before

    def of_columns(self, wanted: Iterable[int]) -> Family:
        """The members with some of the columns."""
        kept = set(wanted)
        return Family(tuple(x for x in self.members if x.n in kept))


def without_columns(intrinsic: Intrinsic) -> tuple[str, str]:
    """An intrinsic's name before and behind its number of columns; "" behind where the name does not hold it."""
    before, found, after = intrinsic.name.partition(f"n{intrinsic.n}k")
    return (f"{before}n", f"k{after}") if found else (intrinsic.name, "")


def families(found: Iterable[Intrinsic]) -> list[Family]:
    """Intrinsics by family: those of warp groups, whose columns a schedule leaves open; others are alone."""
    together: dict[object, list[Intrinsic]] = {}
    for x in found:
        key = (without_columns(x), x.threads, x.m, x.k) if x.reads_shared else x.name
        together.setdefault(key, []).append(x)
    return [Family(tuple(sorted(members, key=lambda x: x.n))) for members in together.values()]


def _digit(expr: IndexExpr) -> tuple[str, int]:
    """The axis and the step of a digit: `i floordiv 8` is one of `i`, in steps of 8, `i floordiv 8 mod 2` as well."""
    (name,) = expr.axes()
    ((atom, _),) = expr.terms
    if isinstance(atom, Mod):
        return _digit(atom.expr)
    return name, atom.divisor if isinstance(atom, Div) else 1


def fragment(element: str, lane: str, *held: str) -> Fragment:
    """A fragment from index expressions as text: `fragment("float32", "i mod 8 * 4", "i floordiv 8", "j mod 2")`."""
    return Fragment(element, parse_index(lane), tuple(parse_index(digit) for digit in held))


# -- those that there are ----------------------------------------------------------------------------------------------


def _of_cpu(row: CpuInstruction) -> Intrinsic:
    return Intrinsic(
        row.name,
        "llvm",
        row.m,
        row.n,
        row.k,
        fragment(row.a, "0", *row.a_held),
        fragment(row.b, "0", *row.b_held),
        fragment(row.c, "0", *(["i"] if row.m > 1 else []), "j"),
        threads=1,
        code=row.code,
        features=row.features,
        cycles=row.cycles,
        tiles=row.tiles,
    )


def _of_cuda(row: CudaInstruction) -> Intrinsic:
    return Intrinsic(
        row.name,
        "cuda",
        row.m,
        row.n,
        row.k,
        fragment(*row.a),
        fragment(*row.b),
        fragment(*row.c),
        threads=row.threads,
        code=row.code,
        since=row.since,
        cycles=row.cycles,
        exact=row.exact,
        reads_shared=row.reads_shared,
        held_code=row.held_code,
        rounds=row.rounds,
    )


@cache
def _own() -> dict[str, Intrinsic]:
    return {x.name: x for x in (*map(_of_cuda, CUDA_INSTRUCTIONS), *map(_of_cpu, CPU_INSTRUCTIONS))}


_REGISTERED: dict[str, Intrinsic] = {}
"""Filled by `register_intrinsic`, by name."""


def register_intrinsic(intrinsic: Intrinsic) -> Intrinsic:
    """Add an intrinsic, which schedules may name from now on; one of the same name takes its place.

    TypeError where it is none, ValueError for the name of one that comes with loopwright, and where its fragments are
    wrong (`verify`).
    """
    if not isinstance(intrinsic, Intrinsic):
        raise TypeError(f"register_intrinsic takes an Intrinsic, got {type(intrinsic).__name__}")
    intrinsic.verify()
    if intrinsic.name in _own() or _cut(intrinsic.name) is not None:
        raise ValueError(f"intrinsic '{intrinsic.name}' comes with loopwright; give yours another name")
    _REGISTERED[intrinsic.name] = intrinsic
    return intrinsic


def intrinsics(target: Target | None = None) -> list[Intrinsic]:
    """The intrinsics there are, by name, of tiles the whole ones; with a target those that it has."""
    if target is not None and not isinstance(target, Target):
        raise TypeError(
            f"intrinsics takes a Target, as lw.resolve_target({target!r}) gives, got {type(target).__name__}"
        )
    found = sorted({**_own(), **_REGISTERED}.values(), key=lambda x: x.name)
    return found if target is None else [x for x in found if x.why_not(target) is None]


def find_intrinsic(name: str) -> Intrinsic | None:
    """The intrinsic of a name; None where there is none."""
    return _own().get(name) or _REGISTERED.get(name) or _cut(name)


@cache
def _cut(name: str) -> Intrinsic | None:
    """One of tiles that are cut, such as `amx.m14n16k32.bf16`."""
    found = _SIZES.search(name)
    if found is None:
        return None
    cut = (x.cut_to(*map(int, found.groups())) for x in _own().values())
    return next((x for x in cut if x is not None and x.name == name), None)


_SIZES = re.compile(r"m(\d+)n(\d+)k(\d+)")


def _sizes(m: int, n: int, k: int) -> str:
    return f"m{m}n{n}k{k}"
