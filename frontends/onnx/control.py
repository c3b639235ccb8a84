"""Control flow that can be resolved when a model is imported: branches, loops of known length, sequences of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from ...graph.network import Network, Value
from .errors import NeedsConstantError, UnsupportedNode
from .model import nodes_of
from .node import Array, Operand, axis_of, numpy_type
from .reading import value_of
from .types import type_name

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Item: TypeAlias = "Operand | tuple[Operand, ...]"
"""A tensor, or a sequence of them."""

MOST_ITERATIONS = 4096
"""So many iterations of a loop are unrolled: each is nodes of the network, and kernels of its plan."""
MOST_UNROLLED_NODES = 100_000
"""So many nodes may the iterations of a loop come to: ten times those of the largest models that are known."""


class Scope(Protocol):
    """An import, as control flow sees it."""

    net: Network

    def constants(self, graph: GraphProto) -> None:
        """Take the initializers of a subgraph, once."""

    def subgraph(self, graph: GraphProto, given: Mapping[str, Item], read: Sequence[str]) -> list[Item]:
        """Convert the nodes of a subgraph for these inputs, which depend on the tensors `read`; return its outputs."""


Resolver = Callable[[Scope, "NodeProto", list[Any]], Sequence[Item]]


def resolved(scope: Scope, node: NodeProto, operands: Sequence[Item | None]) -> Sequence[Item]:
    """Return the results of a node of RESOLVERS; UnsupportedNode where it depends on what is not known."""
    return RESOLVERS[node.op_type](scope, node, list(operands))


def passes_sequences(node: NodeProto, operands: Sequence[Item | None]) -> bool:
    """True for an operator that hands on a sequence as it is; UnsupportedNode where another is given one."""
    for name, operand in zip(node.input, operands, strict=True):
        if isinstance(operand, tuple) and node.op_type != "Identity":
            raise UnsupportedNode(f"input '{name}' is a sequence, not a tensor")
    return any(isinstance(operand, tuple) for operand in operands)


def _known(node: NodeProto, position: int, operand: Item | None, what: str) -> Array:
    found = operand.constant if isinstance(operand, Value) else operand
    if not isinstance(found, np.ndarray):
        raise NeedsConstantError(node.input[position], what)
    return found


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {a.name: a.g if a.HasField("g") else value_of(a) for a in node.attribute}


# -- branches and loops -----------------------------------------------------------------------------------------------


def _if(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    """The branch that a known condition takes."""
    condition = _known(node, 0, operands[0], "condition")
    graph = _attributes(node)["then_branch" if condition.reshape(-1)[0] else "else_branch"]
    scope.constants(graph)
    return scope.subgraph(graph, {}, [])


def _loop(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    """All iterations of a loop, as often as a known count and known conditions say."""
    body, count = _attributes(node)["body"], len(node.input) - 2
    trips = None if operands[0] is None else int(_known(node, 0, operands[0], "number of iterations").reshape(-1)[0])
    going: Item = np.array(True) if operands[1] is None else operands[1]
    carried: list[Item] = operands[2:]
    names = [info.name for info in body.input]
    rows: list[list[Item]] = []
    scope.constants(body)
    while (trips is None or len(rows) < trips) and _holds(node, going, not rows):
        _require_few(body, len(rows) + 1 if trips is None else trips)
        given = dict(zip(names, [np.array(len(rows)), going, *carried], strict=True))
        going, *made = scope.subgraph(body, given, node.input)
        carried = made[:count]
        rows.append(made[count:])
    return [*carried, *_stacked(scope, body, rows, count + 1)]


def _holds(node: NodeProto, going: Item, first: bool) -> bool:
    """True where there is an iteration, which must be known; the first time an input says it."""
    known = going.constant if isinstance(going, Value) else going
    if not isinstance(known, np.ndarray):
        if first:
            raise NeedsConstantError(node.input[1], "condition")
        raise UnsupportedNode("whether it goes on depends on values that are not known")
    return bool(known.reshape(-1)[0])


def _require_few(body: GraphProto, iterations: int) -> None:
    if iterations > MOST_ITERATIONS:
        raise UnsupportedNode(
            f"{iterations:,} iterations or more; a loop is unrolled, with at most {MOST_ITERATIONS:,}"
        )
    total = iterations * len(nodes_of(body))
    if total > MOST_UNROLLED_NODES:
        raise UnsupportedNode(f"unrolled it has {total:,} nodes, it may have {MOST_UNROLLED_NODES:,}")


def _stacked(scope: Scope, body: GraphProto, rows: Sequence[Sequence[Item]], first: int) -> list[Item]:
    """Stack what iterations give beside the states, from output `first` of the body on."""
    found: list[Item] = []
    for k, info in enumerate(body.output[first:]):
        if not rows:
            dims = info.type.tensor_type.shape.dim
            dtype = type_name(info.type.tensor_type.elem_type)
            if not all(dim.HasField("dim_value") for dim in dims):
                raise UnsupportedNode(f"without an iteration, the shape of '{info.name}' is not known")
            found.append(np.zeros((0, *(dim.dim_value for dim in dims)), numpy_type(dtype)))
            continue
        found.append(_joined(scope.net, [row[k] for row in rows], 0, new_axis=True))
    return found


def _scan(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    """All iterations over the slices of some inputs."""
    attributes = _attributes(node)
    body, scanned = attributes["body"], int(attributes["num_scan_inputs"])
    if len(body.input) != len(operands):
        raise UnsupportedNode("lengths of samples, which version 8 of the operator has, are not supported")
    states: list[Item] = operands[: len(operands) - scanned]
    slices = []
    axes, turned = (attributes.get(f"scan_input_{word}") or [0] * scanned for word in ("axes", "directions"))
    for operand, axis, backwards in zip(operands[len(states) :], axes, turned, strict=True):
        parts = _unstacked(scope.net, operand, axis_of(int(axis), len(operand.shape)))
        slices.append(parts[::-1] if backwards else parts)
    length = len(slices[0])
    _require_few(body, length)
    scope.constants(body)
    names, rows = [info.name for info in body.input], []
    count = len(states)
    for k in range(length):
        made = scope.subgraph(body, dict(zip(names, [*states, *(s[k] for s in slices)], strict=True)), node.input)
        states = made[:count]
        rows.append(made[count:])
    results = list(states)
    outputs = len(body.output) - count
    axes, turned = (attributes.get(f"scan_output_{word}") or [0] * outputs for word in ("axes", "directions"))
    for k in range(outputs):
        made = [row[k] for row in rows]
        rank = 1 + (0 if isinstance(made[0], tuple) else len(made[0].shape))
        place = axis_of(int(axes[k]), rank)
        results.append(_joined(scope.net, made[::-1] if turned[k] else made, place, new_axis=True))
    return results


def _unstacked(net: Network, operand: Operand, axis: int) -> list[Operand]:
    """Return the slices along an axis, without it."""
    length = operand.shape[axis]
    if isinstance(operand, np.ndarray):
        return [np.asarray(operand.take(k, axis=axis)) for k in range(length)]
    made = net.split(operand, sections=length, axis=axis) if length > 1 else (operand,)
    shape = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return [net.reshape(part, shape=shape) for part in made]


def _joined(net: Network, parts: Sequence[Item], axis: int, new_axis: bool) -> Operand:
    """Stack tensors along a new axis, or concatenate them."""
    if not _are_tensors(parts):
        raise UnsupportedNode("sequences of sequences are not supported")
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.stack(parts, axis) if new_axis else np.concatenate(parts, axis)  # type: ignore[arg-type]
    full = [part for part in parts if new_axis or part.shape[axis]]
    values = [part if isinstance(part, Value) else net.constant(part) for part in full]
    made: Value = net.apply("stack" if new_axis else "concatenate", *values, axis=axis)
    return made


def _are_tensors(parts: Sequence[Item]) -> TypeGuard[Sequence[Operand]]:
    return not any(isinstance(part, tuple) for part in parts)


# -- sequences --------------------------------------------------------------------------------------------------------


def _construct(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    return [tuple(operands)]


def _place(node: NodeProto, operands: list[Any], position: int, extent: int, last: int) -> int:
    """A place in a sequence, counted from the end where it is negative."""
    if len(operands) <= position or operands[position] is None:
        return last
    place = int(_known(node, position, operands[position], "position").reshape(-1)[0])
    if not -extent <= place < max(extent, last + 1):
        raise UnsupportedNode(f"position {place} is not in a sequence of {len(operands[0])}")
    return place + extent if place < 0 else place


def _insert(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    items, tensor = operands[:2]
    place = _place(node, operands, 2, len(items), len(items))
    return [(*items[:place], tensor, *items[place:])]


def _erase(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    (items, place) = operands[0], _place(node, operands, 1, len(operands[0]), len(operands[0]) - 1)
    return [(*items[:place], *items[place + 1 :])]


def _at(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    return [operands[0][_place(node, operands, 1, len(operands[0]), len(operands[0]) - 1)]]


def _length(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    return [np.array(len(operands[0]))]


def _split(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    """Slices along an axis: of one size, the last perhaps smaller, of given sizes, or single ones without the axis."""
    x, attributes = operands[0], _attributes(node)
    axis = axis_of(int(attributes.get("axis", 0)), len(x.shape))
    extent = x.shape[axis]
    if len(operands) < 2 or operands[1] is None:
        parts = _unstacked(scope.net, x, axis)
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        keep = attributes.get("keepdims", 1)
        return [tuple(_reshaped(scope.net, part, shape) if keep else part for part in parts)]
    sizes = _known(node, 1, operands[1], "split")
    if sizes.ndim == 0:
        each = int(sizes)
        sizes = np.array([min(each, extent - start) for start in range(0, extent, each)])
    if (sizes < 1).any() or sizes.sum() != extent:
        raise UnsupportedNode(f"parts of {sizes.tolist()} do not make up axis {axis} of shape {tuple(x.shape)}")
    cuts = np.cumsum(sizes)[:-1].tolist()
    if isinstance(x, np.ndarray):
        return [tuple(np.split(x, cuts, axis))]
    return [tuple(scope.net.split(x, sections=cuts, axis=axis)) if cuts else (x,)]


def _reshaped(net: Network, part: Operand, shape: tuple[int, ...]) -> Operand:
    if isinstance(part, np.ndarray):
        return part.reshape(shape)
    made: Value = net.reshape(part, shape=shape)
    return made


def _concatenate(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    items, attributes = operands[0], _attributes(node)
    if not items:
        raise UnsupportedNode("an empty sequence has no tensors to join")
    new_axis = bool(attributes.get("new_axis", 0))
    axis = axis_of(int(attributes["axis"]), len(items[0].shape) + new_axis)
    return [_joined(scope.net, items, axis, new_axis)]


# -- optional values --------------------------------------------------------------------------------------------------


def _same(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    if not operands or operands[0] is None:
        raise UnsupportedNode("an optional value without an element is not supported")
    return [operands[0]]


def _is_there(scope: Scope, node: NodeProto, operands: list[Any]) -> Sequence[Item]:
    return [np.array(bool(operands) and operands[0] is not None)]


RESOLVERS: dict[str, Resolver] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SplitToSequence": _split,
    "ConcatFromSequence": _concatenate,
    "Optional": _same,
    "OptionalGetElement": _same,
    "OptionalHasElement": _is_there,
}
"""Operators that the import itself resolves."""
