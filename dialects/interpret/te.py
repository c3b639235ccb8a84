"""The meaning of the te dialect: every compute evaluated with NumPy, a box of points at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as boxes_of
from typing import Any

import numpy as np
from xdsl.dialects.arith import ConstantOp, MulfOp, SelectOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..attributes import Axis
from ..combiner import identity
from ..element import dtype_name, is_float, is_unsigned
from ..te import ComputeOp, IndexOp, PredicateOp, ReadOp, YieldOp
from .access import Grid
from .contract import contract, product_of
from .vector import Arithmetic, Array, Values

BOX_POINTS = 1 << 20
"""Points evaluated at once (8 MiB for each value of the body)."""

CONTRACT_POINTS = 1 << 14
"""Smallest domain of a sum of products that goes to matrix multiplication."""

_MOVES = (ReadOp, IndexOp, PredicateOp, SelectOp, ConstantOp, YieldOp)
"""Operations of a body that round nothing."""

_JOIN: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def run_te(
    module: ModuleOp | FuncOp, inputs: Sequence[np.ndarray[Any, Any]], accumulate: str = "wide"
) -> list[np.ndarray[Any, Any]]:
    """Run the (first) function in `module` on `inputs`, and return its outputs.

    With accumulate="wide" each compute works in double precision and rounds its result to the tensor's type; with
    "native" every step is rounded to its own type. Integers wrap. ValueError where the inputs do not fit the function.
    """
    if accumulate not in ("wide", "native"):
        raise ValueError(f"accumulate is 'wide' or 'native', got '{accumulate}'")
    func = module if isinstance(module, FuncOp) else next(f for f in module.ops if isinstance(f, FuncOp))
    arguments = list(func.body.block.args)
    if len(arguments) != len(inputs):
        raise ValueError(f"function '{func.sym_name.data}' takes {len(arguments)} inputs, got {len(inputs)}")
    tensors: Values = {}
    for argument, array in zip(arguments, inputs, strict=True):
        tensors[argument] = _checked(argument, np.asarray(array))
    arithmetic = Arithmetic(accumulate == "wide")
    with np.errstate(all="ignore"):
        for op in func.body.block.ops:
            if isinstance(op, ReturnOp):
                return [tensors[v] for v in op.operands]
            if isinstance(op, ComputeOp):
                results = _Evaluation(op, tensors, arithmetic).run()
                tensors.update(zip(op.results, results, strict=True))
            elif isinstance(op, ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
                kind = op.value.type
                values = np.array(op.value.get_values()).astype(dtype_name(kind.get_element_type()))
                tensors[op.result] = (
                    np.broadcast_to(values.reshape(values.shape), kind.get_shape())
                    if (values.size == 1)
                    else values.reshape(kind.get_shape())
                )
            else:
                raise TypeError(f"operation '{op.name}' has no meaning between computes")
    raise ValueError(f"function '{func.sym_name.data}' returns nothing")


def _checked(argument: SSAValue, array: Array) -> Array:
    assert isinstance(argument.type, TensorType)
    shape, dtype = argument.type.get_shape(), dtype_name(argument.type.get_element_type())
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"input '{argument.name_hint}' must be {dtype} of shape {shape}, got {array.dtype} of shape {array.shape}"
        )
    return array


def _rounds_once(op: ComputeOp) -> bool:
    """True where double precision gives what the tensors' own types give: elements are moved, or multiplied once.

    The product of two numbers of float32 is exact in double precision, and then rounded once, as in float32. Constants
    of networks are folded by such computes: scaling and transposing the weights of a ResNet-50 takes 0.35 s of CPU time
    in their own type, 0.57 s in double precision (AMD EPYC).
    """
    left = [each for each in op.body.block.ops if not isinstance(each, _MOVES)]
    is_product = len(left) == 1 and isinstance(left[0], MulfOp) and dtype_name(left[0].result.type) == "float32"
    return not op.reduce_axes and (not left or is_product)


class _Evaluation:
    """One compute over its whole domain."""

    def __init__(self, op: ComputeOp, tensors: Values, arithmetic: Arithmetic) -> None:
        self.op = op
        self.arithmetic = Arithmetic(wide=False) if _rounds_once(op) else arithmetic
        self.tensors = tensors
        self.elements = [t.type.get_element_type() for t in op.outputs]
        self.shape = tuple(a.extent for a in op.spatial_axes)

    def run(self) -> list[Array]:
        """Evaluate the compute: one array per output, in the outputs' types."""
        product = product_of(self.op)
        points = int(np.prod([a.extent for a in self.op.axes.data], dtype=np.int64))
        if product is not None and points >= CONTRACT_POINTS and self.arithmetic.wide:
            sums = contract(self.op, product, self.tensors)
            return [sums.astype(dtype_name(self.elements[0]))]
        held = {
            op.tensor: self.arithmetic.hold(self.tensors[op.tensor], op.result.type)
            for op in self.op.body.block.ops
            if isinstance(op, ReadOp)
        }
        spatial, reduced = _split_budget(self.op.spatial_axes, self.op.reduce_axes)
        boxes = list(_boxes(self.op.spatial_axes, spatial))
        if len(boxes) == 1:
            return [self._whole(v, e) for v, e in zip(self.box(boxes[0], reduced, held), self.elements, strict=True)]
        outputs = [np.empty(self.shape, dtype=dtype_name(e)) for e in self.elements]
        for box in boxes:
            place = tuple(slice(*box[a.name]) for a in self.op.spatial_axes)
            for output, value in zip(outputs, self.box(box, reduced, held), strict=True):
                np.copyto(output[place], value, casting="unsafe")
        return outputs

    def _whole(self, value: Array, element: Attribute) -> Array:
        """Return what was computed for the whole domain as an output: itself where it is one, a copy otherwise."""
        if value.shape == self.shape and value.dtype == dtype_name(element) and value.base is None:
            return np.asarray(value, order="C")
        output = np.empty(self.shape, dtype=dtype_name(element))
        np.copyto(output, value, casting="unsafe")
        return output

    def box(self, box: dict[str, tuple[int, int]], reduced: Sequence[int], held: Values) -> list[Array]:
        """Compute the outputs over one box of the spatial axes."""
        axes = self.op.reduce_axes
        if not axes:
            return self.points(box, held)
        extent = tuple(stop - start for start, stop in (box[a.name] for a in self.op.spatial_axes))
        total = self.start(extent)
        for inner in _boxes(axes, reduced):
            whole = {**box, **inner}
            counts = tuple(stop - start for start, stop in inner.values())
            parts = [np.broadcast_to(p, (*extent, *counts)) for p in self.points(whole, held)]
            total = self.join(total, self.fold(parts, len(extent)))
        return total

    def points(self, box: dict[str, tuple[int, int]], held: Values) -> list[Array]:
        """Evaluate the body at every point of a box, dimensions in the axes' order, 1 where an axis does not matter."""
        grid = Grid([a.name for a in (*self.op.spatial_axes, *self.op.reduce_axes)], box)
        values: Values = {}

        def leaf(op: Operation) -> Array | None:
            if isinstance(op, ReadOp):
                positions = [values[v] for v in op.positions]
                try:
                    return grid.read(held[op.tensor], op.indices.data, op.conditions, positions)
                except IndexError as error:
                    raise IndexError(f"compute '{self.op.label.data}': {error}") from None
            if isinstance(op, IndexOp):
                return grid.evaluate(op.value).astype(dtype_name(op.result.type))
            return grid.holds(op.where.data) if isinstance(op, PredicateOp) else None

        return self.arithmetic.body(self.op.body.block.ops, values, leaf)

    def start(self, shape: tuple[int, ...]) -> list[Array]:
        """Return the combiner's identity for every point."""
        values: list[Any] = [identity(self.op.combiner.data, e) for e in self.elements if self.op.identity is None]
        if self.op.identity is not None:
            values = [_number(v) for v in self.op.identity]
        return [np.full(shape, v, dtype=self.sum_dtype(e)) for v, e in zip(values, self.elements, strict=True)]

    def sum_dtype(self, element: Attribute) -> np.dtype[Any]:
        held = self.arithmetic.dtype(element)
        if is_float(element) or self.op.combiner.data == "custom":
            return held
        return np.dtype("uint64" if is_unsigned(element) else "int64")

    def join(self, left: list[Array], right: list[Array]) -> list[Array]:
        """Combine two partial results."""
        if self.op.combine is None:
            return [_JOIN[self.op.combiner.data](a, b) for a, b in zip(left, right, strict=True)]
        block = self.op.combine.block
        values: Values = dict(zip(block.args, [*left, *right], strict=True))
        return self.arithmetic.body(block.ops, values, lambda op: None)

    def fold(self, parts: list[Array], rank: int) -> list[Array]:
        """Reduce every dimension past `rank`; a combiner of the user's joins neighbours, so order is kept."""
        if self.op.combine is None:
            axes = tuple(range(rank, parts[0].ndim))
            join = _JOIN[self.op.combiner.data]
            kinds = [self.sum_dtype(e) for e in self.elements]
            return [join.reduce(p.astype(k, copy=False), axis=axes) for p, k in zip(parts, kinds, strict=True)]
        flat = [p.reshape(*p.shape[:rank], -1) for p in parts]
        while flat[0].shape[-1] > 1:
            count = flat[0].shape[-1] // 2 * 2
            joined = self.join([p[..., 0:count:2] for p in flat], [p[..., 1:count:2] for p in flat])
            flat = [np.concatenate([j, p[..., count:]], axis=-1) for j, p in zip(joined, flat, strict=True)]
        return [p[..., 0] for p in flat]


def _number(value: Attribute) -> float | int:
    assert isinstance(value, FloatAttr | IntegerAttr)
    number: float | int = value.value.data
    return number


def _split_budget(spatial: Sequence[Axis], reduced: Sequence[Axis]) -> tuple[list[int], list[int]]:
    """Extents of the boxes along each axis: innermost axes whole, so that a box holds at most BOX_POINTS points."""
    left = BOX_POINTS
    steps: list[int] = []
    for axis in (*reversed(reduced), *reversed(spatial)):
        steps.append(max(1, min(axis.extent, left)))
        left //= steps[-1]
    steps.reverse()
    return steps[: len(spatial)], steps[len(spatial) :]


def _boxes(axes: Sequence[Axis], steps: Sequence[int]) -> Iterator[dict[str, tuple[int, int]]]:
    """Return the boxes of the given extents that cover the axes, in order."""
    starts = [range(0, a.extent, s) for a, s in zip(axes, steps, strict=True)]
    for corner in boxes_of(*starts):
        yield {a.name: (c, min(c + s, a.extent)) for a, c, s in zip(axes, corner, steps, strict=True)}
