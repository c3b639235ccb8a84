"""From an ONNX model to a network, node by node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...backends.host_memory import host_memory_bytes
from ...dialects.late import LateModule
from ...dialects.numpy_types import ELEMENT_TYPES
from ...graph.layout import in_layout
from ...graph.network import Network, Value
from ...passes.collector import sparing_old_objects
from .control import RESOLVERS, Item, passes_sequences, resolved
from .discovery import STANDARD, converters, has_converter
from .errors import (
    EmptyTensorError,
    NeedsConstantError,
    NeedsInputsError,
    OnnxImportError,
    TooLargeError,
    UnsupportedNode,
)
from .folding import evaluate
from .model import (
    OLDEST,
    PreparedModel,
    declared_shape,
    inputs_of,
    nodes_of,
    opsets,
    prepare,
    read_model,
    unsupported_inputs,
)
from .node import Node, Operand, numpy_type
from .reading import fits, identifier, is_known, label_of, place_of, value_of
from .sizes import TensorSize, inferred_sizes, require_memory
from .stand_ins import StandIns
from .types import type_name

if TYPE_CHECKING:
    import onnx
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto
else:
    onnx = LateModule("onnx")

Array = npt.NDArray[Any]

SIZED_BY_VALUES = frozenset({"NonZero", "Unique", "NonMaxSuppression", "StringSplit"})
"""Operators whose result has as many elements as their data say."""
_BY_VALUES = ": the shape of its result depends on values that are not known, and shapes are constants"


@sparing_old_objects
def from_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
    name: str | None = None,
    layout: str | None = "auto",
) -> Network:
    """Import an ONNX model as a network: a path (weights may lie in files beside it), its bytes, or a ModelProto.

    `shapes` gives extents of inputs that the model leaves open, `constants` values of inputs that are to be the same in
    every run. Operator sets from 7 on. OnnxImportError lists everything that is not supported, before any work.
    Feature maps, NCHW in every model, are brought into `layout`, but for inputs and outputs: "auto" takes NHWC where it
    is faster, "NCHW" or None leaves them as they are.
    """
    for what, given in (("shapes", shapes), ("constants", constants)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{what} are given by the names of inputs, {what}={{'x': ...}}, got {type(given).__name__}")
    called, proto = read_model(model, name)
    try:
        importer = _Importer(called, prepare(called, proto), shapes or {}, constants or {})
        return in_layout(importer.run(), layout)
    except UnicodeDecodeError as error:
        raise OnnxImportError(called, [f"it is not valid: it holds text that is not UTF-8: {error}"]) from error
    except RecursionError as error:
        raise OnnxImportError(called, ["its graphs are nested too deeply"]) from error


class _RefusedError(Exception):
    """A node cannot be converted for reasons that are known already."""


class _Importer:
    """One import. A tensor of the model is a value of the network, an array that is known, or `None`: not converted.

    A sequence is a tuple of them. It is the `Scope` of control flow.
    """

    def __init__(
        self, name: str, prepared: PreparedModel, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]
    ) -> None:
        self.name, self.model, self.prepared = name, prepared.model, prepared
        self.opsets = {"": OLDEST, **opsets(self.model)}
        self.shapes, self.values = shapes, constants
        self.net = Network(identifier(name))
        self.tensors: dict[str, Item | None] = {"": None}
        self.lifted: dict[str, tuple[Array, Value]] = {}
        self.depends: dict[str, frozenset[str]] = {}
        self.reasons: dict[str, None] = {}
        self.wanted: dict[str, str] = {}
        self.open: dict[str, None] = {}
        self.stand_ins = StandIns(self.net, prepared)
        self.unknown: dict[tuple[str, str], list[str]] = {}
        self.held_bytes = self.computed_bytes = 0

    def run(self) -> Network:
        self._inputs()
        self.constants(self.model.graph, self.prepared.large)
        self._nodes(self.model.graph)
        self._unknown_operators()
        if not self.reasons:
            self._outputs()
        if self.wanted and self.reasons.keys() == self.wanted.keys():
            raise NeedsInputsError(self.name, list(self.reasons), self._inputs_behind(self.wanted.values()))
        if self.reasons:
            raise OnnxImportError(self.name, list(self.reasons), [*self.wanted, *self.open])
        return self.net

    def _refuse(self, reason: str) -> None:
        self.reasons.setdefault(reason)

    def _unknown_operators(self) -> None:
        for (domain, operator), labels in sorted(self.unknown.items()):
            what = f"operator {operator}" + ("" if domain in STANDARD else f" of domain {domain}")
            count = f"{len(labels)} nodes, the first" if len(labels) > 1 else "node"
            why = _BY_VALUES if operator in SIZED_BY_VALUES and domain in STANDARD else ""
            self._refuse(f"{what} is not supported ({count} '{labels[0]}'){why}")

    def _inputs(self) -> None:
        infos = {info.name: info for info in inputs_of(self.model.graph)}
        for reason in unsupported_inputs(self.model):
            self._refuse(reason)
        for given in (self.shapes, self.values):
            for name in given:
                if name not in infos:
                    self._refuse(f"there is no input '{name}'; there are {', '.join(infos) or 'none'}")
        for name, info in infos.items():
            self.depends[name] = frozenset({name})
            if name in self.values:
                self._given(info)
                continue
            dtype = type_name(info.type.tensor_type.elem_type)
            if info.type.WhichOneof("value") != "tensor_type" or dtype not in ELEMENT_TYPES:
                continue
            shape = self._shape(name, declared_shape(info))
            if shape is not None and self._fits(name, TensorSize(dtype, tuple(shape))):
                value = self.net.input(name, shape, dtype, empty=True)
                self.tensors[name] = value if 0 not in shape else np.zeros(shape, numpy_type(dtype))  # all is known
                self.stand_ins.know_inputs({name: shape})

    def _shape(self, name: str, declared: list[int | str] | None) -> list[int] | None:
        given = self.shapes.get(name)
        if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
            self._refuse(f"the extents of input '{name}' must be a list or a tuple, got {given!r:.40}")
            return None
        if given is None:
            if declared is not None and all(isinstance(n, int) for n in declared):
                return [int(n) for n in declared]
            shown = "of unknown rank" if declared is None else f"of shape ({', '.join(map(str, declared))})"
            reason = f"input '{name}' is {shown}: give its extents, shapes={{'{name}': (...)}} (--input-shape)"
            self._refuse(reason)
            self.open.setdefault(reason)
            return None
        if not all(isinstance(n, int | np.integer) and n >= 0 for n in given):
            self._refuse(f"the extents of input '{name}' must be whole numbers of at least 0, got {tuple(given)}")
            return None
        if not fits(given, declared):
            self._refuse(f"input '{name}' has the shape {declared}, {tuple(given)} does not fit")
            return None
        return [int(n) for n in given]

    def _fits(self, name: str, size: TensorSize) -> bool:
        """True where this machine can hold an input beside those before it; else it is refused."""
        try:
            require_memory(f"input '{name}'", size)
            self._hold(f"inputs up to '{name}'", size.nbytes)
        except TooLargeError as error:
            self._refuse(str(error))
            return False
        return True

    def _hold(self, what: str, nbytes: int) -> None:
        """Count what stays in memory with the network; TooLargeError where all of it is more than there is."""
        total_bytes, most = self.held_bytes + nbytes, host_memory_bytes()
        if total_bytes > most:
            raise TooLargeError(f"{what} take {total_bytes:,} bytes together, this machine has {most:,}")
        self.held_bytes = total_bytes

    def _given(self, info: ValueInfoProto) -> None:
        """Take the values that are given for an input."""
        array, declared = np.asarray(self.values[info.name]), declared_shape(info)
        dtype = type_name(info.type.tensor_type.elem_type)
        if not fits(array.shape, declared):
            self._refuse(f"input '{info.name}' has the shape {declared}, values of shape {array.shape} do not fit")
        elif array.dtype != np.dtype(numpy_type(dtype)):
            self._refuse(f"input '{info.name}' has elements of type {dtype}, values of {array.dtype} do not fit")
        else:
            self.tensors[info.name] = array

    def constants(self, graph: GraphProto, large: Sequence[TensorProto] = ()) -> None:
        """Take the initializers of a graph."""
        from onnx import numpy_helper

        for tensor in (*graph.initializer, *large):
            try:
                array = numpy_helper.to_array(tensor)
                self._hold(f"inputs and weights up to '{tensor.name}'", array.nbytes)
                self.tensors[tensor.name] = array
            except TooLargeError as error:
                self._refuse(str(error))
            except (ValueError, TypeError) as error:  # fewer or more bytes than its shape says
                self._refuse(f"initializer '{tensor.name}' cannot be read: {error}")
            except KeyError:
                self._refuse(f"initializer '{tensor.name}' has elements of {type_name(tensor.data_type)}")
        for sparse in graph.sparse_initializer:
            self._refuse(f"initializer '{sparse.values.name}' is sparse, which is not supported")

    def _nodes(self, graph: GraphProto) -> None:
        for node in graph.node:
            results = self._node(node)
            if results is None:
                self._stand_in(node)
            else:
                self._keep(node, results)

    def _stand_in(self, node: NodeProto) -> None:
        """Go on after a node that was refused."""
        sizes = self._sizes(node)
        for name, size in zip(node.output, sizes, strict=True):
            if name:
                self.tensors[name] = self.stand_ins.make(name, size)

    def _sizes(self, node: NodeProto) -> Sequence[TensorSize | None]:
        """Return the sizes that onnx infers for the results of a refused node, from its inputs alone."""
        found = {name: operand for name in filter(None, node.input) if (operand := self.tensors.get(name)) is not None}
        given = {name: operand for name, operand in found.items() if not isinstance(operand, tuple)}
        plain = all(
            o.dtype in ELEMENT_TYPES if isinstance(o, Value) else o.dtype.name in ELEMENT_TYPES for o in given.values()
        )
        whole = given.keys() == set(filter(None, node.input))
        if not plain or not whole or any(attribute.HasField("g") for attribute in node.attribute):
            return [None] * len(node.output)
        return inferred_sizes(node, given, self.opsets)

    def _node(self, node: NodeProto) -> Sequence[Item] | None:
        """Convert a node, and return its results; None where it is refused."""
        operands = [self.tensors.get(name) for name in node.input]
        if not self._convertible(node, operands):
            self.unknown.setdefault((node.domain, node.op_type), []).append(label_of(node))
            return None
        if any(o is None and name for o, name in zip(operands, node.input, strict=True)):
            return None  # something before it was refused
        try:
            return self._converted(node, operands)
        except _RefusedError:
            return None
        except NeedsConstantError as error:
            if error.tensor not in self.stand_ins.names:
                self._refuse(f"{place_of(node)}: {error}")
                self.wanted.setdefault(f"{place_of(node)}: {error}", error.tensor)
            return None
        except (UnsupportedNode, ValueError, OverflowError) as error:
            self._refuse(f"{place_of(node)}: {error}")
            return None
        except MemoryError:  # on the way to a result that does
            self._refuse(f"{place_of(node)}: it does not fit into the memory of this machine")
            return None

    def _keep(self, node: NodeProto, results: Sequence[Item]) -> None:
        branches = [o.name for a in node.attribute if a.HasField("g") for o in a.g.output]
        read = (*node.input, *branches)
        taint = frozenset[str]().union(*(self.depends.get(name, frozenset()) for name in read))
        for name, result in zip(node.output, results, strict=False):
            if name:
                self.tensors[name] = result
                self.depends[name] = frozenset() if isinstance(result, np.ndarray) else taint
        if not self.stand_ins.names.isdisjoint(read):
            self.stand_ins.names.update(filter(None, node.output))
        for name in node.output[len(results) :]:
            if name and self._is_read(name):
                self._refuse(f"{place_of(node)}: its result '{name}' is not supported")

    def _convertible(self, node: NodeProto, operands: Sequence[Item | None]) -> bool:
        """True where there is a converter, or none is needed because all inputs are known."""
        if has_converter(node.domain, node.op_type) or (node.domain in STANDARD and node.op_type in RESOLVERS):
            return True
        return is_known(node, operands)

    def _converted(self, node: NodeProto, items: Sequence[Item | None]) -> Sequence[Item]:
        if node.op_type in RESOLVERS:
            return resolved(self, node, items)
        if passes_sequences(node, items):
            return [item for item in items if item is not None]
        operands = [item for item in items if not isinstance(item, tuple)]
        given = {name: o for name, o in zip(node.input, operands, strict=True) if o is not None}
        sizes = inferred_sizes(node, given, self.opsets)
        for name, size in zip(node.output, sizes, strict=False):
            if size is not None:
                require_memory(f"result '{name}'", size, all(isinstance(o, np.ndarray) for o in given.values()))
        try:
            return self._made(node, operands, given, [size.dtype if size else None for size in sizes])
        except NeedsConstantError:
            raise
        except (UnsupportedNode, ValueError) as error:
            if all(size is not None and size.empty for size in sizes):
                return [np.zeros(size.shape, numpy_type(size.dtype)) for size in sizes if size is not None]
            unknown = [name for name, operand in given.items() if isinstance(operand, Value)]
            if not isinstance(error, EmptyTensorError) or not unknown:
                raise
            raise NeedsConstantError(unknown[0], "beside a tensor without elements, input") from None

    def _made(
        self,
        node: NodeProto,
        operands: Sequence[Operand | None],
        given: Mapping[str, Operand],
        dtypes: Sequence[str | None],
    ) -> Sequence[Operand]:
        known = {name: o for name, o in given.items() if isinstance(o, np.ndarray)}
        if is_known(node, operands):
            try:
                return self._counted(evaluate(node, known, self.opsets, dtypes))
            except TooLargeError:
                raise
            except UnsupportedNode:  # onnx does not know how in this version; networks may
                if not has_converter(node.domain, node.op_type):
                    raise
        attributes = {a.name: value_of(a) for a in node.attribute}
        seen = Node(
            self.net,
            node.op_type,
            self.opsets[""],
            identifier(label_of(node)),
            list(node.input),
            operands,
            attributes,
            list(node.output),
            self._operand,
        )
        made = converters()[node.op_type](seen)
        results: list[Operand] = list(made) if isinstance(made, tuple | list) else [made]
        for name, result in zip(node.output, results, strict=False):
            if isinstance(result, Value):
                require_memory(f"result '{name}'", TensorSize(result.dtype, result.shape))
        return results

    def _counted(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Constants that a node gave; TooLargeError where memory does not hold all such beside inputs and weights."""
        self.computed_bytes += sum(array.nbytes for array in arrays)
        if self.held_bytes + self.computed_bytes > host_memory_bytes():
            raise TooLargeError(f"constants computed up to here take {self.computed_bytes:,} bytes, too many to hold")
        return arrays

    def subgraph(self, graph: GraphProto, given: Mapping[str, Item], read: Sequence[str]) -> list[Item]:
        """Convert the nodes of a subgraph for these inputs, which depend on the tensors `read`; return its outputs."""
        taint = frozenset[str]().union(*(self.depends.get(name, frozenset()) for name in read))
        for name, item in given.items():
            self.tensors[name] = item
            self.depends[name] = frozenset() if isinstance(item, np.ndarray) else taint
        self._nodes(graph)
        found = [self.tensors.get(result.name) for result in graph.output]
        if any(f is None for f in found):
            raise _RefusedError
        return [f for f in found if f is not None]

    def _operand(self, array: Array, name: str) -> Value:
        """Return a tensor of the network for a constant that an operator reads."""
        if not array.size:
            raise EmptyTensorError(f"input '{name}' has no elements")
        return self._lift(array, name)

    def _lift(self, array: Array, name: str) -> Value:
        if array.dtype.name not in ELEMENT_TYPES:
            raise UnsupportedNode(f"constant '{name}' has elements of type {array.dtype.name}")
        known, value = self.lifted.get(name, (None, None))
        if value is None or known is not array:  # another iteration of a loop has other values under the name
            value = self.net.constant(array, name or None, empty=True)
            self.lifted[name] = array, value
        return value

    def _is_read(self, name: str) -> bool:
        graph = self.model.graph
        return any(name in node.input for node in nodes_of(graph)) or any(o.name == name for o in graph.output)

    def _outputs(self) -> None:
        for info in self.model.graph.output:
            found = self.tensors.get(info.name)
            if found is None:
                self._refuse(f"output '{info.name}' is not computed by any node")
                continue
            if isinstance(found, tuple):
                self._refuse(f"output '{info.name}' is a sequence, not a tensor")
                continue
            try:
                value = found if isinstance(found, Value) else self._lift(found, info.name)
            except (UnsupportedNode, ValueError) as error:
                self._refuse(f"output '{info.name}': {error}")
                continue
            self.net.output(value, names=[info.name])

    def _inputs_behind(self, tensors: Iterable[str]) -> list[str]:
        found = [name for tensor in tensors for name in sorted(self.depends.get(tensor, ()))]
        return list(dict.fromkeys(name for name in found if name not in self.values))
