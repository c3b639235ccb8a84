"""Products of shared memory and registers as assembly, of loops that are unrolled whole.

NVVM takes two thirds of the time that a kernel takes to be compiled for sums that are written out, only to leave them
as they are. So they are written as PTX: `ld.shared` at an address and a constant, each element once, and `fma.rn.f32`
on registers that are numbered anew by each instruction. The assembler allocates registers and orders instructions, as
it does with what NVVM makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as maths
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from ..c_family.expression import ADD, MULTIPLY, Place
from ..c_family.memory import register, scope_of, split
from ..c_family.printer import KernelPrinter
from ..c_family.types import bytes_of
from .async_copy import copied_places, copies_in, instruction

SHARED_PLACE = """\
// The address of an element in shared memory, as instructions of shared memory take it.
__device__ __forceinline__ unsigned shared_place(const void* shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}"""
WORD_BYTES, VECTOR_WORDS = 4, 4
"""Bytes of a register, and registers that one access to shared memory fills at most."""
_PRODUCT = "fma.rn.f32 "
COMMIT = "cp.async.commit_group;"
_OTHERS = {
    "place": ("u32", "r", "mov.u32 {}, {}"),
    "pointer": ("u64", "l", "mov.u64 {}, {}"),
    "size": ("u32", "r", "mov.u32 {}, {}"),
    "asked": ("pred", "r", "setp.ne.s32 {}, {}, 0"),
}
"""Operands of copies: the type of the register, the letter of the operand, and the instruction from this to that."""
_MOST_OPERANDS = 512
"""Operands of a block at most: NVRTC 13.0 takes 0.25 s for one of 400, 1.6 s for one of 800, 9 s for one of 2,000."""
_FAR = 128
"""Instructions between loads of neighbours that become one load, at most: its registers are taken for as long."""

Step = Callable[[], None]
Terms = tuple[tuple[SSAValue, int], ...]


class Unwritable(Exception):
    """Assembly has no form for an operation, or for where it reads."""


class Assembly:
    """Operations on their way to one block of assembly."""

    def __init__(self, p: KernelPrinter, trips: Mapping[Operation, range | None]) -> None:
        self._p, self._trips = p, trips
        self._registers = 0
        self.lines: list[str] = []
        self.floats: dict[tuple[SSAValue, int], str] = {}
        """Registers of what is read from the kernel: elements of a thread's arrays, and lanes of values."""
        self.places: dict[tuple[SSAValue, Terms], str] = {}
        """Registers of addresses in shared memory, by their buffers and sums of indices."""
        self.held: dict[SSAValue, dict[int, str]] = {}
        """Registers of a thread's arrays, by element."""
        self.written: dict[tuple[SSAValue, int], None] = {}
        """Elements that are changed, and are not of temporary arrays."""
        self._others: dict[str, dict[str, str]] = {kind: {} for kind in _OTHERS}
        """Registers of what copies take, by the C that computes it."""
        self._temporary: set[SSAValue] = set()
        self._loaded: dict[tuple[str, int, int], list[str]] = {}
        self._scalars: dict[tuple[str, int], dict[int, int]] = {}
        """Lines of scalar loads by element, of an address and the words that it is known to be a multiple of."""
        self._sums: dict[SSAValue, tuple[Terms, int]] = {}
        self._values: dict[SSAValue, Sequence[str]] = {}
        self._counters: dict[SSAValue, int] = {}

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
                return self._local_load(op) if is_local(op.buffer) else self._shared_load(op)
            case kernel.StoreOp():
                return self._store(op)
            case maths.FmaOp():
                return self._fma(op)
            case vector.BroadcastOp():
                return self._broadcast(op)
            case kernel.AllocOp():
                self._temporary.add(op.buffer)
            case kernel.AsyncCopyOp():
                self._copy(op, "")
            case scf.IfOp():
                for copied, asked in copies_in(self._p, op):
                    self._copy(copied, asked)
            case kernel.CommitOp():
                self.lines.append(COMMIT)
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
        known = self._sums.get(value)
        if known is None:
            number = const_evaluate_operand(value)
            if number is None and value not in self._counters:
                if not self._p.knows(value):
                    raise Unwritable
                number = self._p.scalar(value).number
            known = self._sums[value] = (((value, 1),), 0) if number is None else ((), number)
        return known

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

    # -- registers ----------------------------------------------------------------------------------------------------

    def _register(self) -> str:
        self._registers += 1
        return f"t{self._registers}"

    def _lanes(self, value: SSAValue) -> Sequence[str]:
        """Return the registers of a value, which may be one of the kernel."""
        known = self._values.get(value)
        if known is None:
            if not self._p.knows(value):
                raise Unwritable
            known = self._values[value] = [self._input((value, lane)) for lane in range(kernel.lanes_of(value.type))]
        return known

    def _input(self, place: tuple[SSAValue, int]) -> str:
        return self.floats.setdefault(place, f"f{len(self.floats)}")

    def _local_load(self, op: kernel.LoadOp) -> Step:
        lanes, stride = kernel.lanes_of(op.value.type), op.stride.data
        fixed, at = self._place(op)
        if fixed:
            raise Unwritable
        buffer, values, result = op.buffer, self._values, op.value
        held = self.held.setdefault(buffer, {})

        def run() -> None:
            first = at()
            places = [first + lane * stride for lane in range(lanes)]
            values[result] = [held.get(place) or self._ask(buffer, place) for place in places]

        return run

    def _ask(self, buffer: SSAValue, place: int) -> str:
        if buffer in self._temporary:
            raise Unwritable
        found = self.held[buffer][place] = self._input((buffer, place))
        return found

    def _store(self, op: kernel.StoreOp) -> Step:
        fixed, at = self._place(op)
        if fixed:
            raise Unwritable
        buffer, value, stride = op.buffer, op.value, op.stride.data
        held, is_kept = self.held.setdefault(buffer, {}), buffer not in self._temporary

        def run() -> None:
            place = at()
            for lane in self._lanes(value):
                held[place] = lane
                if is_kept:
                    self.written[buffer, place] = None
                place += stride

        return run

    def _fma(self, op: maths.FmaOp) -> Step:
        a, b, c = op.operands
        result, values, lines = op.results[0], self._values, self.lines

        def run() -> None:
            made = []
            for x, y, z in zip(self._lanes(a), self._lanes(b), self._lanes(c), strict=True):
                made.append(self._register())
                lines.append(f"{_PRODUCT}{made[-1]}, {x}, {y}, {z};")
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
        address = self.places.setdefault((op.buffer, fixed), f"p{len(self.places)}")
        chunks = list(split(self._p, "f32", lanes, op.align.data if op.align else 0))
        scalars = self._scalars.setdefault((address, self._known_multiple(op.buffer, fixed)), {})
        loaded, values, result = self._loaded, self._values, op.value

        def run() -> None:
            first = at()
            key = (address, first, lanes)
            if (known := loaded.get(key)) is None:
                known = loaded[key] = []
                for chunk in chunks:
                    if chunk.lanes == 1:
                        scalars[first + chunk.first] = len(self.lines)
                    known += self._read(address, first + chunk.first, chunk.lanes)
            values[result] = known

        return run

    def _copy(self, op: kernel.AsyncCopyOp, asked: str) -> None:
        p = self._p
        write, read = copied_places(p, op)
        target, source = p.buffer(op.target), p.buffer(op.source)
        to = self._other("place", f"shared_place({target.name}{write.base and f' + {write.base}'})")
        come = self._other("pointer", f"{source.name}{read.base and f' + {read.base}'}")
        to, come = (_at(name, place.constant * bytes_of(target.kind)) for name, place in ((to, write), (come, read)))
        line = f"{instruction(op.size_bytes)} {to}, {come}, {op.size_bytes}"
        if op.condition is not None:
            line += f", {self._other('size', f'{p.atoms(op.condition)[0].text} ? {op.size_bytes} : 0')}"
        self.lines.append(f"@{self._other('asked', f'(int){asked}')} {line};" if asked else f"{line};")

    def _other(self, kind: str, text: str) -> str:
        known = self._others[kind]
        return known.setdefault(text, f"{kind}{len(known)}")

    def _read(self, address: str, place: int, lanes: int) -> list[str]:
        registers = [self._register() for _ in range(lanes)]
        self.lines.append(_load(address, place, registers))
        return registers

    def _pointer(self, buffer: SSAValue, terms: Terms) -> str:
        texts = []
        for value, factor in terms:
            (atom,) = self._p.atoms(value)
            texts.append(atom.at_least(ADD) if factor == 1 else f"{atom.at_least(MULTIPLY)} * {factor}")
        return " + ".join([self._p.buffer(buffer).name, *texts])

    def _known_multiple(self, buffer: SSAValue, terms: Terms) -> int:
        """Return how many words an address is known to be a multiple of, as one access may fill so many."""
        assert isinstance(buffer.owner, kernel.AllocOp)
        whole = math.gcd(VECTOR_WORDS, buffer.owner.align_bytes // WORD_BYTES)
        return math.gcd(whole, *(factor * multiple_of(value) for value, factor in terms))

    def _join_loads(self) -> None:
        """Load neighbouring scalars by one access, where the first of them is loaded, if they are used near it."""
        for (address, multiple), lines in self._scalars.items():
            for lanes in (each for each in (4, 2) if multiple % each == 0):
                for place in sorted(place for place in lines if place % lanes == 0):
                    numbers = [lines.get(place + lane) for lane in range(lanes)]
                    known = [number for number in numbers if number is not None]
                    if len(known) < lanes or max(known) - min(known) > _FAR:
                        continue
                    registers = [self.lines[number].split()[1].rstrip(",") for number in known]
                    for lane, number in enumerate(known):
                        self.lines[number] = ""
                        del lines[place + lane]
                    self.lines[min(known)] = _load(address, place, registers)
        self.lines[:] = filter(None, self.lines)

    def _turn_rows(self) -> None:
        """Multiply what does not wait for each other by one first factor after the other, to and fro along the second.

        So the assembler keeps a factor for the next instruction more often: of 12 kernels with the most multiply-adds
        3.2 of a hundred read three registers of one bank, 5.9 as they came, 3.9 as NVVM orders them.
        """
        ordered: list[str] = []
        rows: dict[str, list[str]] = {}
        made: set[str] = set()

        def turn() -> None:
            for number, row in enumerate(rows.values()):
                ordered.extend(reversed(row) if number % 2 else row)
            rows.clear()
            made.clear()

        for line in self.lines:
            if not line.startswith(_PRODUCT):
                turn()
                ordered.append(line)
                continue
            result, *operands = line.removeprefix(_PRODUCT).rstrip(";").split(", ")
            if not made.isdisjoint(operands):
                turn()
            rows.setdefault(operands[0], []).append(line)
            made.add(result)
        turn()
        self.lines[:] = ordered

    # -- the block ----------------------------------------------------------------------------------------------------

    @property
    def pays(self) -> bool:
        """True where there are more instructions than operands, which the compiler has to bring together."""
        operands = len(self.floats) + len(self.written)
        return operands <= min(len(self.lines), _MOST_OPERANDS)

    def print(self) -> None:
        """Print it, after what other expressions read of what it changes."""
        p = self._p
        p.helpers.add("shared_place -")
        p.settle_all()
        self._join_loads()
        self._turn_rows()
        others = [(kind, text, name) for kind, known in self._others.items() for text, name in known.items()]
        floats = [f'"f"({self._variable(*place)})' for place in self.floats]
        places = [f'"r"(shared_place({self._pointer(*place)}))' for place in self.places]
        results = [f'"=f"({self._variable(*place)})' for place in self.written]
        begin = [f".reg .f32 t<{self._registers + 1}>;"]
        for kind, names in (("f32", [*self.floats.values()]), ("u32", [*self.places.values()])):
            if names:
                begin.append(f".reg .{kind} {names[0][0]}<{len(names)}>;")
        begin += [f"mov.f32 {name}, %{n};" for n, name in enumerate(self.floats.values(), len(results))]
        begin += [f"mov.u32 {name}, %{n};" for n, name in enumerate(self.places.values(), len(results) + len(floats))]
        for number, (kind, _, name) in enumerate(others, len(results) + len(floats) + len(places)):
            register_type, _, move = _OTHERS[kind]
            begin.append(f".reg .{register_type} {name}; {move.format(name, f'%{number}')};")
        inputs = [*floats, *places, *(f'"{_OTHERS[kind][1]}"({text})' for kind, text, _ in others)]
        end = [f"mov.f32 %{n}, {self.held[buffer][place]};" for n, (buffer, place) in enumerate(self.written)]
        p.line(self._comment)
        p.line('asm volatile("{\\n"')
        for line in (*begin, *self.lines, *end):
            p.line(f'             "{line}\\n"')
        p.line(f'             "}}" : {", ".join(results)} : {", ".join(inputs)} : "memory");')
        p.assembled += len(self.lines)

    @property
    def _comment(self) -> str:
        """A sentence of what the block does, in C's names: its instructions have names of their own."""
        count = sum(line.startswith(_PRODUCT) for line in self.lines)
        read, changed = (
            ", ".join(dict.fromkeys(self._p.buffer(buffer).name for buffer, _ in places))
            for places in (self.places, self.written)
        )
        return f"// {count} multiply-adds{read and f' of what is in {read}'}, which change {changed}."

    def _variable(self, value: SSAValue, place: int) -> str:
        if is_local(value):
            return register(self._p.buffer(value), Place(value, "", place))
        return self._p.atoms(value)[place].text


def is_local(buffer: SSAValue) -> bool:
    """True for an array of a thread."""
    return isinstance(buffer.owner, kernel.AllocOp) and scope_of(buffer.owner) == "local"


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


def _load(address: str, place: int, registers: Sequence[str]) -> str:
    lanes = f".v{len(registers)}" if len(registers) > 1 else ""
    into = f"{{{', '.join(registers)}}}" if lanes else registers[0]
    return f"ld.shared{lanes}.f32 {into}, {_at(address, WORD_BYTES * place)};"


def _at(address: str, offset: int) -> str:
    return f"[{address}{offset:+d}]" if offset else f"[{address}]"
