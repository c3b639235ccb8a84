"""linalg.generic on tensors of a network: bodies inlined on whole tensors, or as the lines of one reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from ....graph.network import Value
from ....graph.operators.formula import number
from ..bodies import NAMED, PLAIN, Lines
from ..errors import UnsupportedOperation
from ..node import Node, known_values
from ..reader import name_of
from ._products import contracted
from ._reductions import joined, reduced

_BINARY = {
    AffineBinaryOpKind.Add: "add",
    AffineBinaryOpKind.Mul: "multiply",
    AffineBinaryOpKind.Mod: "mod",
    AffineBinaryOpKind.FloorDiv: "floor_divide",
}


@dataclass(frozen=True)
class Loops:
    """The iteration space of an operation: extents, which of them are reduced, and the maps of its operands."""

    extents: tuple[int, ...]
    parallel: tuple[int, ...]
    reduction: tuple[int, ...]
    maps: tuple[AffineMap, ...]

    @classmethod
    def of(cls, maps: Sequence[AffineMap], kinds: Sequence[str], shapes: Sequence[Sequence[int]]) -> Loops:
        """Find the extents from operands that an axis of the space stands alone in."""
        found: dict[int, int] = {}
        for each, shape in zip(maps, shapes, strict=True):
            for expression, extent in zip(each.results, shape, strict=True):
                if isinstance(expression, AffineDimExpr):
                    found[expression.position] = extent
        missing = [d for d in range(len(kinds)) if d not in found]
        if missing:
            raise UnsupportedOperation(f"the extent of loop d{missing[0]} is not that of any operand's axis")
        parallel = tuple(d for d, kind in enumerate(kinds) if kind == "parallel")
        reduction = tuple(d for d, kind in enumerate(kinds) if kind != "parallel")
        return cls(tuple(found[d] for d in range(len(kinds))), parallel, reduction, tuple(maps))

    def order(self, output: int) -> tuple[int, ...]:
        """Return the axes of the space that the axes of an output are."""
        results = self.maps[output].results
        order = tuple(e.position for e in results if isinstance(e, AffineDimExpr))
        still = all(isinstance(e, AffineDimExpr) or _is_zero(e) for e in results)
        if not still or sorted(order) != list(self.parallel):
            raise UnsupportedOperation(f"an output is written at {self.maps[output]}, not once at each place")
        return order


def generic_node(
    node: Node, inputs: Sequence[Value], starts: Sequence[Value], block: Block, loops: Loops
) -> list[Value]:
    """Compute an operation by its body, whose arguments are elements of the inputs, then of the outputs."""
    build = node.build
    shapes = [start.shape for start in starts]
    if not loops.reduction:
        made = _mapped(node, [*inputs, *starts], len(inputs), block, loops)
    else:
        orders = [loops.order(len(inputs) + k) for k in range(len(starts))]
        plain = [build.reshape(v, [loops.extents[d] for d in o]) for v, o in zip(starts, orders, strict=True)]
        alone = len(plain) == 1
        made = (
            [_reduced(node, inputs, plain[0], block, loops)] if alone else _several(node, inputs, plain, block, loops)
        )
    return [build.reshape(value, shape) for value, shape in zip(made, shapes, strict=True)]


def _is_zero(expression: AffineExpr) -> bool:
    return isinstance(expression, AffineConstantExpr) and expression.value == 0


def _mapped(node: Node, operands: Sequence[Value], count: int, block: Block, loops: Loops) -> list[Value]:
    """Inline a body on whole tensors, in the order of the space's axes."""
    space = tuple(loops.extents)
    arguments = [
        read_operand(node, value, each, loops) if argument.uses else value
        for value, each, argument in zip(operands, loops.maps, block.args, strict=True)
    ]
    made = node.with_indices(space).inline(block, arguments)
    results = []
    for position, value in enumerate(made):
        order = loops.order(count + position)
        results.append(node.build.transpose(node.build.broadcast(value, space), order))
    return results


def read_operand(node: Node, value: Value, places: AffineMap, loops: Loops) -> Value:
    """Return the elements of a tensor that each point of the space reads, axes that do not matter being 1."""
    build, rank = node.build, len(loops.extents)
    alone = [e.position if isinstance(e, AffineDimExpr) else None for e in places.results]
    ones = [_is_zero(e) and n == 1 for e, n in zip(places.results, value.shape, strict=True)]
    used = [d for d in alone if d is not None]
    if all(a is not None or one for a, one in zip(alone, ones, strict=True)) and len(set(used)) == len(used):
        kept = [k for k, a in enumerate(alone) if a is not None]
        value = build.reshape(value, tuple(value.shape[k] for k in kept))
        order = sorted(range(len(used)), key=lambda k: used[k])
        value = build.transpose(value, order)
        shape = [1] * rank
        for k, d in zip(range(len(order)), sorted(used), strict=True):
            shape[d] = value.shape[k]
        return build.reshape(value, shape)
    lines = Lines(node.program)
    words = [_line(lines, e, {d: f"i{d}" for d in range(rank)}) for e in places.results]
    lines.line(" ".join(["read:0", *words]))
    made: Value = build.apply("map_formula", value, shape=tuple(loops.extents), lines=tuple(lines.lines))
    return made


def _line(lines: Lines, expression: AffineExpr, names: dict[int, str]) -> str:
    """Return the token of an affine expression."""
    if isinstance(expression, AffineDimExpr):
        return names[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return number(expression.value, "int32")
    if isinstance(expression, AffineBinaryOpExpr) and expression.kind in _BINARY:
        sides = [_line(lines, side, names) for side in (expression.lhs, expression.rhs)]
        return lines.line(" ".join([_BINARY[expression.kind], *sides]))
    raise UnsupportedOperation(f"the index expression {expression} is not supported")


def _reduced(node: Node, inputs: Sequence[Value], start: Value, block: Block, loops: Loops) -> Value:
    held = block.args[len(inputs)]
    joining, combiner = _combiner(block, held, loops)
    build, order = node.build, loops.order(len(inputs))
    product = _as_product(node, inputs, block, joining, held, loops) if combiner == "add" else None
    if product is not None:
        return joined(build, combiner, product, start)
    value = next(v for v in joining.operands if v is not held)
    plain = _argument(value, block)
    if plain is not None and _is_permutation(loops.maps[plain], loops):
        whole = read_operand(node, inputs[plain], loops.maps[plain], loops)
        made = reduced(build, combiner, whole, loops.reduction, None)
        left = list(loops.parallel)
        return joined(build, combiner, build.transpose(made, [left.index(d) for d in order]), start)
    lines = _lines(node, inputs, block, loops, order)
    lines_until(lines, block, joining, {held})
    if value not in lines.tokens:
        raise UnsupportedOperation("what it reduces depends on what was reduced so far")
    token = lines.tokens[value]
    dtype = start.dtype
    if dtype == "bool":
        token = lines.line(f"cast:int8 {token}")
    made = build.apply(
        "reduce_formula",
        *inputs,
        shape=tuple(loops.extents[d] for d in order),
        reduced=tuple(loops.extents[d] for d in loops.reduction),
        lines=tuple(lines.lines),
        values=(token,),
        combiner=(combiner,),
    )
    return joined(build, combiner, build.cast(made, dtype), start)


def _combiner(block: Block, held: SSAValue, loops: Loops) -> tuple[Operation, str]:
    """Return the operation that joins what was reduced so far with an element, and its name."""
    last = block.last_op
    assert last is not None
    joining = last.operands[0].owner
    if not isinstance(joining, Operation) or held not in joining.operands or len(joining.operands) != 2:
        raise UnsupportedOperation("its body does not join what was reduced so far with an element")
    function = PLAIN.get(name_of(joining), "")
    known = {"or": "max", "and": "min"}.get(function) if "i1" in str(held.type) else NAMED.get(function)
    if known is None or (function in ("or", "and") and str(held.type) != "i1"):
        raise UnsupportedOperation(f"it reduces by {name_of(joining)}")
    return joining, known


def _argument(value: SSAValue, block: Block) -> int | None:
    return list(block.args).index(value) if value in block.args else None  # type: ignore[arg-type]


def _is_permutation(places: AffineMap, loops: Loops) -> bool:
    used = [e.position for e in places.results if isinstance(e, AffineDimExpr)]
    return len(used) == len(places.results) and sorted(used) == list(range(len(loops.extents)))


def _as_product(
    node: Node, inputs: Sequence[Value], block: Block, joining: Operation, held: SSAValue, loops: Loops
) -> Value | None:
    """Return sum(a * b) over axes that stand alone in the maps as a matrix product; None where it is none."""
    product = next(v for v in joining.operands if v is not held).owner
    if len(inputs) != 2 or not isinstance(product, Operation) or PLAIN.get(name_of(product)) != "multiply":
        return None
    sides = [_argument(_uncast(v), block) for v in product.operands]
    if sorted(s if s is not None else -1 for s in sides) != [0, 1]:
        return None
    axes = [[e.position for e in loops.maps[k].results if isinstance(e, AffineDimExpr)] for k in (0, 1)]
    if any(len(a) != len(loops.maps[k].results) or len(set(a)) != len(a) for k, a in enumerate(axes)):
        return None
    if set(loops.reduction) - (set(axes[0]) & set(axes[1])):
        return None
    dtype = node.dtype
    return product_of(node, inputs[0], inputs[1], axes, loops.reduction, loops.order(len(inputs)), dtype)


def _uncast(value: SSAValue) -> SSAValue:
    """Return what a value was before it was widened."""
    owner = value.owner
    if isinstance(owner, Operation) and name_of(owner) in ("arith.extf", "arith.extsi", "arith.sitofp"):
        return owner.operands[0]
    return value


def product_of(
    node: Node,
    x: Value,
    y: Value,
    axes: Sequence[Sequence[int]],
    summed: Sequence[int],
    order: Sequence[int],
    dtype: str,
) -> Value:
    """Multiply tensors whose axes carry numbers, and sum along those of `summed`; axes of the result are `order`."""
    left, right = list(axes[0]), list(axes[1])
    batch = [d for d in left if d in right and d not in summed]
    made = contracted(
        node.build,
        x,
        y,
        ([left.index(d) for d in batch], [right.index(d) for d in batch]),
        ([left.index(d) for d in summed], [right.index(d) for d in summed]),
        dtype,
    )
    free = [d for d in left if d not in right and d not in summed] + [
        d for d in right if d not in left and d not in summed
    ]
    now = [*batch, *free]
    return node.build.transpose(made, [now.index(d) for d in order])


def _lines(node: Node, inputs: Sequence[Value], block: Block, loops: Loops, order: Sequence[int]) -> Lines:
    """Return lines that read all inputs, where axes of the output are i0, i1, .. and those reduced k0, k1, .."""
    names = {d: f"i{k}" for k, d in enumerate(order)} | {d: f"k{k}" for k, d in enumerate(loops.reduction)}
    lines = Lines(node.program, axes=names)
    for position, argument in enumerate(block.args[: len(inputs)]):
        if argument.uses:
            words = [_line(lines, e, names) for e in loops.maps[position].results]
            lines.tokens[argument] = lines.line(" ".join([f"read:{position}", *words]))
    return lines


def lines_until(lines: Lines, block: Block, end: Operation, held: set[SSAValue]) -> None:
    """Write the operations of a body that do not depend on what was reduced so far."""
    depends = set[SSAValue](held)
    for op in block.ops:
        if op is end or op is block.last_op:
            continue
        if depends.intersection(op.operands):
            depends.update(op.results)
        else:
            lines.operation(op)


def _several(node: Node, inputs: Sequence[Value], starts: Sequence[Value], block: Block, loops: Loops) -> list[Value]:
    """Reduce to several outputs at once, as an index and its value: what depends on them alone is the combiner."""
    count, build = len(starts), node.build
    held = list(block.args[len(inputs) :])
    order = loops.order(len(inputs))
    lines = _lines(node, inputs, block, loops, order)
    last = block.last_op
    assert last is not None
    lines_until(lines, block, last, set(held))
    joining = Lines(node.program)
    for position, value in enumerate(held):
        joining.tokens[value] = f"a{position}"
    depends = set[SSAValue](held)
    elements: list[SSAValue | None] = [None] * count
    for op in block.ops:
        uses = depends.intersection(op.operands) or op is last
        if not uses:
            continue
        for operand in op.operands:
            if operand not in depends and operand not in joining.tokens:
                _place_element(operand, held, elements, joining, lines)
        if op is not last:
            depends.update(op.results)
            joining.operation(op)
    if any(e is None for e in elements):
        raise UnsupportedOperation("its body does not join as many elements as it has outputs")
    made = build.apply(
        "reduce_formula",
        *inputs,
        shape=tuple(loops.extents[d] for d in order),
        reduced=tuple(loops.extents[d] for d in loops.reduction),
        lines=tuple(lines.lines),
        values=tuple(lines.tokens[e] for e in elements if e is not None),
        combiner=tuple(joining.lines),
        joined=tuple(joining.tokens[v] for v in last.operands),
        identity=tuple(_start(s) for s in starts),
    )
    return list(made)


def _place_element(
    operand: SSAValue, held: Sequence[SSAValue], elements: list[SSAValue | None], joining: Lines, lines: Lines
) -> None:
    """Give an element the place of the output that is of its type, or write it as a constant of the combiner."""
    owner = operand.owner
    if isinstance(owner, Operation) and name_of(owner) == "arith.constant":
        joining.operation(owner)
        return
    for position, value in enumerate(held):
        if elements[position] is None and value.type == operand.type:
            elements[position] = operand
            joining.tokens[operand] = f"b{position}"
            return
    raise UnsupportedOperation("its body joins more elements than it has outputs")


def _start(start: Value) -> str:
    return number(known_values(start, "what it starts from").flat[0].item(), start.dtype)
