"""linalg on tensors: `generic` and what it is made of, fills, moves, reductions and elementwise operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir.affine import AffineMap

from ....graph.network import Value
from ..bodies import combiner_of
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from . import _scalar
from ._generic import Loops, generic_node, product_of, read_operand
from ._packing import packed, unpacked
from ._reductions import custom, joined, reduced


def operands_of(node: Node) -> tuple[list[Value], list[Value]]:
    """Return inputs and outputs of an operation on tensors."""
    sizes = node.ints("operandSegmentSizes")
    count = sizes[0] if sizes else len(node.operands) - len(node.op.results)
    if not node.op.results:
        raise UnsupportedOperation("it works on buffers: networks are of tensors")
    return list(node.operands[:count]), list(node.operands[count:])


@Converter
def generic(node: Node) -> list[Value]:
    inputs, starts = operands_of(node)
    kinds = [_kind(k) for k in node.need("iterator_types")]
    maps = [_map(m) for m in node.need("indexing_maps")]
    loops = Loops.of(maps, kinds, [v.shape for v in (*inputs, *starts)])
    return generic_node(node, inputs, starts, node.region(), loops)


def _map(given: Any) -> AffineMap:
    if not isinstance(given, AffineMap):
        raise UnsupportedOperation(f"an indexing map is an affine map, got {given}")
    return given


def _kind(given: Any) -> str:
    data = getattr(given, "data", given)
    return str(getattr(data, "value", data))


@Converter
def contract(node: Node) -> Value:
    inputs, starts = operands_of(node)
    maps = [_map(m) for m in node.need("indexing_maps")]
    return contraction(node, inputs, starts[0], maps)


def contraction(node: Node, inputs: Sequence[Value], start: Value, maps: Sequence[AffineMap]) -> Value:
    """Multiply and sum as maps say, whose results are axes."""
    axes = [[getattr(e, "position", -1) for e in m.results] for m in maps]
    if any(-1 in a for a in axes):
        raise UnsupportedOperation("its maps are not axes alone")
    summed = [d for d in axes[0] if d in axes[1] and d not in axes[2]]
    made = product_of(node, inputs[0], inputs[1], axes[:2], summed, axes[2], start.dtype)
    return joined(node.build, "add", made, start)


@Converter
def index(node: Node) -> Value:
    return node.indices[node.ints("dim")[0]]


@Converter
def fill(node: Node) -> Value:
    inputs, starts = operands_of(node)
    return node.build.broadcast(node.build.cast(inputs[0], starts[0].dtype), starts[0].shape)


@Converter
def copy(node: Node) -> Value:
    return node.build.cast(operands_of(node)[0][0], node.dtype)


@Converter
def transpose(node: Node) -> Value:
    return node.build.transpose(operands_of(node)[0][0], node.ints("permutation"))


@Converter
def broadcast(node: Node) -> Value:
    inputs, starts = operands_of(node)
    added = node.ints("dimensions")
    shape = [1 if d in added else n for d, n in enumerate(starts[0].shape)]
    return node.build.broadcast(node.build.reshape(inputs[0], shape), starts[0].shape)


@Converter
def map(node: Node) -> list[Value]:
    inputs, starts = operands_of(node)
    block = node.region()
    given = [*inputs, *starts][: len(block.args)]
    made = node.with_indices(node.shape).inline(block, given)
    return [node.build.broadcast(value, node.shape) for value in made]


@Converter
def reduce(node: Node) -> list[Value]:
    inputs, starts = operands_of(node)
    axes, block = sorted(node.ints("dimensions")), node.region()
    named = combiner_of(block, node.program)
    if len(inputs) == 1 and named is not None:
        return [reduced(node.build, named, inputs[0], axes, starts[0])]
    return custom(node, block, inputs, starts, axes, held_first=False)


pack = Converter(packed)
unpack = Converter(unpacked)


@Converter
def softmax(node: Node) -> Value:
    made: Value = node.build.apply("softmax", operands_of(node)[0][0], axis=node.ints("dimension")[0])
    return made


def _elementwise(function: Any) -> Converter:
    def convert(node: Node) -> Value:
        inputs, _ = operands_of(node)
        if isinstance(function, str):
            return node.build.elementwise(function, *inputs)
        made: Value = function(node.build, *inputs)
        return made

    return Converter(convert)


_FUNCTIONS: dict[str, Any] = {
    "abs": "abs", "ceil": "ceil", "erf": "erf", "exp": "exp", "floor": "floor", "log": "log", "negf": _scalar.negate,
    "reciprocal": "reciprocal", "round": "round", "rsqrt": "rsqrt", "sqrt": "sqrt", "square": "square", "tanh": "tanh",
    "add": _scalar.add, "sub": "subtract", "mul": _scalar.multiply, "div": _scalar.divide, "powf": _scalar.power,
    "max": "maximum", "max_signed": "maximum", "min": "minimum", "min_signed": "minimum", "select": "where",
}  # fmt: skip
abs = _elementwise("abs")
add = _elementwise(_scalar.add)
ceil = _elementwise("ceil")
div = _elementwise(_scalar.divide)
erf = _elementwise("erf")
exp = _elementwise("exp")
floor = _elementwise("floor")
log = _elementwise("log")
max = _elementwise("maximum")
min = _elementwise("minimum")
mul = _elementwise(_scalar.multiply)
negf = _elementwise(_scalar.negate)
powf = _elementwise(_scalar.power)
reciprocal = _elementwise("reciprocal")
round = _elementwise("round")
rsqrt = _elementwise("rsqrt")
select = _elementwise("where")
sqrt = _elementwise("sqrt")
square = _elementwise("square")
sub = _elementwise("subtract")
tanh = _elementwise("tanh")


@Converter
def elementwise(node: Node) -> Value:
    word = str(_kind(node.need("kind"))).strip("<> ")
    function = _FUNCTIONS.get(word)
    if function is None:
        raise UnsupportedOperation(f"elementwise operation '{word}' is not known")
    if node.get("indexing_maps") is None:
        return _elementwise(function)(node)  # type: ignore[no-any-return]
    inputs, starts = operands_of(node)
    maps = [_map(m) for m in node.get("indexing_maps")]
    loops = Loops.of(maps, ["parallel"] * len(starts[0].shape), [v.shape for v in (*inputs, *starts)])
    return node.build.broadcast(_mapped_function(node, function, inputs, loops), node.shape)


def _mapped_function(node: Node, function: Any, inputs: Sequence[Value], loops: Loops) -> Value:
    read = [read_operand(node, v, m, loops) for v, m in zip(inputs, loops.maps, strict=False)]
    made: Value = node.build.elementwise(function, *read) if isinstance(function, str) else function(node.build, *read)
    return made
