"""Products of warp groups in CUDA C: `wgmma` on matrices that descriptors name (PTX ISA), on sm_90a."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.intrinsics import Intrinsic, find_intrinsic
from ..c_family.memory import place_text, places_of, register
from ..c_family.names import identifier
from ..c_family.printer import INDENT, Handler, KernelPrinter
from ..unsupported import UnsupportedError

_MATRIX = """\
// Describe a matrix in shared memory: its address, the bytes to the next panel and to the next 8 rows, and its swizzle.
__device__ __forceinline__ unsigned long long shared_matrix(const void* shared, unsigned panel, unsigned rows,
                                                            unsigned long long swizzle) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    return (unsigned long long)((place & 0x3ffffu) >> 4) | (unsigned long long)(panel >> 4) << 16
           | (unsigned long long)(rows >> 4) << 32 | swizzle << 62;
}"""
_SWIZZLE = {128: 1, 64: 2, 32: 3}
"""The number of a swizzle in a descriptor (PTX ISA, matrix descriptor format)."""
_HOLD = """\
// Keep the compiler from moving what a product in flight writes or reads across a wait or a fence.
__device__ __forceinline__ void hold({type}& value) {{ asm volatile("" : "+{letter}"(value) :: "memory"); }}"""
_END_BLOCK = """\
// End the basic block: ptxas (13.0 to 13.5) packs conversions to 16 bits at a block's start, also above the wait in it.
__device__ __forceinline__ void end_block() {
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0; @p trap; }" ::"r"(blockDim.x) : "memory");
}"""
_PRODUCT = """\
// {intrinsic}: begins to {what} the product of two matrices{where} {into} what a warp group holds.
__device__ __forceinline__ void {name}({parameters}) {{
{code}
}}"""
_DESCRIPTOR = "unsigned long long"
START = "s"
"""Before these digits: the product is written, not added."""
HELD = "h"
"""In the place of 1 or 0 for a first factor that is turned or not: it is held in registers."""
_SUMS = {"float32": "float", "int32": "int"}


def helper(name: str, kind: str) -> str:
    """Return a function that these operations call."""
    if name == "shared_matrix":
        return _MATRIX
    if name == "hold":
        return _HOLD.format(type=kind, letter="f" if kind == "float" else "r")
    if name == "end_block":
        return _END_BLOCK
    intrinsic, form = kind.split("/")
    found = find_intrinsic(intrinsic)
    assert found is not None
    return _product(found, form.removeprefix(START), form.startswith(START))


def _product(intrinsic: Intrinsic, turned: str, start: bool) -> str:
    held = turned[0] == HELD
    code = intrinsic.held_code if held else intrinsic.code.replace("{a_turned}", turned[0])
    code = code.replace("{b_turned}", turned[1])
    code = code.replace("{adds}", "0" if start else "1").replace("{sums}", "=" if start else "+")
    sums = [f"{_SUMS[intrinsic.c.element]}& c{n}" for n in range(intrinsic.elements("c") // intrinsic.threads)]
    first = [f"unsigned a{n}" for n in range(intrinsic.registers("a"))] if held else [f"{_DESCRIPTOR} a"]
    return _PRODUCT.format(
        intrinsic=intrinsic.name,
        where=", the first in registers," if held else " in shared memory",
        name=_name(intrinsic, turned, start),
        what="write" if start else "add",
        into="as" if start else "to",
        parameters=", ".join([*sums, *first, f"{_DESCRIPTOR} b"]),
        code="\n".join(f"{INDENT}{line}" for line in code.splitlines()),
    )


def _name(intrinsic: Intrinsic, turned: str, start: bool) -> str:
    """The function's: by what is turned of the factors, `a` before `b`, or that `a` is held in registers."""
    ending = {"00": "", "01": "_nn", "10": "_tt", "11": "_tn", f"{HELD}0": "_held", f"{HELD}1": "_held_nn"}
    return f"{identifier(intrinsic.name)}{ending[turned]}{'_start' * start}"


def product(p: KernelPrinter, op: Operation) -> None:
    """Print the beginning of a product."""
    assert isinstance(op, kernel.WarpGroupProductOp)
    intrinsic = op.meaning()
    capability = p.language.compute_capability  # type: ignore[attr-defined]
    if capability != intrinsic.since:
        raise UnsupportedError(f"{intrinsic.name} is of sm_{intrinsic.since}a alone, not of sm_{capability}")
    sums = p.buffer(op.sums)
    places = [place for n in op.sum_places for place in places_of(p, op.sums, op.index, n, 1, 1)]
    for place in places:
        p.settle(place)
    turned = HELD * (op.held is not None) + "".join(str(int(matrix.turned)) for *_, matrix in op.factors())
    start = op.start is not None
    p.helpers |= {"shared_matrix -", f"group_product {intrinsic.name}/{START * start}{turned}"}
    arguments = [register(sums, place) for place in places]
    if op.held is not None:
        arguments += [lane.text for lane in p.lanes(op.held)]
    arguments += [_descriptor(p, *factor) for factor in op.factors()]
    p.line(f"{_name(intrinsic, turned, start)}({', '.join(arguments)});")


def _descriptor(
    p: KernelPrinter, _: str, buffer: SSAValue, index: SSAValue, offset: int, matrix: kernel.SharedMatrix
) -> str:
    (place,) = places_of(p, buffer, index, offset, 1, 1)
    at = f"{p.buffer(buffer).name} + {place_text(place)}"
    return f"shared_matrix({at}, {matrix.panel or 16}, {kernel.ATOM_ROWS * matrix.span}, {_SWIZZLE[matrix.span]})"


def fence(p: KernelPrinter, op: Operation) -> None:
    """Print the fence before products; threads of a warp that were apart come together before."""
    p.settle_all()
    p.line("__syncwarp();")
    p.line('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");')


def commit(p: KernelPrinter, op: Operation) -> None:
    """Print the commit of a group of products."""
    p.settle_all(keep_local=True)
    p.line('asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");')


def wait(p: KernelPrinter, op: Operation) -> None:
    """Print the wait for all groups of products but the last ones."""
    assert isinstance(op, kernel.WarpGroupWaitOp)
    p.settle_all()
    p.line(f'asm volatile("wgmma.wait_group.sync.aligned {op.pending.data};" ::: "memory");')
    if op.pending.data:
        return
    p.helpers.add("end_block -")
    p.line("end_block();")
    for sums in dict.fromkeys(product.sums for product in _in_flight(op, p.launch)):
        buffer = p.buffer(sums)
        p.helpers.add(f"hold {p.type_of(buffer.kind)}")
        p.line("#pragma unroll")
        number = p.names.fresh("n")
        p.line(f"for (int {number} = 0; {number} < {buffer.size}; ++{number}) hold({buffer.name}[{number}]);")


def _in_flight(wait: Operation, launch: Operation) -> list[kernel.WarpGroupProductOp]:
    """The products that may be in flight at a wait: of its iteration of the loops around, or of the one before."""
    before = list(launch.walk())
    found = _since_last_wait(before[: next(n for n, op in enumerate(before) if op is wait)])
    around = wait.parent_op()
    while around is not None and around is not launch:
        if isinstance(around, scf.ForOp):
            found += _since_last_wait(list(around.walk()))
        around = around.parent_op()
    return found


def _since_last_wait(ops: Sequence[Operation]) -> list[kernel.WarpGroupProductOp]:
    found: list[kernel.WarpGroupProductOp] = []
    for op in reversed(ops):
        if isinstance(op, kernel.WarpGroupWaitOp) and not op.pending.data:
            break
        if isinstance(op, kernel.WarpGroupProductOp):
            found.insert(0, op)
    return found


def proxy_fence(p: KernelPrinter, op: Operation) -> None:
    """Print the fence between a thread's stores to shared memory and asynchronous reads of it."""
    p.settle_all()
    p.line('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");')


WARP_GROUPS: dict[type[Operation], Handler] = {
    kernel.WarpGroupProductOp: product,
    kernel.WarpGroupFenceOp: fence,
    kernel.WarpGroupCommitOp: commit,
    kernel.WarpGroupWaitOp: wait,
    kernel.ProxyFenceOp: proxy_fence,
}
