"""From FX graphs of core ATen to networks, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...graph.network import Network, Value
from ...te import ExpressionError
from .discovery import converters
from .errors import UnsupportedNode
from .fx import FxNode, is_getitem, name_of
from .node import NO_UNITS, MatrixUnits, Node
from .types import Array, Tensor, TensorKind, array_of, memory_order, tensor_kind

_CHECKS = frozenset({"_assert_tensor_metadata.default", "_assert_async.default", "_assert_async.msg"})
"""Operators that compute nothing; where there is PyTorch to run them, they run."""


def convert(
    net: Network,
    node: FxNode,
    values: Mapping[FxNode, Value],
    is_optional: bool = False,
    units: MatrixUnits = NO_UNITS,
) -> list[Value | None]:
    """Add the operators of a node to a network; returns its results, None for those that are not computed.

    UnsupportedNode says why that cannot be done, be it that PyTorch gives another kind of result, or, of a node that is
    optional, that PyTorch computes it at less cost. `units` are the device's.
    """
    name = name_of(node)
    converter = converters().get(name)
    if converter is None:
        raise UnsupportedNode(f"operator {name} is not supported")
    made = converter(replace(_node(net, name, node, values), is_optional=is_optional, units=units))
    results = list(made) if isinstance(made, list | tuple) else [made]
    for value, wanted in zip(results, _kinds(node), strict=True):
        if value is not None and wanted is not None and TensorKind(value.shape, value.dtype) != wanted:
            raise UnsupportedNode(f"operator {name} gives {value} where PyTorch gives {wanted.dtype}{[*wanted.shape]}")
    return results


def _node(net: Network, name: str, node: FxNode, values: Mapping[FxNode, Value]) -> Node:
    dense: set[str] = set()

    def operand(given: Any, argument: str) -> Any:
        if isinstance(given, list | tuple):
            return [operand(item, argument) for item in given]
        if not isinstance(given, type(node)):
            return given
        if given.meta["val"].is_contiguous():
            dense.add(argument)
        return values[given]

    arguments = {argument: operand(given, argument) for argument, given in arguments_of(node).items()}
    return Node(net, name, node.name, arguments, _kinds(node), used_results(node), frozenset(dense))


def arguments_of(node: FxNode) -> dict[str, Any]:
    """Return the arguments of a node by their names in its operator's schema, with the defaults of those not given."""
    declared = node.target._schema.arguments
    found = {a.name: a.default_value for a in declared}
    found.update(zip((a.name for a in declared), node.args, strict=False))
    found.update(node.kwargs)
    return found


def used_results(node: FxNode) -> frozenset[int]:
    """Return the numbers of the results of a node that some other node reads."""
    if not isinstance(node.meta["val"], list | tuple):
        return frozenset({0})
    return frozenset(int(user.args[1]) for user in node.users if is_getitem(user) and user.users)


def _kinds(node: FxNode) -> list[TensorKind | None]:
    value = node.meta["val"]
    if not isinstance(value, list | tuple):
        return [tensor_kind(value)]
    used = used_results(node)
    return [tensor_kind(each) if number in used else None for number, each in enumerate(value)]


def refusal(node: FxNode, is_folded: bool = False, units: MatrixUnits = NO_UNITS) -> str | None:
    """Return why a node stays PyTorch's, None where it is converted: by converting it in a network of its own.

    One that is folded, as it depends on parameters alone, costs nothing in a run. `units` are the device's.
    """
    if node.op != "call_function":
        return f"{node.op} is not supported"
    if is_getitem(node):
        return None
    if name_of(node) in _CHECKS:
        return "a check of values, which PyTorch makes"
    if not hasattr(node.target, "_schema"):
        return f"a call of {name_of(node)} is not supported"
    if node.target._schema.is_mutable:
        return f"operator {name_of(node)} writes its arguments"
    net = Network()
    try:
        inputs = {each: _given(net, each) for each in node.all_input_nodes}
        convert(net, node, inputs, not is_folded, units)
    except (UnsupportedNode, ExpressionError, ValueError) as error:
        return str(error)
    except Exception as error:  # a bug of ours is no reason not to run the model
        return f"operator {name_of(node)} is not converted: {bug(error)}"
    return None


def bug(error: Exception) -> str:
    """Return the words for an error that nobody foresaw, where PyTorch runs what it stands in the way of."""
    return f"a bug of loopwright, {type(error).__name__}: {error}"


def _given(net: Network, node: FxNode) -> Value:
    """An input of a node as a constant where the graph holds its values, otherwise as a tensor of its kind."""
    if node.op == "get_attr":
        tensor_kind(node.meta["val"])
        return constant_of(net, node.name, getattr(node.graph.owning_module, node.target))
    return add_input(net, node)


def add_input(net: Network, node: FxNode) -> Value:
    """Add an input for a tensor."""
    kind = tensor_kind(node.meta["val"])
    return net.input(node.name, kind.shape, kind.dtype)


def constant_of(net: Network, name: str, tensor: Tensor, array: Callable[[Tensor], Array] = array_of) -> Value:
    """Return a constant on the memory of a tensor, where its elements are dense in memory, as `array` makes it."""
    order = memory_order(tensor.shape, tensor.stride())
    if order is None:
        return net.constant(array(tensor.contiguous()), name)
    return as_seen(net.constant(array(tensor.permute(order)), name), order)


def as_seen(value: Value, order: Sequence[int]) -> Value:
    """Return a tensor as PyTorch sees it, from one as it lies in memory, with its axes in that order."""
    plain = range(len(order))
    if tuple(order) == tuple(plain):
        return value
    made: Value = value.net.transpose(value, axes=[order.index(d) for d in plain])
    return made


@dataclass
class GraphImport:
    """A graph on its way to a network; `given` makes the value of a placeholder."""

    net: Network
    given: Callable[[FxNode], Value]
    reasons: dict[str, None] = field(default_factory=dict)
    values: dict[FxNode, Value] = field(default_factory=dict)

    def run(self, graph: Any) -> dict[FxNode, Value]:
        """Convert the nodes of a graph in order; what cannot be is a reason, and what depends on it is left out."""
        results: dict[FxNode, list[Value | None]] = {}
        for node in graph.nodes:
            if (
                node.op == "output"
                or name_of(node) in _CHECKS
                or any(each not in results for each in node.all_input_nodes)
            ):
                continue
            try:
                results[node] = self._converted(node, results)
            except UnsupportedNode as error:
                self.reasons.setdefault(str(error))
            except (ExpressionError, ValueError) as error:
                self.reasons.setdefault(f"{node.name}: {error}")
        return self.values

    def _converted(self, node: FxNode, results: Mapping[FxNode, list[Value | None]]) -> list[Value | None]:
        if node.op in ("placeholder", "get_attr"):
            made: list[Value | None] = [self.given(node)] if node.users else []
        elif is_getitem(node):
            made = [results[node.args[0]][node.args[1]]]
        elif node.op != "call_function" or not hasattr(node.target, "_schema"):
            raise UnsupportedNode(f"{node.op} of {name_of(node)} is not supported")
        else:
            made = convert(self.net, node, self.values)
        if len(made) == 1 and made[0] is not None:
            self.values[node] = made[0]
        return made
