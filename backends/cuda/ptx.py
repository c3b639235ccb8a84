"""Instructions of PTX in CUDA C: an `asm volatile`, with a comment that says which buffers they read and change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.kernel.ptx import ADDRESS, ASKED, FLOAT, PLACE, POINTER, SIZE, TEMPORARY, Input, Output
from ..c_family.expression import ADD, MULTIPLY, Place
from ..c_family.memory import place_text, places_of, register
from ..c_family.printer import KernelPrinter
from .async_copy import require_copies

SHARED_PLACE = """\
// The address of an element in shared memory, as instructions of shared memory take it.
__device__ __forceinline__ unsigned shared_place(const void* shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}"""
_PRODUCT = "fma."
_OF_COPIES = {
    PLACE: ("u32", "r", "mov.u32 {}, {}"),
    POINTER: ("u64", "l", "mov.u64 {}, {}"),
    SIZE: ("u32", "r", "mov.u32 {}, {}"),
    ASKED: ("pred", "r", "setp.ne.s32 {}, {}, 0"),
}
"""Operands of copies: the type of the register, the letter of the operand, and the instruction from this to that."""


def ptx(p: KernelPrinter, op: Operation) -> None:
    """Print instructions of PTX, after what other expressions read of what they change."""
    assert isinstance(op, kernel.PtxOp)
    _Block(p, op).print()


class _Block:
    """A block of assembly on its way to C."""

    def __init__(self, p: KernelPrinter, op: kernel.PtxOp) -> None:
        self._p, self._values, self._code = p, op.values, op.code.data
        self._floats, self._places = self._code.inputs_of(FLOAT), self._code.inputs_of(ADDRESS)
        self._copies = [each for kind in _OF_COPIES for each in self._code.inputs_of(kind)]

    def print(self) -> None:
        p, code = self._p, self._code
        if self._copies:
            require_copies(p)
        copies = [f'"{_OF_COPIES[each.kind][1]}"({self._operand(each)})' for each in self._copies]
        p.helpers.add("shared_place -")
        p.settle_all()
        floats = [f'"f"({self._variable(each)})' for each in self._floats]
        places = [f'"r"({self._operand(each)})' for each in self._places]
        results = [f'"=f"({self._variable(each)})' for each in code.outputs]
        begin = [f".reg .f32 {TEMPORARY}<{code.temporaries + 1}>;"]
        for kind, inputs in (("f32", self._floats), ("u32", self._places)):
            if inputs:
                begin.append(f".reg .{kind} {inputs[0].kind}<{len(inputs)}>;")
        begin += [f"mov.f32 {each.register}, %{n};" for n, each in enumerate(self._floats, len(results))]
        begin += [f"mov.u32 {each.register}, %{n};" for n, each in enumerate(self._places, len(results) + len(floats))]
        for number, each in enumerate(self._copies, len(results) + len(floats) + len(places)):
            register_type, _, move = _OF_COPIES[each.kind]
            begin.append(f".reg .{register_type} {each.register}; {move.format(each.register, f'%{number}')};")
        end = [f"mov.f32 %{n}, {each.register};" for n, each in enumerate(code.outputs)]
        p.line(self._comment)
        p.line('asm volatile("{\\n"')
        for line in (*begin, *code.instructions, *end):
            p.line(f'             "{line}\\n"')
        inputs_text = ", ".join([*floats, *places, *copies])
        p.line(f'             "}}" : {", ".join(results)} : {inputs_text} : "memory");')

    @property
    def _comment(self) -> str:
        """A sentence of what the block does, in C's names: its instructions have names of their own."""
        count = sum(each.startswith(_PRODUCT) for each in self._code.instructions)
        read, changed = self._names(self._places), self._names(self._code.outputs)
        return f"// {count} multiply-adds{read and f' of what is in {read}'}, which change {changed}."

    def _names(self, registers: Sequence[Input | Output]) -> str:
        return ", ".join(dict.fromkeys(self._p.buffer(self._values[each.operand]).name for each in registers))

    def _operand(self, each: Input) -> str:
        """Return what an address, or an operand of a copy, is set to."""
        p, value = self._p, self._values[each.operand]
        if each.kind == SIZE:
            return f"{p.atoms(value)[0].text} ? {each.number} : 0"
        if each.kind == ASKED:
            return f"(int){p.atoms(value)[0].text}"
        address = " + ".join([p.buffer(value).name, *self._terms(each)])
        return address if each.kind == POINTER else f"shared_place({address})"

    def _terms(self, each: Input) -> Iterator[str]:
        """Yield what an address is behind that of a buffer; an index that only copies take need have no name."""
        for term, factor in each.terms:
            index = self._values[term]
            if each.kind != ADDRESS and factor == 1:
                (place,) = places_of(self._p, self._values[each.operand], index, 0, 1, 1)
                yield place_text(place)
            else:
                (atom,) = self._p.atoms(index)
                yield atom.at_least(ADD) if factor == 1 else f"{atom.at_least(MULTIPLY)} * {factor}"

    def _variable(self, each: Input | Output) -> str:
        """Return an element of a thread's array, or a lane of a value."""
        value = self._values[each.operand]
        if kernel.is_local_floats(value):
            return register(self._p.buffer(value), Place(value, "", each.number))
        return self._p.atoms(value)[each.number].text
