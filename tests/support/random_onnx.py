"""Random ONNX graphs, each node of which onnxruntime runs, and whose results do not hang on how numbers are rounded.

A graph grows a node at a time. Every tensor has two values: what onnxruntime gives, and what it gives where all inputs
and results are off by some roundings. A node stays only if both are alike: what it does to small differences is known
then, and so is by how much another implementation may be off (`Tensor.tolerance`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

OPSETS = range(11, 22)
NOISE = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-9}
"""By how much results may be off, relative to them: four roundings, and what approximations of functions are off."""
MOST_SPREAD = {"float16": 3e-2, "float32": 1e-3, "float64": 1e-5}
"""By how much two values of a tensor may differ, relative to its largest element."""
MOST_ELEMENTS = 6000
LARGEST = {"float16": 2e2, "float32": 1e4, "float64": 1e4}
MOST_WHOLE = 2**30
"""Whole numbers of 32 and 64 bits are smaller: some operators compute them as floats, which do not wrap around."""
IR_VERSION = 8


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


JUMPS = frozenset(
    words(
        "Floor Ceil Round Sign Cast CastLike Equal Less Greater LessOrEqual GreaterOrEqual ArgMax ArgMin "
        "Hardmax Mod QuantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ThresholdedRelu Shrink "
        "MaxPool Not IsNaN And Resize HardSigmoid TopK GridSample QLinearAdd QLinearMul QLinearSigmoid QGemm "
        "QLinearLeakyRelu QLinearGlobalAveragePool QLinearAveragePool QLinearWhere QLinearConcat"
    )
)
"""Operators whose results jump, which is looked for harder."""
FROM_THE_LARGEST = frozenset(("Softmax", "LogSoftmax"))
"""Operators that take the largest element from all of them: both are off alike, so what is left shows no roundings."""


class RefusedError(Exception):
    """A node that onnxruntime does not run, or whose results are not tame."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph: its value, and the value of one that is off by some roundings.

    `taken` is the largest number of those that were taken from each other on the way to the value.
    """

    name: str
    value: Array
    other: Array
    constant: bool = False
    taken: float = 0.0

    @property
    def dtype(self) -> str:
        return str(self.value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def rank(self) -> int:
        return self.value.ndim

    @property
    def spread(self) -> float:
        return spread(self.value, self.other)

    @property
    def tolerance(self) -> float:
        """By how much each element of another implementation's result may be off."""
        if self.dtype not in NOISE:
            return 0.0
        return 12 * self.spread + 20 * NOISE[self.dtype] * max(largest(self.value), self.taken)


def largest(value: Array) -> float:
    return float(np.abs(value.astype(np.float64)).max(initial=0.0))


def of_own_mean(x: Tensor, row: Sequence[int], scale: Tensor, epsilon: float) -> float:
    """By how much a norm over rows of this shape is off by one rounding where each element is its own mean.

    That is not seen of inputs that are off, whose elements are their means too. Compilers may contract a multiplication
    before it with the subtraction of its mean alone (all backends allow it): what that leaves of one rounding, where
    nothing is left otherwise, is multiplied by 316 where the variance is zero.
    """
    rounding = float(np.finfo(x.value.dtype).eps) / 2
    return rounding * largest(x.value) * largest(scale.value) / epsilon**0.5 if prod(row) == 1 else 0.0


def spread(a: Array, b: Array) -> float:
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


@dataclass
class Graph:
    """A graph under construction."""

    rng: np.random.Generator
    opset: int
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    initializers: list[str] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def extent(self) -> int:
        return int(self.choose((1, 1, 2, 3, 3, 4, 5, 7, 8, 13, 16, 17)))

    def shape(self, rank: int) -> tuple[int, ...]:
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if np.prod(shape) <= 1000:
                return shape

    def values(self, shape: Sequence[int], dtype: str, scale: float = 1.0) -> Array:
        if dtype == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        if "float" in dtype:
            return np.asarray(self.rng.standard_normal(shape) * scale).astype(dtype)
        low = 0 if dtype.startswith("u") else -9
        return np.asarray(self.rng.integers(low, 10, shape)).astype(dtype)

    # -- tensors ------------------------------------------------------------------------------------------------------

    def pick(self, wanted: Callable[[Tensor], bool]) -> Tensor | None:
        """A tensor that suits, new ones and those that nothing reads first."""
        found = [t for t in self.tensors.values() if not t.constant and wanted(t)]
        if not found:
            return None
        weights = np.array([(k + 3) * (10.0 if not self.read.get(t.name) else 1.0) for k, t in enumerate(found)])
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def any(self, dtypes: Sequence[str], ranks: Sequence[int]) -> Tensor:
        """A tensor of one of these types and ranks: one that is there, or a new input."""
        found = self.pick(lambda t: t.dtype in dtypes and t.rank in ranks)
        if found is None or self.chance(0.08):
            return self.input(self.shape(self.choose(ranks)), self.choose(dtypes))
        return found

    def input(self, shape: Sequence[int], dtype: str, scale: float = 1.0) -> Tensor:
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        return self._add(name, self.values(shape, dtype, scale), False)

    def constant(self, value: Any) -> Tensor:
        """An initializer; one that is there already may serve several nodes."""
        array = np.asarray(value)
        for name in self.initializers:
            known = self.tensors[name].value
            if known.dtype == array.dtype and np.array_equal(known, array) and self.chance(0.8):
                return self.tensors[name]
        name = f"c{len(self.initializers)}"
        self.initializers.append(name)
        made = Tensor(name, array, array, True)
        self.tensors[name] = made
        return made

    def weight(self, shape: Sequence[int], dtype: str, scale: float = 1.0, fixed: bool = False) -> Tensor:
        """Weights: an initializer, or now and then an input."""
        if not fixed and self.chance(0.15):
            return self.input(shape, dtype, scale)
        alike = [self.tensors[n] for n in self.initializers]
        alike = [t for t in alike if t.shape == tuple(shape) and t.dtype == dtype and "float" in dtype and scale == 1.0]
        if alike and self.chance(0.4):
            return self.choose(alike)
        return self.constant(self.values(shape, dtype, scale))

    def _add(self, name: str, value: Array, constant: bool) -> Tensor:
        made = Tensor(name, value, self._off(value), constant)
        self.tensors[name] = made
        return made

    def _off(self, value: Array) -> Array:
        """A value off by some roundings."""
        if str(value.dtype) not in NOISE:
            return value
        noise = NOISE[str(value.dtype)] * self.rng.standard_normal(value.shape)
        return np.asarray(value * (1 + noise)).astype(value.dtype)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def given(self, value: Array) -> Tensor:
        """A new input that has this value exactly."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = Tensor(name, value, value)
        return self.tensors[name]

    def add(
        self, operator: str, inputs: Sequence[Tensor | None], results: int = 1, *, off: float = 0.0, **attributes: Any
    ) -> list[Tensor]:
        """Add a node; RefusedError where onnxruntime does not run it, or its results are not tame.

        These may be `off` by so much where that is not seen of inputs that are.
        """
        return self._added(operator, inputs, results, attributes, False, off)

    def exactly(self, operator: str, inputs: Sequence[Tensor], **attributes: Any) -> Tensor:
        """Add a node that rounds nothing where its inputs have their values exactly; return its result."""
        (made,) = self._added(operator, inputs, 1, attributes, not any(t.spread for t in inputs))
        return made

    def _added(
        self,
        operator: str,
        inputs: Sequence[Tensor | None],
        results: int,
        attributes: dict[str, Any],
        exact: bool,
        off: float = 0.0,
    ) -> list[Tensor]:
        number = len(self.nodes)
        names = [f"v{number}" if results == 1 else f"v{number}_{k}" for k in range(results)]
        node = helper.make_node(operator, [t.name if t else "" for t in inputs], names, name=f"n{number}", **attributes)
        given = list({t.name: t for t in inputs if t}.values())
        session = _session(node, given, self.opset)
        feeds = [{t.name: v(t) for t in given if not t.constant} for v in (lambda t: t.value, lambda t: t.other)]
        values, others = (_run(session, feed) for feed in feeds)
        taken = largest(given[0].value) if operator in FROM_THE_LARGEST else 0.0
        made = [
            Tensor(name, value, value if exact else self._off(other) + value.dtype.type(off), taken=taken)
            for name, value, other in zip(names, values, others, strict=True)
        ]
        for tensor in made:
            _require_tame(tensor)
        if operator in JUMPS and not exact:
            self._require_far_from_jumps(session, given, made)
        self.nodes.append(node)
        for t in given:
            self.read[t.name] = self.read.get(t.name, 0) + 1
        self.tensors.update({t.name: t for t in made})
        return made

    def _require_far_from_jumps(self, session: Any, given: list[Tensor], made: list[Tensor]) -> None:
        for _ in range(3):
            moved = {}
            for t in given:
                margin = t.tolerance * self.rng.choice([-1.0, 1.0], t.shape) if t.dtype in NOISE else 0
                moved[t.name] = np.asarray(t.value + margin).astype(t.dtype) if t.dtype in NOISE else t.value
            found = _run(session, {t.name: moved[t.name] for t in given if not t.constant})
            for tensor, value in zip(made, found, strict=True):
                most = MOST_SPREAD[tensor.dtype] * max(largest(tensor.value), 1e-3) if tensor.dtype in NOISE else 0.0
                if spread(tensor.value, value) > 3 * most:
                    raise RefusedError("jumps")

    # -- the whole ----------------------------------------------------------------------------------------------------

    def model(self, outputs: Sequence[str], nodes: Sequence[NodeProto] | None = None) -> ModelProto:
        """The model of these nodes (all unless told otherwise): what they read and none of them gives are inputs."""
        kept = self.nodes if nodes is None else list(nodes)
        given = {name for node in kept for name in node.output}
        read = dict.fromkeys(name for node in kept for name in node.input if name and name not in given)
        inputs = dict.fromkeys(self.inputs) if nodes is None else {}
        inputs |= dict.fromkeys((*read, *(o for o in outputs if o not in given)))
        fixed = [n for n in inputs if self.tensors[n].constant]
        graph = helper.make_graph(
            kept,
            "random",
            [_info(self.tensors[name]) for name in inputs if name not in fixed],
            [_info(self.tensors[name]) for name in outputs],
            [numpy_helper.from_array(self.tensors[name].value, name) for name in fixed],
        )
        return _model(graph, self.opset)

    def feeds(self, model: ModelProto) -> dict[str, Array]:
        """The inputs of a model made of this graph."""
        return {info.name: self.tensors[info.name].value for info in model.graph.input}


def _info(tensor: Tensor) -> Any:
    return helper.make_tensor_value_info(
        tensor.name, helper.np_dtype_to_tensor_dtype(tensor.value.dtype), tensor.value.shape
    )


def _session(node: NodeProto, given: Sequence[Tensor], opset: int) -> Any:
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in node.output if name]
    graph = helper.make_graph(
        [node],
        "node",
        [_info(t) for t in given if not t.constant],
        outputs,
        [numpy_helper.from_array(t.value, t.name) for t in given if t.constant],
    )
    return session_of(_model(graph, opset))


def _model(graph: GraphProto, opset: int) -> ModelProto:
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in graph.node} - {""})]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset > 20 else IR_VERSION)


def session_of(model: ModelProto) -> Any:
    """onnxruntime with a model as it stands; RefusedError where it takes it not."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RefusedError(str(error)) from error


def _run(session: Any, feeds: dict[str, Array]) -> list[Array]:
    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    try:
        return [np.asarray(value) for value in session.run(None, feeds, options)]
    except Exception as error:
        raise RefusedError(str(error)) from error


def _require_tame(tensor: Tensor) -> None:
    value = tensor.value
    if not 0 < value.size <= MOST_ELEMENTS or value.ndim > 6 or value.shape != tensor.other.shape:
        raise RefusedError("size")
    if tensor.dtype not in NOISE:
        if not np.array_equal(value, tensor.other):
            raise RefusedError("jumps")
        if value.dtype.itemsize > 2 and largest(value) > MOST_WHOLE:
            raise RefusedError("large")
        return
    if not np.isfinite(value).all() or not np.isfinite(tensor.other).all() or largest(value) > LARGEST[tensor.dtype]:
        raise RefusedError("large")
    if tensor.spread > MOST_SPREAD[tensor.dtype] * max(largest(value), 1e-3):
        raise RefusedError("not tame")


@dataclass(frozen=True)
class Sample:
    """A random graph as a model, its inputs, and the outputs with how far off each element may be."""

    graph: Graph
    model: ModelProto
    feeds: dict[str, Array]
    wanted: dict[str, Tensor]


def random_graph(seed: int, least: int = 10, most: int = 20) -> Sample:
    """A graph of `least` to `most` nodes; those that onnxruntime refuses were not counted."""
    from random_onnx_nodes import grow

    rng = np.random.default_rng([seed, 7])
    graph = Graph(rng, int(OPSETS[seed % len(OPSETS)]))
    grow(graph, int(rng.integers(least, most + 1)))
    made = [name for node in graph.nodes for name in node.output]
    ends = [name for name in made if not graph.read.get(name)]
    between = [name for name in made if graph.read.get(name) and graph.chance(0.15)]
    outputs = list(rng.permutation([*ends, *between]))
    if graph.chance(0.15):
        graph.input(graph.shape(2), "float32")  # which nothing reads
    model = graph.model(outputs)
    return Sample(graph, model, graph.feeds(model), {name: graph.tensors[name] for name in outputs})


def differences(wanted: dict[str, Tensor], got: Sequence[Array]) -> dict[str, str]:
    """Return what is wrong with outputs, by name."""
    found = {}
    for (name, tensor), array in zip(wanted.items(), got, strict=True):
        value = tensor.value
        if array.dtype != value.dtype or array.shape != value.shape:
            found[name] = f"{array.dtype}{list(array.shape)} instead of {value.dtype}{list(value.shape)}"
            continue
        if tensor.dtype not in NOISE:
            wrong = array != value
        else:
            off = np.abs(array.astype(np.float64) - value.astype(np.float64))
            wrong = ~(off <= tensor.tolerance)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            found[name] = (
                f"{int(wrong.sum())} of {value.size} elements wrong, the first {array[at]} instead of {value[at]} "
                f"at {list(at)} ({tensor.tolerance:.1e} allowed)"
            )
    return found
