"""A plan checked whole before anything of it runs: what each step touches is there, has been written, and fits.

What holds after it: a kernel that keeps to the arrays that its signature declares touches nothing but these, and no
constant, input of the network or tensor that is still needed is written over.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from ...backends.signature import Argument
from ...dialects.numpy_types import ELEMENT_TYPES, teach_numpy
from ...storage.typed_json import shown
from .memory import footprint
from .plan import ALIGNMENT, ConstantInfo, Place, Plan, PlanError, Port
from .signature import Signature

_TARGET = re.compile(r"(llvm|cuda|opencl)( [a-z0-9_]+=[!-~]+)*")
_MOST_EXTENTS = 32
"""NumPy's limit of dimensions before version 2."""
_MOST_ELEMENTS = 1 << 48
"""More than addresses of 64-bit processors reach (48 bits), so that sizes in bytes fit 64 bits."""


@dataclass(frozen=True)
class Elements:
    """The type and number of elements that a stretch of memory holds, or must hold."""

    dtype: str
    count: int

    @property
    def nbytes(self) -> int:
        return self.count * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.count} x {self.dtype}"


def elements(dtype: str, shape: Sequence[int], where: str) -> Elements:
    """Return the elements of an array that a file describes; PlanError for a type or a shape that there is not."""
    if len(shape) > _MOST_EXTENTS or not all(extent >= 0 for extent in shape) or prod(shape) > _MOST_ELEMENTS:
        raise PlanError(f"{where} has the shape {shown(shape)}")
    if dtype not in ELEMENT_TYPES:
        raise PlanError(f"{where} has elements of an unknown type {shown(dtype)}")
    try:
        teach_numpy(dtype)
    except ValueError as error:
        raise PlanError(f"{where}: {error}") from None
    return Elements(dtype, prod(shape))


def check_target(plan: Plan) -> None:
    """PlanError where a plan is for no kind of target that there is."""
    if not _TARGET.fullmatch(plan.target):
        raise PlanError(f"there is no target {shown(plan.target)}")


def check_plan(plan: Plan, signatures: Sequence[Signature], constants: Sequence[Elements]) -> None:
    """PlanError where running a plan would do what it must not.

    `signatures` are those of its kernels, `constants` what its constants hold; both have one entry for each.
    """
    numbers = [plan.arena_bytes, plan.tensor_bytes, *(n for k in plan.kernels for n in (k.flops, k.bytes_moved))]
    if min(numbers) < 0:
        raise PlanError(f"a number of bytes or operations is {min(numbers)}")
    for number, (info, kept) in enumerate(zip(plan.constants, constants, strict=True)):
        _check_constant(info, kept, f"constant {number}")
    _check_names(plan)
    _Run(plan, signatures, constants).check()


def _check_constant(info: ConstantInfo, kept: Elements, where: str) -> None:
    original = elements(info.dtype, info.shape, where)
    if len(info.axes) != (len(info.shape) if info.layout else 0):
        raise PlanError(f"{where} has {len(info.axes)} axes for the shape {shown(info.shape)}")
    if kept.dtype != info.dtype or (kept.count < original.count if info.layout else kept.count != original.count):
        raise PlanError(f"{where} is described as {original}, and holds {kept}")


def _check_names(plan: Plan) -> None:
    for ports in (plan.inputs, plan.outputs):
        seen: set[str] = set()
        for port in ports:
            if port.name in seen:
                raise PlanError(f"two of its inputs, or two of its outputs, are called {shown(port.name)}")
            seen.add(port.name)


@dataclass(frozen=True)
class _Stretch:
    """Bytes of the arena that hold elements; those of inputs are never written over."""

    start: int
    held: Elements
    is_input: bool = False

    @property
    def end(self) -> int:
        return self.start + max(1, self.held.nbytes)

    def meets(self, other: _Stretch) -> bool:
        return self.start < other.end and other.start < self.end


class _Arena:
    """The arena's contents: stretches that do not overlap, in order."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._starts: list[int] = []
        self._stretches: list[_Stretch] = []
        self.used_bytes = 0

    def stretch(self, place: Place, held: Elements, where: str, is_input: bool = False) -> _Stretch:
        """Return a stretch at a place, if that is in the arena."""
        start, size = place.number, footprint(held.nbytes)
        if start < 0 or start % ALIGNMENT or start + size > self._nbytes:
            raise PlanError(
                f"{where} lies at arena {start}, where {held.nbytes} bytes do not fit into {self._nbytes} or are not "
                f"on a multiple of {ALIGNMENT}"
            )
        self.used_bytes = max(self.used_bytes, start + size)
        return _Stretch(start, held, is_input)

    def at(self, start: int) -> Elements | None:
        """Return what lies from a byte on."""
        position = bisect_left(self._starts, start)
        found = position < len(self._starts) and self._starts[position] == start
        return self._stretches[position].held if found else None

    def holds(self, part: _Stretch) -> bool:
        """True where a stretch is part of one that holds elements of its type, or of several of them side by side."""
        position = bisect_right(self._starts, part.start) - 1
        if position < 0:
            return False
        end = self._stretches[position].start
        for around in islice(self._stretches, position, None):
            if around.start != end or around.held.dtype != part.held.dtype:
                return False
            end = around.end
            if part.end <= end:
                return True
        return False

    def put(self, stretch: _Stretch, where: str) -> None:
        """Write a stretch, which drops every stretch that it overlaps."""
        first = self._first_ending_behind(stretch.start)
        last = bisect_left(self._starts, stretch.end)
        if any(held.is_input for held in self._stretches[first:last]):
            raise PlanError(f"{where} would write over an input of the network")
        self._stretches[first:last] = [stretch]
        self._starts[first:last] = [stretch.start]

    def remove(self, stretch: _Stretch) -> None:
        """Forget what a stretch holds."""
        position = bisect_left(self._starts, stretch.start)
        del self._stretches[position], self._starts[position]

    def _first_ending_behind(self, start: int) -> int:
        position = bisect_right(self._starts, start)
        return position - 1 if position and self._stretches[position - 1].end > start else position


class _Branches:
    """Bytes that steps of branches touch: what one writes, no other of those beside it reads or writes."""

    def __init__(self, plan: Plan) -> None:
        self._branch_of: dict[str, tuple[list[Use], int]] = {}
        self._beside: list[list[Use]] = []
        end = 0
        for bounds in plan.branches:
            if sorted({*bounds}) != [*bounds] or len(bounds) < 2 or bounds[0] < end or bounds[-1] > len(plan.steps):
                raise PlanError(f"steps {shown(bounds)} are no branches of {len(plan.steps)} steps")
            end = bounds[-1]
            uses: list[Use] = []
            self._beside.append(uses)
            for branch, steps in enumerate(pairwise(bounds)):
                self._branch_of.update((f"step {step}", (uses, branch)) for step in range(*steps))

    def add(self, where: str, read: Sequence[_Stretch], written: Sequence[_Stretch]) -> None:
        """Note what a step touches."""
        if where in self._branch_of:
            uses, branch = self._branch_of[where]
            uses += [Use(each.start, each.end, branch, False) for each in read]
            uses += [Use(each.start, each.end, branch, True) for each in written]

    def check(self) -> None:
        """PlanError where a branch would write over what another one uses."""
        for uses in self._beside:
            if found := branches_that_meet(uses):
                rule = "would write to the same bytes at once, or read them"
                raise PlanError(f"branches {found[0]} and {found[1]} {rule}")


class Use(NamedTuple):
    """Bytes `[start, end)` that a branch writes or reads."""

    start: int
    end: int
    branch: int
    is_write: bool


def branches_that_meet(uses: Iterable[Use]) -> tuple[int, int] | None:
    """Return two branches of which one writes bytes that the other uses; None where there are none.

    In the order of their starts, a use meets one before it where that ends behind its start: the last end tells, and
    the last one of another branch where that is the use's own.
    """
    all_ends: list[tuple[int, int]] = []
    written_ends: list[tuple[int, int]] = []
    for use in sorted(uses):
        for end, branch in all_ends if use.is_write else written_ends:
            if branch != use.branch and end > use.start:
                return min(branch, use.branch), max(branch, use.branch)
        all_ends = _two_last(all_ends, use)
        if use.is_write:
            written_ends = _two_last(written_ends, use)
    return None


def _two_last(ends: Iterable[tuple[int, int]], use: Use) -> list[tuple[int, int]]:
    """Return the last end of two branches each, with the branch: of those given, or a use's own."""
    by_branch = {branch: end for end, branch in ends}
    by_branch[use.branch] = max(use.end, by_branch.get(use.branch, use.end))
    return sorted(((end, branch) for branch, end in by_branch.items()), reverse=True)[:2]


class _Run:
    """Follows one run of a plan without running it."""

    def __init__(self, plan: Plan, signatures: Sequence[Signature], constants: Sequence[Elements]) -> None:
        self._plan = plan
        self._signatures = signatures
        self._constants = constants
        self._arena = _Arena(plan.arena_bytes)
        self._branches = _Branches(plan)

    def check(self) -> None:
        """PlanError for the first thing that is wrong."""
        for port in self._plan.inputs:
            self._take(port)
        for number, step in enumerate(self._plan.steps):
            where = f"step {number}"
            if not 0 <= step.kernel < len(self._signatures):
                raise PlanError(f"{where} calls kernel {step.kernel}, there are {len(self._signatures)}")
            signature = self._signatures[step.kernel]
            counts = (len(step.places), len(step.workspaces))
            wanted = (len(signature.arguments), len(signature.workspaces))
            if counts != wanted:
                raise PlanError(
                    f"{where} passes {counts[0]} tensors and {counts[1]} workspaces to a kernel that takes {wanted[0]} "
                    f"and {wanted[1]}"
                )
            self._step(where, signature, step.places, step.workspaces)
        self._branches.check()
        for port in self._plan.outputs:
            if port.place.kind == "part":
                raise PlanError(f"output {shown(port.name)} is a part of a tensor")
            self._read(port.place, self._of_port(port), f"output {shown(port.name)}")
        if self._arena.used_bytes != self._plan.arena_bytes:
            raise PlanError(f"its arena has {self._plan.arena_bytes} bytes, {self._arena.used_bytes} are used")

    def _of_port(self, port: Port) -> Elements:
        return elements(port.dtype, port.shape, shown(port.name))

    def _take(self, port: Port) -> None:
        where, held = f"input {shown(port.name)}", self._of_port(port)
        self._require_arena(port.place, where)
        self._arena.put(self._arena.stretch(port.place, held, where, is_input=True), where)

    def _step(self, where: str, signature: Signature, places: Sequence[Place], workspaces: Sequence[Place]) -> None:
        read: list[_Stretch] = []
        written: list[_Stretch] = []
        pairs = list(zip(signature.arguments, places, strict=True))
        for argument, place in pairs:
            held = wanted_by(argument, where)
            if argument.is_output:
                written.append(self._written(place, held, where))
                continue
            if argument.packing is not None and not place.is_constant:
                raise PlanError(f"{where} passes a tensor where its kernel takes a packed constant")
            self._read(place, held, where)
            if not place.is_constant:
                read.append(self._arena.stretch(place, held, where))
        scratch = [
            self._written(place, Elements("int8", nbytes), where)
            for place, nbytes in zip(workspaces, signature.workspaces, strict=True)
        ]
        _check_apart(read, [*written, *scratch], where)
        self._branches.add(where, read, [*written, *scratch])
        for stretch in (*written, *scratch):
            self._arena.put(stretch, where)
        for stretch in scratch:
            self._arena.remove(stretch)

    def _written(self, place: Place, held: Elements, where: str) -> _Stretch:
        if place.kind != "part":
            self._require_arena(place, where)
        return self._arena.stretch(place, held, where)

    def _require_arena(self, place: Place, where: str) -> None:
        if place.kind != "arena":
            raise PlanError(f"{where} would write to {shown(place.kind)} {place.number}, which is not in the arena")

    def _read(self, place: Place, wanted: Elements, where: str) -> None:
        if place.is_constant and 0 <= place.number < len(self._constants):
            found: Elements | None = self._constants[place.number]
        elif place.kind in ("arena", "part"):
            stretch = self._arena.stretch(place, wanted, where)
            found = self._arena.at(place.number)
            if (place.kind == "part" or (found is not None and found.count < wanted.count)) and self._arena.holds(
                stretch
            ):
                found = wanted
        else:
            raise PlanError(f"{where} reads {shown(place.kind)} {place.number}, which there is not")
        if found != wanted:
            what = f"{found} lie" if found is not None else "nothing was written"
            raise PlanError(f"{where} reads {wanted} at {place.kind} {place.number}, where {what}")


def wanted_by(argument: Argument, where: str) -> Elements:
    """Return the elements that a kernel takes for an argument; packed constants have those of their layout."""
    if argument.packing is None:
        return elements(argument.dtype, argument.shape, where)
    return elements(argument.dtype, argument.packing.packed_shape, where)


def _check_apart(read: Sequence[_Stretch], written: Sequence[_Stretch], where: str) -> None:
    """PlanError where a kernel would write over what it reads, or twice to the same bytes."""
    for number, stretch in enumerate(written):
        if any(stretch.meets(other) for other in (*read, *written[:number])):
            raise PlanError(f"{where} would write to arena {stretch.start}, which it also reads or writes otherwise")
