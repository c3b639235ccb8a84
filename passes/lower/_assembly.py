"""Products of shared memory and registers as instructions of PTX: each of a run of operations that is unrolled whole.

NVVM takes two thirds of the time that a kernel takes to be compiled for sums that are written out, only to leave them
as they are. So they are written as PTX: `ld.shared` at an address and a constant, each element once, and `fma.rn.f32`
on registers that are numbered anew by each instruction. The assembler allocates registers and orders instructions, as
it does with what NVVM makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as maths
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ...dialects.buffers import element_of_buffer, scope_of
from ...dialects.element import FLOAT32_BYTES, element_bytes
from ...dialects.kernel.ptx import (
    ADDRESS,
    ASKED,
    FLOAT,
    PLACE,
    POINTER,
    SIZE,
    TEMPORARY,
    Input,
    Output,
    Ptx,
    PtxOp,
)
from ...dialects.multiprocessor import VECTOR
from ._instruction_order import PRODUCT, at, joined_loads, load, turned_rows

_COMMIT = "cp.async.commit_group;"
_MOST_OPERANDS = 512
"""Operands of a block at most: NVRTC 13.0 takes 0.25 s for one of 400, 1.6 s for one of 800, 9 s for one of 2,000."""

Step = Callable[[], None]
Terms = tuple[tuple[SSAValue, int], ...]
Conditions = tuple[SSAValue, ...]


class Unwritable(Exception):
    """Assembly has no form for an operation, or for where it reads."""


class Assembly:
    """Operations of a run on their way to one operation of PTX.

    `known` gives the value of an index that is a number at each run, `trips` the values of the counters of loops.
    """

    def __init__(
        self,
        run: Sequence[Operation],
        indices: Sequence[Operation],
        known: Callable[[SSAValue], int | None],
        trips: Mapping[Operation, range | None],
    ) -> None:
        self._run, self._block = frozenset(run), run[0].parent
        self._known, self._trips = known, trips
        self._registers = 0
        self._lines: list[str] = []
        self._floats: dict[tuple[SSAValue, int], str] = {}
        """Registers of what is read from the kernel: elements of a thread's arrays, and lanes of values."""
        self._addresses: dict[tuple[SSAValue, Terms], str] = {}
        """Registers of addresses in shared memory, by their buffers and sums of indices."""
        self._held: dict[SSAValue, dict[int, str]] = {}
        """Registers of a thread's arrays, by element."""
        self._written: dict[tuple[SSAValue, int], None] = {}
        """Elements that are changed, and are not of temporary arrays."""
        self._places: dict[tuple[SSAValue, Terms], str] = {}
        self._pointers: dict[tuple[SSAValue, Terms], str] = {}
        self._sizes: dict[tuple[SSAValue, int], str] = {}
        self._asked: dict[Conditions, str] = {}
        """Registers of what copies take."""
        self._before: list[Operation] = []
        """Operations in branches around copies, which are done before the run."""
        self._computed: dict[Hashable, SSAValue] = {}
        self._same: dict[SSAValue, SSAValue] = {}
        """Values that are computed before the run, by what they are; and others that are the same as one of these."""
        self._temporary: set[SSAValue] = set()
        self._loaded: dict[tuple[str, int, int], list[str]] = {}
        self._scalars: dict[tuple[str, int], dict[int, int]] = {}
        """Lines of scalar loads by element, of an address and the words that it is known to be a multiple of."""
        self._sums: dict[SSAValue, tuple[Terms, int]] = {}
        self._values: dict[SSAValue, Sequence[str]] = {}
        self._counters: dict[SSAValue, int] = {}
        for op in indices:
            self._compute(op)

    def add(self, op: Operation) -> None:
        """Write an operation; Unwritable where that cannot be."""
        if (step := self._step(op)) is not None:
            step()

    def _step(self, op: Operation) -> Step | None:
        """Return what writes an operation each time that it runs; None where it is an index, of which sums are kept."""
        match op:
            case scf.ForOp():
                return self._loop(op)
            case kernel.LoadOp():
                return self._local_load(op) if scope_of(op.buffer) == "local" else self._shared_load(op)
            case kernel.StoreOp():
                return self._store(op)
            case maths.FmaOp():
                return self._fma(op)
            case vector.BroadcastOp():
                return self._broadcast(op)
            case kernel.AllocOp():
                self._temporary.add(op.buffer)
            case kernel.AsyncCopyOp():
                self._copy(op, ())
            case scf.IfOp():
                self._copies_in(op, ())
            case kernel.CommitOp():
                self._lines.append(_COMMIT)
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp():
                self._sums[op.result] = self._combined(op)
        return None

    def _loop(self, op: scf.ForOp) -> Step:
        counter, counters, trips = op.body.block.args[0], self._counters, self._trips[op] or range(0)
        counters[counter] = 0
        steps = [step for inner in op.body.block.ops if (step := self._step(inner)) is not None]

        def run() -> None:
            for number in trips:
                counters[counter] = number
                for step in steps:
                    step()

        return run

    # -- indices ------------------------------------------------------------------------------------------------------

    def _sum(self, value: SSAValue) -> tuple[Terms, int]:
        """Return an index as a sum of multiples, of loops' counters and of values of the kernel, and a constant."""
        found = self._sums.get(value)
        if found is None:
            number = const_evaluate_operand(value)
            if number is None and value not in self._counters:
                if self._is_within(value):
                    raise Unwritable
                number = self._known(value)
            found = self._sums[value] = (((value, 1),), 0) if number is None else ((), number)
        return found

    def _combined(self, op: arith.AddiOp | arith.SubiOp | arith.MuliOp) -> tuple[Terms, int]:
        (x, m), (y, n) = self._sum(op.lhs), self._sum(op.rhs)
        if isinstance(op, arith.MuliOp):
            if x and y:
                raise Unwritable
            return tuple((value, factor * (m if y else n)) for value, factor in x or y), m * n
        sign = -1 if isinstance(op, arith.SubiOp) else 1
        terms = dict(x)
        for value, factor in y:
            terms[value] = terms.get(value, 0) + sign * factor
        return tuple((value, factor) for value, factor in terms.items() if factor), m + sign * n

    def _index(self, value: SSAValue) -> tuple[Terms, Terms, int]:
        """Return an index as multiples of values of the kernel, of loops' counters, and a constant."""
        terms, constant = self._sum(value)
        fixed = tuple(term for term in terms if term[0] not in self._counters)
        return fixed, tuple(term for term in terms if term[0] in self._counters), constant

    def _place(self, op: kernel.LoadOp | kernel.StoreOp) -> tuple[Terms, Callable[[], int]]:
        """Return what of an access's first element is a value of the kernel, and how the rest is computed."""
        fixed, moving, constant = self._index(op.index)
        first: int = constant + op.offset.data
        counters = self._counters

        def at() -> int:
            place = first
            for value, factor in moving:
                place += factor * counters[value]
            return place

        return fixed, at

    def _is_within(self, value: SSAValue) -> bool:
        """True for what an operation of the run computes, so that it is not there before."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        return around(op, self._block) in self._run

    # -- registers ----------------------------------------------------------------------------------------------------

    def _register(self) -> str:
        self._registers += 1
        return f"{TEMPORARY}{self._registers}"

    def _lanes(self, value: SSAValue) -> Sequence[str]:
        """Return the registers of a value, which may be one of the kernel."""
        known = self._values.get(value)
        if known is None:
            if self._is_within(value):
                raise Unwritable
            known = self._values[value] = [self._input((value, lane)) for lane in range(kernel.lanes_of(value.type))]
        return known

    def _input(self, place: tuple[SSAValue, int]) -> str:
        return self._floats.setdefault(place, f"{FLOAT}{len(self._floats)}")

    def _local_load(self, op: kernel.LoadOp) -> Step:
        lanes, stride = kernel.lanes_of(op.value.type), op.stride.data
        fixed, at = self._place(op)
        if fixed:
            raise Unwritable
        buffer, values, result = op.buffer, self._values, op.value
        held = self._held.setdefault(buffer, {})

        def run() -> None:
            first = at()
            places = [first + lane * stride for lane in range(lanes)]
            values[result] = [held.get(place) or self._ask(buffer, place) for place in places]

        return run

    def _ask(self, buffer: SSAValue, place: int) -> str:
        if buffer in self._temporary:
            raise Unwritable
        found = self._held[buffer][place] = self._input((buffer, place))
        return found

    def _store(self, op: kernel.StoreOp) -> Step:
        fixed, at = self._place(op)
        if fixed:
            raise Unwritable
        buffer, value, stride = op.buffer, op.value, op.stride.data
        held, is_kept = self._held.setdefault(buffer, {}), buffer not in self._temporary

        def run() -> None:
            place = at()
            for lane in self._lanes(value):
                held[place] = lane
                if is_kept:
                    self._written[buffer, place] = None
                place += stride

        return run

    def _fma(self, op: maths.FmaOp) -> Step:
        a, b, c = op.operands
        result, values, lines = op.results[0], self._values, self._lines

        def run() -> None:
            made = []
            for x, y, z in zip(self._lanes(a), self._lanes(b), self._lanes(c), strict=True):
                made.append(self._register())
                lines.append(f"{PRODUCT}{made[-1]}, {x}, {y}, {z};")
            values[result] = made

        return run

    def _broadcast(self, op: vector.BroadcastOp) -> Step:
        source, result, count = op.operands[0], op.results[0], kernel.lanes_of(op.results[0].type)

        def run() -> None:
            lanes = list(self._lanes(source))
            self._values[result] = lanes * (count // len(lanes))

        return run

    # -- shared memory ------------------------------------------------------------------------------------------------

    def _shared_load(self, op: kernel.LoadOp) -> Step:
        lanes = kernel.lanes_of(op.value.type)
        if lanes > 1 and op.stride.data != 1:
            raise Unwritable
        fixed, at = self._place(op)
        address = self._addresses.setdefault((op.buffer, fixed), f"{ADDRESS}{len(self._addresses)}")
        align = op.align.data if op.align else 0
        chunks = list(kernel.chunks(lanes, FLOAT32_BYTES, align, (VECTOR, VECTOR // 2)))
        scalars = self._scalars.setdefault((address, _words_divided(op.buffer, fixed)), {})
        loaded, values, result = self._loaded, self._values, op.value

        def run() -> None:
            first = at()
            key = (address, first, lanes)
            if (known := loaded.get(key)) is None:
                known = loaded[key] = []
                for chunk in chunks:
                    if chunk.lanes == 1:
                        scalars[first + chunk.first] = len(self._lines)
                    known += self._read(address, first + chunk.first, chunk.lanes)
            values[result] = known

        return run

    def _read(self, address: str, place: int, lanes: int) -> list[str]:
        registers = [self._register() for _ in range(lanes)]
        self._lines.append(load(address, place, registers))
        return registers

    # -- copies to it -------------------------------------------------------------------------------------------------

    def _copies_in(self, op: scf.IfOp, around: Conditions) -> None:
        """Write the copies under a condition; what is computed for them is computed before."""
        asked = (*around, self._first_of(op.cond))
        for inner in kernel.operations_inside(op):
            if isinstance(inner, kernel.AsyncCopyOp):
                self._copy(inner, asked)
            elif isinstance(inner, scf.IfOp):
                self._copies_in(inner, asked)
            else:
                self._before.append(inner)
                self._compute(inner)

    def _compute(self, op: Operation) -> None:
        """Note what is computed before the run, for a branch perhaps, which others may have computed already."""
        computed = (op.name, *map(self._first_of, op.operands), *op.properties.items())
        for result in op.results:
            if (first := self._computed.setdefault((result.index, *computed), result)) is not result:
                self._same[result] = first

    def _first_of(self, value: SSAValue) -> SSAValue:
        return self._same.get(value, value)

    def _copy(self, op: kernel.AsyncCopyOp, asked: Conditions) -> None:
        size = element_bytes(element_of_buffer(op.source))
        to, write = self._copied(self._places, PLACE, op.target, op.target_index)
        come, read = self._copied(self._pointers, POINTER, op.source, op.source_index)
        to, come = at(to, (write + op.target_offset.data) * size), at(come, (read + op.source_offset.data) * size)
        line = f"{kernel.copy_instruction(op.size_bytes)} {to}, {come}, {op.size_bytes}"
        if op.condition is not None:
            size_of = (self._first_of(op.condition), op.size_bytes)
            line += f", {self._sizes.setdefault(size_of, f'{SIZE}{len(self._sizes)}')}"
        if asked:
            line = f"@{self._asked.setdefault(asked, f'{ASKED}{len(self._asked)}')} {line}"
        self._lines.append(f"{line};")

    def _copied(
        self, known: dict[tuple[SSAValue, Terms], str], kind: str, buffer: SSAValue, index: SSAValue
    ) -> tuple[str, int]:
        """Return the register of where a copy begins, and how many elements behind that."""
        index = self._first_of(index)
        number = self._known(index)
        terms: Terms = ((index, 1),) if number is None else ()
        return known.setdefault((buffer, terms), f"{kind}{len(known)}"), number or 0

    # -- the operation ------------------------------------------------------------------------------------------------

    @property
    def pays(self) -> bool:
        """True where there are more instructions than operands, which the compiler has to bring together."""
        operands = len(self._floats) + len(self._written)
        return operands <= min(len(self._lines), _MOST_OPERANDS)

    def insert(self, before: Operation) -> PtxOp:
        """Insert the operation of PTX, and what copies in it take, before an operation of the kernel."""
        here = InsertPoint.before(before)
        for op in self._before:
            if all(result in self._same for result in op.results):  # it goes with its branch
                for result in op.results:
                    result.replace_all_uses_with(self._same[result])
            else:
                move_before(op, before)
        asked = {self._all_of(conditions, here): register for conditions, register in self._asked.items()}
        numbers: dict[SSAValue, int] = {}

        def number(value: SSAValue) -> int:
            return numbers.setdefault(value, len(numbers))

        def addresses(known: Mapping[tuple[SSAValue, Terms], str]) -> list[Input]:
            return [
                Input(register, number(buffer), 0, tuple((number(term), factor) for term, factor in terms))
                for (buffer, terms), register in known.items()
            ]

        inputs = (
            *(Input(register, number(value), place) for (value, place), register in self._floats.items()),
            *addresses(self._addresses),
            *addresses(self._places),
            *addresses(self._pointers),
            *(Input(register, number(value), size) for (value, size), register in self._sizes.items()),
            *(Input(register, number(value)) for value, register in asked.items()),
        )
        outputs = tuple(Output(number(buffer), place, self._held[buffer][place]) for buffer, place in self._written)
        instructions = tuple(turned_rows(joined_loads(self._lines, self._scalars)))
        found = PtxOp(tuple(numbers), Ptx(inputs, self._registers, instructions, outputs))
        Rewriter.insert_op(found, here)
        return found

    def _all_of(self, conditions: Conditions, here: InsertPoint) -> SSAValue:
        """Return the condition that all of some conditions hold."""
        found, *others = conditions
        for other in others:
            both = arith.AndIOp(found, other)
            Rewriter.insert_op(both, here)
            found = both.result
            found.name_hint = "asked"
        return found


def move_before(op: Operation, other: Operation) -> None:
    """Move an operation to where another one is."""
    op.detach()  # type: ignore[no-untyped-call]
    Rewriter.insert_op(op, InsertPoint.before(other))


def around(op: Operation | None, block: Block | None) -> Operation | None:
    """Return the operation of a block that another one is, or is within."""
    while op is not None and op.parent is not block:
        op = op.parent_op()
    return op


def _words_divided(buffer: SSAValue, terms: Sequence[tuple[SSAValue, int]]) -> int:
    """Return how many words an address is known to be a multiple of, as one access may fill so many."""
    assert isinstance(buffer.owner, kernel.AllocOp)
    whole = math.gcd(VECTOR, buffer.owner.align_bytes // FLOAT32_BYTES)
    return math.gcd(whole, *(factor * multiple_of(value) for value, factor in terms))


def multiple_of(value: SSAValue) -> int:
    """Return a number that is known to divide an index; 0 for the index 0."""
    number = const_evaluate_operand(value)
    if number is not None:
        return abs(number)
    match value.owner:
        case arith.AddiOp() | arith.SubiOp() as op:
            return math.gcd(multiple_of(op.lhs), multiple_of(op.rhs))
        case arith.MuliOp() as op:
            return multiple_of(op.lhs) * multiple_of(op.rhs)
        case Block() as block if isinstance(loop := block.parent_op(), scf.ForOp):
            return math.gcd(multiple_of(loop.lb), multiple_of(loop.step))
    return 1
