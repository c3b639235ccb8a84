"""Asynchronous copies to shared memory in CUDA C: `cp.async` (PTX ISA), from sm_80 on."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family import control
from ..c_family.expression import BOTH, Expr, Place
from ..c_family.memory import place_text, places_of
from ..c_family.printer import Handler, KernelPrinter
from ..unsupported import UnsupportedError

_COPY = """\
// Copy {size} bytes to shared memory while the thread goes on.
__device__ __forceinline__ void {name}(void* shared, const void* global) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{instruction} [%0], [%1], {size};" ::"r"(place), "l"(global) : "memory");
}}"""
_COPY_IF = """\
// The same where `there`, else {size} bytes of zeros.
__device__ __forceinline__ void {name}(void* shared, const void* global, bool there) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const int size = there ? {size} : 0;
    asm volatile("{instruction} [%0], [%1], {size}, %2;"
                 ::"r"(place), "l"(global), "r"(size) : "memory");
}}"""
_COPY_WHERE = """\
// The same where `there`, else nothing.
__device__ __forceinline__ void {name}(void* shared, const void* global, bool there) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{{ .reg .pred there; setp.ne.s32 there, %2, 0;"
                 " @there {instruction} [%0], [%1], {size}; }}"
                 ::"r"(place), "l"(global), "r"((int)there) : "memory");
}}"""
_COPY_IF_WHERE = """\
// The same where `asked`: {size} bytes where `there`, else zeros.
__device__ __forceinline__ void {name}(void* shared, const void* global, bool there, bool asked) {{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const int size = there ? {size} : 0;
    asm volatile("{{ .reg .pred asked; setp.ne.s32 asked, %3, 0;"
                 " @asked {instruction} [%0], [%1], {size}, %2; }}"
                 ::"r"(place), "l"(global), "r"(size), "r"((int)asked) : "memory");
}}"""
_FORMS = {
    "copy_async": _COPY,
    "copy_async_if": _COPY_IF,
    "copy_async_where": _COPY_WHERE,
    "copy_async_if_where": _COPY_IF_WHERE,
}


def helper(name: str, size: str) -> str:
    """Return the function that copies `size` bytes."""
    return _FORMS[name].format(name=f"{name}_{size}", size=size, instruction=kernel.copy_instruction(int(size)))


def branch(p: KernelPrinter, op: Operation) -> None:
    """Print an if; one around asynchronous copies, and what is computed for them, as their predicate.

    In a branch ptxas computes the addresses of each copy anew, where those of predicated ones differ by a constant:
    some ten instructions a copy become five.
    """
    assert isinstance(op, scf.IfOp)
    if kernel.holds_copies_alone(op):
        for inner, asked in copies_in(p, op):
            _copy(p, inner, asked)
    else:
        control.branch(p, op)


def copies_in(p: KernelPrinter, op: scf.IfOp, around: str = "") -> Iterator[tuple[kernel.AsyncCopyOp, str]]:
    """Print what is computed in an if around copies, and yield each with the predicate that it is under."""
    asked = p.atoms(op.cond)[0].text
    if around:
        asked = p.variable("i1", "asked", Expr(f"{around} && {asked}", BOTH)).text
    for inner in kernel.operations_inside(op):
        if isinstance(inner, kernel.AsyncCopyOp):
            yield inner, asked
        elif isinstance(inner, scf.IfOp):
            p.consumed(inner)
            yield from copies_in(p, inner, asked)
        else:
            p.operation(inner)


def copy(p: KernelPrinter, op: Operation) -> None:
    """Print an asynchronous copy."""
    assert isinstance(op, kernel.AsyncCopyOp)
    _copy(p, op, "")


def _copy(p: KernelPrinter, op: kernel.AsyncCopyOp, asked: str) -> None:
    """Print a copy that fills with zeros where its own condition does not hold, and is made where it is asked for."""
    there = p.atoms(op.condition)[0].text if op.condition is not None else ""
    name = f"copy_async{'_if' * bool(there)}{'_where' * bool(asked)}"
    _print_copy(p, op, name, ", ".join(text for text in (there, asked) if text))


def _print_copy(p: KernelPrinter, op: kernel.AsyncCopyOp, name: str, conditions: str) -> None:
    """Print a copy by a helper, that takes conditions where there are some."""
    source, target = p.buffer(op.source), p.buffer(op.target)
    write, read = copied_places(p, op)
    p.helpers.add(f"{name} {op.size_bytes}")
    places = f"{target.name} + {place_text(write)}, {source.name} + {place_text(read)}"
    p.line(f"{name}_{op.size_bytes}({places}{conditions and f', {conditions}'});")


def copied_places(p: KernelPrinter, op: kernel.AsyncCopyOp) -> tuple[Place, Place]:
    """Return where a copy begins to write and to read, and note that it does."""
    require_copies(p)
    (read,) = places_of(p, op.source, op.source_index, op.source_offset.data, 1, 1)
    (write,) = places_of(p, op.target, op.target_index, op.target_offset.data, 1, 1)
    p.stored.add(op.target)
    p.settle(write)
    return write, read


def require_copies(p: KernelPrinter) -> None:
    """UnsupportedError where the device does not copy to shared memory by itself."""
    if p.language.compute_capability < 80:  # type: ignore[attr-defined]
        raise UnsupportedError("sm_80 is the first architecture that copies to shared memory by itself")


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
