"""Models some of whose results are sized by values: the nodes before those are compiled, the rest runs in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .importer import SIZED_BY_VALUES
from .model import OLDEST, inputs_of, nodes_of, opsets
from .tail_operators import Compile, tail_operators
from .versions import Versions

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]

_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators that read no elements."""


@dataclass
class DividedModel:
    """A model in two parts, by the names of tensors: `made` by the first are `given` to the second, or returned."""

    head: Versions | None
    made: list[str]
    tail: ReferenceEvaluator
    given: list[str]
    outputs: list[str]

    def compile_known(self) -> None:
        """Compile the first part now if the model says all shapes."""
        if self.head is not None:
            self.head.compile_known()

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Return all outputs for all inputs by name."""
        values = dict(feeds)
        if self.head is not None:
            values.update(zip(self.made, self.head.run(feeds), strict=True))
        found = self.tail.run(None, {name: values[name] for name in self.given})
        values.update(zip(self.tail.output_names, map(np.asarray, found), strict=True))
        return [values[name] for name in self.outputs]


def versions_of(
    model: ModelProto, target: str, options: Mapping[str, Any], most: int | None
) -> Versions | DividedModel:
    """Return a model's versions; of one with results that are sized by values, those of the part before them.

    OnnxImportError where that is not supported.
    """
    first, last = _parts(model)
    if not last:
        return Versions(model, target, options, most)
    outputs = [info.name for info in model.graph.output]
    wanted = dict.fromkeys(name for node in last for name in _read(node))
    of_inputs = {info.name for info in inputs_of(model.graph)}
    of_first = {name for node in first for name in node.output if name}
    made = [name for name in dict.fromkeys([*wanted, *outputs]) if name in of_first]
    head = Versions(_head(model, first, made), target, options, most) if made else None
    given = [name for name in wanted if name in of_first or name in of_inputs]
    return DividedModel(
        head, made, _tail(model, last, given, outputs, lambda one: Versions(one, target, options)), given, outputs
    )


def _parts(model: ModelProto) -> tuple[list[NodeProto], list[NodeProto]]:
    """Return the nodes of a graph that are compiled, and those that are sized by values or depend on one of those."""
    first, last = [], []
    varying = {info.name for info in inputs_of(model.graph)}
    late: set[str] = set()
    for node in model.graph.node:
        read = _read(node)
        if late.intersection(read) or (varying.intersection(read) and _is_sized_by_values(node, varying)):
            late.update(node.output)
            last.append(node)
        else:
            first.append(node)
        if node.op_type not in _OF_SHAPES and varying.intersection(read):
            varying.update(node.output)
    return first, last


def _is_sized_by_values(node: NodeProto, varying: Set[str]) -> bool:
    """True where a node, or one in a branch of it, has a result that `varying` tensors decide the extents of."""
    if node.op_type in SIZED_BY_VALUES:
        return not varying.isdisjoint(node.input)
    return any(each.op_type in SIZED_BY_VALUES for each in _with_branches(node)[1:])


def _read(node: NodeProto) -> list[str]:
    """Return the names that a node reads, and those that its branches do, of tensors of their own among them."""
    return [name for each in _with_branches(node) for name in each.input if name]


def _with_branches(node: NodeProto) -> Sequence[NodeProto]:
    return [node, *(each for attribute in node.attribute if attribute.HasField("g") for each in nodes_of(attribute.g))]


def _head(model: ModelProto, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> ModelProto:
    from onnx import ModelProto as Model
    from onnx import TypeProto, helper

    made = Model()
    made.CopyFrom(model)
    del made.graph.node[:], made.graph.output[:]
    made.graph.node.extend(nodes)
    made.graph.output.extend(helper.make_value_info(name, TypeProto()) for name in outputs)
    return made


def _tail(
    model: ModelProto, nodes: Sequence[NodeProto], given: Sequence[str], outputs: Sequence[str], compiled: Compile
) -> ReferenceEvaluator:
    from onnx import TypeProto, helper
    from onnx.reference import ReferenceEvaluator

    read = {name for node in nodes for name in _read(node)}
    made = {name for node in nodes for name in node.output}
    graph = helper.make_graph(
        nodes,
        "tail",
        [helper.make_value_info(name, TypeProto()) for name in given],
        [helper.make_value_info(name, TypeProto()) for name in outputs if name in made],
        [tensor for tensor in model.graph.initializer if tensor.name in read],
    )
    weights = {tensor.name: tensor for tensor in graph.initializer}
    made_by = tail_operators(weights, opsets(model).get("", OLDEST), compiled)
    proto = helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions)
    return ReferenceEvaluator(proto, new_ops=made_by)
