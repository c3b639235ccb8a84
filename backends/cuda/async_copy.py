"""Asynchronous copies to shared memory in CUDA C: `cp.async` (PTX ISA), from sm_80 on."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
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


def helper(name: str, size: str) -> str:
    """Return the function that copies `size` bytes; past the first-level cache where the hardware can."""
    level = "cg" if size == "16" else "ca"
    return (_COPY_IF if name == "copy_async_if" else _COPY).format(name=f"{name}_{size}", size=size, level=level)


def copy(p: KernelPrinter, op: Operation) -> None:
    """Print an asynchronous copy."""
    assert isinstance(op, kernel.AsyncCopyOp)
    if p.language.compute_capability < 80:  # type: ignore[attr-defined]
        raise UnsupportedError("sm_80 is the first architecture that copies to shared memory by itself")
    source, target = p.buffer(op.source), p.buffer(op.target)
    (read,) = places_of(p, op.source, op.source_index, op.source_offset.data, 1, 1)
    (write,) = places_of(p, op.target, op.target_index, op.target_offset.data, 1, 1)
    p.stored.add(op.target)
    p.settle(write)
    name = "copy_async" if op.condition is None else "copy_async_if"
    p.helpers.add(f"{name} {op.size_bytes}")
    there = "" if op.condition is None else f", {p.atoms(op.condition)[0].text}"
    places = f"{target.name} + {place_text(write)}, {source.name} + {place_text(read)}"
    p.line(f"{name}_{op.size_bytes}({places}{there});")


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
    kernel.AsyncCopyOp: copy,
    kernel.CommitOp: commit,
    kernel.WaitOp: wait,
}
