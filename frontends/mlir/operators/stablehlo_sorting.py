"""StableHLO's sort: elements are moved to the places that counting those before them gives."""

from __future__ import annotations

from collections.abc import Sequence

from ....graph.network import Value
from ..bodies import Lines
from ..discovery import Converter
from ..node import Node


@Converter
def sort(node: Node) -> list[Value]:
    """Sort several tensors by one comparator, stably: each element is compared with all others of its row."""
    rank = len(node.shape)
    axis = node.ints("dimension", [-1])[0] % rank
    ranks = _ranks(node, axis)
    return [_moved(node, x, ranks, axis) for x in node.operands]


def _ranks(node: Node, axis: int) -> Value:
    """Return the place of each element: the number of those before it, and of the earlier ones of its equals."""
    block, count = node.region(), len(node.operands)
    own, other = _places(len(node.shape), axis)
    lines = Lines(node.program)
    here = [lines.line(f"read:{k} {own}") for k in range(count)]
    there = [lines.line(f"read:{k} {other}") for k in range(count)]

    def is_before(first: Sequence[str], second: Sequence[str]) -> str:
        tokens = [token for pair in zip(first, second, strict=True) for token in pair]
        lines.tokens = dict(zip(block.args, tokens, strict=True))
        lines.block(block.ops)
        last = block.last_op
        assert last is not None
        return lines.token(last.operands[0])

    ahead, behind = is_before(there, here), is_before(here, there)
    tie = lines.line(f"and {lines.line(f'not {behind}')} {lines.line(f'less k0 i{axis}')}")
    counted = lines.line(f"cast:int32 {lines.line(f'or {ahead} {tie}')}")
    made: Value = node.build.apply(
        "reduce_formula",
        *node.operands,
        shape=node.shape,
        reduced=(node.shape[axis],),
        lines=tuple(lines.lines),
        values=(counted,),
        combiner=("add",),
    )
    return made


def _moved(node: Node, x: Value, ranks: Value, axis: int) -> Value:
    """Return the elements at their places: a sum over the row, all but one term of which are 0."""
    build, kind = node.build, "int8" if x.dtype == "bool" else x.dtype
    _, other = _places(len(x.shape), axis)
    lines = (
        f"read:0 {other}",
        f"read:1 {other}",
        f"equal t0 i{axis}",
        f"select t2 t1 0:{kind}",
    )
    made: Value = build.apply(
        "reduce_formula",
        ranks,
        build.cast(x, kind),
        shape=x.shape,
        reduced=(x.shape[axis],),
        lines=lines,
        values=("t3",),
        combiner=("add",),
    )
    return build.cast(made, x.dtype)


def _places(rank: int, axis: int) -> tuple[str, str]:
    """Return the tokens of an element's place, and of that of another one in its row."""
    own = [f"i{d}" for d in range(rank)]
    return " ".join(own), " ".join([*own[:axis], "k0", *own[axis + 1 :]])
