"""StableHLO's calls, and operations that are refused with the reason."""

from __future__ import annotations

from xdsl.ir import Block

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from . import _special

_IDENTITIES = {
    "Sharding", "annotate_device_placement", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
    "xla.sdy.FuncResultSharding", "MoveToHost", "MoveToDevice", "Annotate",
}  # fmt: skip
"""Custom calls that say where a tensor lies, and compute nothing."""
_FUNCTIONS = {"mhlo.erf": "erf", "mhlo.tan": "tan", "mhlo.asin": "asin", "mhlo.acos": "acos", "mhlo.sinh": "sinh"}
_FUNCTIONS |= {"mhlo.cosh": "cosh", "mhlo.asinh": "asinh", "mhlo.acosh": "acosh", "mhlo.atanh": "atanh"}
_MOST_ITERATIONS = 512
"""A loop is unrolled so often: nobody measured where compiling it gets slow."""


@Converter
def custom_call(node: Node) -> object:
    target = str(node.need("call_target_name"))
    if target in _IDENTITIES and len(node.operands) == 1:
        return node.value()
    if target in _FUNCTIONS:
        return node.build.elementwise(_FUNCTIONS[target], node.value())
    if target == "mhlo.erf_inv":
        return _special.erf_inv(node.build, node.value())
    raise UnsupportedOperation(f"it calls '{target}', which is code outside of the program")


@Converter
def composite(node: Node) -> object:
    return node.inline(str(node.need("decomposition")), node.operands)


@Converter
def if_(node: Node) -> object:
    return _selected(node, node.value(), [node.region(1), node.region(0)])


@Converter
def case(node: Node) -> object:
    return _selected(node, node.value(), [node.region(k) for k in range(len(node.op.regions))])


def _selected(node: Node, index: Value, blocks: list[Block]) -> list[Value]:
    """Compute one branch where the index is known, else all of them, and select; branches have no effects."""
    build, last = node.build, len(blocks) - 1
    known = index.constant
    if known is not None:
        place = int(known.reshape(()))
        return list(node.inline(blocks[place if 0 <= place <= last else last], []))
    results = [list(node.inline(block, [])) for block in blocks]
    found = results[-1]
    for k in range(last - 1, -1, -1):
        here = build.elementwise("equal", build.cast(index, "int32"), build.number(k, "int32"))
        found = [build.elementwise("where", here, a, b) for a, b in zip(results[k], found, strict=True)]
    return found


@Converter
def while_(node: Node) -> object:
    """Unroll the loop, where what it goes on by is known in each iteration."""
    carried = list(node.operands)
    for _ in range(_MOST_ITERATIONS):
        known = node.inline(node.region(0), carried)[0].constant
        if known is None:
            raise UnsupportedOperation("how often it loops depends on the inputs: loops are unrolled")
        if not known.reshape(()):
            return carried
        carried = list(node.inline(node.region(1), carried))
    raise UnsupportedOperation(f"loops are unrolled up to {_MOST_ITERATIONS} iterations")


def _refused(reason: str) -> Converter:
    def refuse(node: Node) -> Value:
        raise UnsupportedOperation(reason)

    return Converter(refuse)


_RANDOM = "random numbers are not drawn in a network: make them outside, and give them as an input"
_COMPLEX = "complex numbers are not supported"
_ONE_DEVICE = "a network runs on one device: collectives are not imported"
_QUANTIZED = "types that carry a scale are not supported: lower it to integers and floats first"
_SIZES = "its sizes are operands: lower the program for shapes that are known"
_TUPLE = "tuples are not supported: give the tensors one by one"
rng = _refused(_RANDOM)
rng_bit_generator = _refused(_RANDOM)
fft = _refused("Fourier transforms are not supported")
cholesky = _refused("factorisations are not supported: JAX computes them outside")
triangular_solve = _refused("systems of equations are not solved in a network")
complex = _refused(_COMPLEX)
real = _refused(_COMPLEX)
imag = _refused(_COMPLEX)
all_reduce = _refused(_ONE_DEVICE)
all_gather = _refused(_ONE_DEVICE)
all_to_all = _refused(_ONE_DEVICE)
collective_broadcast = _refused(_ONE_DEVICE)
collective_permute = _refused(_ONE_DEVICE)
reduce_scatter = _refused(_ONE_DEVICE)
partition_id = _refused(_ONE_DEVICE)
replica_id = _refused(_ONE_DEVICE)
send = _refused(_ONE_DEVICE)
recv = _refused(_ONE_DEVICE)
infeed = _refused("a network's inputs are its arguments")
outfeed = _refused("a network's outputs are its results")
uniform_quantize = _refused(_QUANTIZED)
uniform_dequantize = _refused(_QUANTIZED)
dynamic_conv = _refused(_SIZES)
dynamic_gather = _refused(_SIZES)
set_dimension_size = _refused(_SIZES)
tuple = _refused(_TUPLE)
get_tuple_element = _refused(_TUPLE)
