"""Asynchronous copies to shared memory in CUDA C: `cp.async` (PTX ISA), from sm_80 on."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family import control
from ..c_family.memory import place_text, places_of
from ..c_family.printer import Handler, KernelPrinter
from ..unsupported import UnsupportedError

_COPY = """\
// Copy {size} bytes to shared memory while the thread goes on.
__device__ __forceinline__ void {name}(void* shared, const void* global) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.{level}.shared.global [%0], [%1], {size};" ::"r"(place), "l"(global) : "memory");
}}"""
_COPY_IF = """\
// The same where `there`, else {size} bytes of zeros.
__device__ __forceinline__ void {name}(void* shared, const void* global, bool there) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const int size = there ? {size} : 0;
    asm volatile("cp.async.{level}.shared.global [%0], [%1], {size}, %2;"
                 ::"r"(place), "l"(global), "r"(size) : "memory");
}}"""
_COPY_WHERE = """\
// The same where `there`, else nothing.
__device__ __forceinline__ void {name}(void* shared, const void* global, bool there) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{{ .reg .pred there; setp.ne.s32 there, %2, 0;"
                 " @there cp.async.{level}.shared.global [%0], [%1], {size}; }}"
                 ::"r"(place), "l"(global), "r"((int)there) : "memory");
}}"""
_FORMS = {"copy_async": _COPY, "copy_async_if": _COPY_IF, "copy_async_where": _COPY_WHERE}


def helper(name: str, size: str) -> str:
    """Return the function that copies `size` bytes; past the first-level cache where the hardware can."""
    level = "cg" if size == "16" else "ca"
    return _FORMS[name].format(name=f"{name}_{size}", size=size, level=level)


def branch(p: KernelPrinter, op: Operation) -> None:
    """Print an if; one around asynchronous copies alone as their predicate.

    In a branch ptxas computes the addresses of each copy anew, where those of predicated ones differ by a constant:
    some ten instructions a copy become five.
    """
    assert isinstance(op, scf.IfOp)
    copies = [inner for inner in op.true_region.block.ops if not isinstance(inner, scf.YieldOp)]
    alone = all(isinstance(inner, kernel.AsyncCopyOp) and inner.condition is None for inner in copies)
    if not copies or not alone or op.results or op.false_region.blocks:
        control.branch(p, op)
        return
    there = p.atoms(op.cond)[0].text
    for inner in copies:
        assert isinstance(inner, kernel.AsyncCopyOp)
        _print_copy(p, inner, "copy_async_where", there)


def copy(p: KernelPrinter, op: Operation) -> None:
    """Print an asynchronous copy."""
    assert isinstance(op, kernel.AsyncCopyOp)
    if op.condition is None:
        _print_copy(p, op, "copy_async")
    else:
        _print_copy(p, op, "copy_async_if", p.atoms(op.condition)[0].text)


def _print_copy(p: KernelPrinter, op: kernel.AsyncCopyOp, name: str, there: str = "") -> None:
    """Print a copy by a helper, that takes a condition where there is one."""
    if p.language.compute_capability < 80:  # type: ignore[attr-defined]
        raise UnsupportedError("sm_80 is the first architecture that copies to shared memory by itself")
    source, target = p.buffer(op.source), p.buffer(op.target)
    (read,) = places_of(p, op.source, op.source_index, op.source_offset.data, 1, 1)
    (write,) = places_of(p, op.target, op.target_index, op.target_offset.data, 1, 1)
    p.stored.add(op.target)
    p.settle(write)
    p.helpers.add(f"{name} {op.size_bytes}")
    places = f"{target.name} + {place_text(write)}, {source.name} + {place_text(read)}"
    p.line(f"{name}_{op.size_bytes}({places}{there and f', {there}'});")


def commit(p: KernelPrinter, op: Operation) -> None:
    """Print the commit of a group of asynchronous copies."""
    p.settle_all()
    p.line('asm volatile("cp.async.commit_group;" ::: "memory");')


def wait(p: KernelPrinter, op: Operation) -> None:
    """Print the wait for all groups of asynchronous copies but the last ones."""
    assert isinstance(op, kernel.WaitOp)
    p.settle_all()
    p.line(f'asm volatile("cp.async.wait_group {op.pending.data};" ::: "memory");')


ASYNC_COPIES: dict[type[Operation], Handler] = {
    scf.IfOp: branch,
    kernel.AsyncCopyOp: copy,
    kernel.CommitOp: commit,
    kernel.WaitOp: wait,
}
