"""Matrix instructions of a warp in CUDA C: `ldmatrix` and the intrinsics' own code (PTX ISA), from sm_80 on."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.intrinsics import Intrinsic, find_intrinsic
from ..c_family.expression import Expr, Place
from ..c_family.memory import place_text, places_of, register
from ..c_family.names import identifier
from ..c_family.printer import Handler, KernelPrinter
from ..unsupported import UnsupportedError
from .narrow import NARROW

_LOAD = """\
// Load {count} matrices of 8 rows of 16 bytes{how}, each row named by a lane of the warp.
__device__ __forceinline__ void {name}(unsigned (&to)[{count}], const void* shared) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%{count}];"
                 : {outputs} : "r"(place) : "memory");
}}"""
_PRODUCT = """\
// {intrinsic}: adds the product of two matrices that the lanes of a warp hold.
__device__ __forceinline__ void {name}({parameters}) {{
{code}
}}"""
_PACK = """\
// Two elements of 16 bits as one register.
__device__ __forceinline__ unsigned {name}({type} low, {type} high) {{
    return (unsigned)(unsigned short){bits}(low) | (unsigned)(unsigned short){bits}(high) << 16;
}}"""
_SUMS = {"float16": "__half", "float32": "float", "int32": "int"}


def helper(name: str, kind: str) -> str:
    """Return a function that these operations call."""
    if name == "product":
        found = find_intrinsic(kind)
        assert found is not None
        return _product(found)
    if name == "pack":
        spelled = NARROW[kind]
        return _PACK.format(name=f"pack_{kind}", type=spelled.type_name, bits=spelled.as_short)
    count = int(kind)
    return _LOAD.format(
        name=f"{name}_{count}",
        count=count,
        how=", turned" if name.endswith("turned") else "",
        trans=".trans" if name.endswith("turned") else "",
        registers=", ".join(f"%{n}" for n in range(count)),
        outputs=", ".join(f'"=r"(to[{n}])' for n in range(count)),
    )


def _product(intrinsic: Intrinsic) -> str:
    sums = _SUMS[intrinsic.c.element]
    count = intrinsic.elements("c") // intrinsic.threads
    parameters = [f"{sums}& c{n}" for n in range(count)]
    parameters += [f"unsigned {operand}{n}" for operand in "ab" for n in range(intrinsic.registers(operand))]
    code = "\n".join(f"    {line}" for line in intrinsic.code.splitlines())
    name = identifier(intrinsic.name)
    return _PRODUCT.format(intrinsic=intrinsic.name, name=name, parameters=", ".join(parameters), code=code)


def load(p: KernelPrinter, op: Operation) -> None:
    """Print a load of matrices."""
    assert isinstance(op, kernel.FragmentLoadOp)
    buffer = p.buffer(op.buffer)
    (place,) = places_of(p, op.buffer, op.index, op.offset.data, 1, 1)
    word = "load_matrices_turned" if op.turned is not None else "load_matrices"
    p.helpers.add(f"{word} {op.matrices}")
    name = p.names.fresh(op.value.name_hint or "part")
    p.line(f"unsigned {name}[{op.matrices}];")
    p.line(f"{word}_{op.matrices}({name}, {buffer.name} + {place_text(place)});")
    p.define_literal(op.value, [Expr(f"{name}[{n}]") for n in range(op.matrices)])


def pack(p: KernelPrinter, op: Operation) -> None:
    """Print a fragment of elements in registers, for warp groups as it is to be at their fence."""
    assert isinstance(op, kernel.FragmentPackOp)
    buffer = p.buffer(op.buffer)
    places = [place for n in op.offsets for place in places_of(p, op.buffer, op.index, n, 1, 1)]
    held = [register(buffer, place) for place in places]
    p.helpers.add(f"pack {buffer.kind}")
    name = p.names.fresh(op.value.name_hint or "part")
    pairs = zip(held[::2], held[1::2], strict=True)
    words = ", ".join(f"pack_{buffer.kind}({low}, {high})" for low, high in pairs)
    p.line(f"unsigned {name}[{len(held) // 2}] = {{{words}}};")
    registers = [f"{name}[{n}]" for n in range(len(held) // 2)]
    if any(isinstance(use.operation, kernel.WarpGroupProductOp) for use in op.value.uses):
        p.helpers.add("hold unsigned")
        p.line(" ".join(f"hold({register});" for register in registers))
    p.define_literal(op.value, [Expr(register) for register in registers])


def product(p: KernelPrinter, op: Operation) -> None:
    """Print a product of matrices."""
    assert isinstance(op, kernel.MatrixProductOp)
    intrinsic = op.meaning()
    if p.language.compute_capability < intrinsic.since:  # type: ignore[attr-defined]
        raise UnsupportedError(f"sm_{intrinsic.since} is the first architecture that has {intrinsic.name}")
    buffer = p.buffer(op.sums)
    places: list[Place] = []
    for offset in op.offsets:
        places += places_of(p, op.sums, op.index, offset, 1, 1)
    for place in places:
        p.settle(place)
    p.helpers.add(f"product {intrinsic.name}")
    arguments = [register(buffer, place) for place in places]
    arguments += [lane.text for value in (op.a, op.b) for lane in p.lanes(value)]
    p.line(f"{identifier(intrinsic.name)}({', '.join(arguments)});")


MATRICES: dict[type[Operation], Handler] = {
    kernel.FragmentLoadOp: load,
    kernel.FragmentPackOp: pack,
    kernel.MatrixProductOp: product,
}
