"""Loops, branches, threads and what they do together."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...passes.analysis.unrolling import even_factor, factor_of, unroll_factor, unrolled_instructions
from ..unsupported import UnsupportedError
from .expression import Expr
from .printer import Handler, KernelPrinter


def loop(p: KernelPrinter, op: Operation) -> None:
    """Print a loop; nothing where it never runs, its body alone where it runs once."""
    low, high, step, *carried = op.operands
    if carried:
        raise UnsupportedError("loops of the kernel dialect carry no values")
    body = op.regions[0].blocks[0]
    counter = body.args[0]
    bounds = [p.scalar(value) if _is_number(p.scalar(value)) else p.atoms(value)[0] for value in (low, high, step)]
    lowest, trips = bounds[0].number, _trips([bound.number for bound in bounds])
    if trips == 0:
        return
    if trips == 1:
        p.define_literal(counter, [p.literal(cast("int", lowest), "index")])
        p.block(body)
        return
    p.settle_all()
    unroll = op.attributes.get(kernel.UNROLL)
    if unroll is not None:
        p.line(p.language.unroll(factor_of(unroll)))
    start, end_text, by_text = (bound.text for bound in bounds)
    with p.scope():
        name = p.names.fresh(counter.name_hint or "i")
        p.define_literal(counter, [Expr(name, natural=lowest is not None and lowest >= 0)])
        following = f"++{name}" if by_text == "1" else f"{name} += {by_text}"
        before = len(p.lines)
        with p.braces(f"for ({p.type_of('index')} {name} = {start}; {name} < {end_text}; {following})"):
            _body(p, body)
        if unroll is None and trips is not None:
            factor = _wanted_factor(p, body, trips, len(p.lines) - before - 2)
            if factor > 1:
                p.lines.insert(before, f"{p.indent}{p.language.unroll(None if factor == trips else factor)}")


def _wanted_factor(p: KernelPrinter, body: Block, trips: int, statements: int) -> int:
    """Return by how much to unroll a loop that the kernel says nothing of; 1 to leave it to the language's compiler."""
    limit = p.language.unrolled_instructions
    instructions = unrolled_instructions(body) if limit else None
    if instructions is not None:
        return even_factor(trips, instructions, limit)
    if any(isinstance(inner, _KEEPS_LOOP) for inner in body.walk()):
        return 1
    return unroll_factor(trips, statements, p.language.unrolled_statements)


def _trips(bounds: list[int | None]) -> int | None:
    """Return how often a loop from, to and by these numbers runs; None where one is not known."""
    first, end, by = bounds
    if first is None or end is None or by is None:
        return None
    return max(0, -(-(end - first) // by))


_KEEPS_LOOP = (scf.ForOp, kernel.BarrierOp, kernel.ArriveOp, kernel.ClusterBarrierOp)
"""Operations for which a loop's compiler is not asked to unroll it."""


def _is_number(expression: Expr) -> bool:
    return expression.number is not None


def branch(p: KernelPrinter, op: Operation) -> None:
    """Print an if."""
    if op.results:
        raise UnsupportedError("branches of the kernel dialect give no values")
    condition = p.scalar(op.operands[0])
    then, *other = (region.blocks[0] for region in op.regions if region.blocks)
    p.settle_all()
    with p.braces(f"if ({condition.text})"):
        _body(p, then)
    if other and any(not isinstance(inner, scf.YieldOp) for inner in other[0].ops):
        p.lines.pop()
        with p.braces("} else"):
            _body(p, other[0])


def _body(p: KernelPrinter, block: Block) -> None:
    p.block(block)
    p.settle_all()


def thread(p: KernelPrinter, op: Operation) -> None:
    """Print a block or thread index."""
    assert isinstance(op, kernel.ThreadOp)
    axis = op.axis.data
    known = p.axes.get(axis)
    if known is None:
        if p.axis_size(axis) == 1:
            known = p.literal(0, "index")
        else:
            text = p.language.thread_axes[axis]
            hint = op.result.name_hint or f"{axis[0]}{axis[-1]}"
            known = Expr(p.names.outermost(hint), natural=True)
            p.head.append(f"const {p.type_of('index')} {known.text} = {text};")
        p.axes[axis] = known
    p.define_literal(op.result, [known])


def barrier(p: KernelPrinter, op: Operation) -> None:
    """Print a barrier of the thread block."""
    p.settle_all(keep_local=True)
    p.line(p.language.barrier(global_memory=bool(p.passed)))


def nothing(p: KernelPrinter, op: Operation) -> None:
    """Print nothing."""


CONTROL: dict[type[Operation], Handler] = {
    scf.ForOp: loop,
    scf.IfOp: branch,
    scf.YieldOp: nothing,
    func.ReturnOp: nothing,
    kernel.ThreadOp: thread,
    kernel.BarrierOp: barrier,
}
