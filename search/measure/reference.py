"""Data to check a task's candidates with: random inputs, the right outputs, and how far from those counts as right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...backends.host_memory import require_bytes
from ...dialects.element import dtype_name, element_bytes, epsilon, is_float
from ...dialects.interpret.te import run_te
from ...dialects.te import ComputeOp, ReadOp, YieldOp
from .measurement import MeasureTask
from .tolerance import Tolerance

Array = npt.NDArray[Any]

_WIDE_BYTES = 8
"""Bytes of a number in double precision, in which random numbers are drawn and outputs compared."""
_NARROW = 2.0**-12
"""Types whose steps at 1 are larger than this have 16 bits."""
_FEW_TERMS = 1 << 25
"""Terms that NumPy adds up in 16 bits in about half a second."""


@dataclass(frozen=True)
class Reference:
    """Inputs, expected outputs, and the tolerance of each of these."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    tolerances: tuple[Tolerance, ...]

    def task(self, workload: str) -> MeasureTask:
        """The task of a measurer for a workload, whose IR text is given."""
        return MeasureTask(workload, self.inputs, self.expected, self.tolerances)


def make_reference(module: ModuleOp) -> Reference:
    """Random inputs for a te-level module and what the interpreter makes of them in double precision.

    An output has the tolerance of the stages that it is computed from. Sums in 16 bits may be off by `growth` of what
    they are, and of what the output is on average. Where stages weigh and add what other stages computed, such as
    Winograd's transforms, rounding errors grow by more than the lengths of sums say: what the working precision loses
    on these inputs is found out, and allowed four times; where more is computed from sums in 16 bits, which lose it at
    each term, twice. Truth values lose nothing by it: there is nothing between.
    NotEnoughMemory where that, and candidates' outputs, would not fit.
    """
    func = next(f for f in module.ops if isinstance(f, FuncOp))
    require_bytes(f"data to check '{func.sym_name.data}' by", reference_bytes(func))
    rng = np.random.default_rng(0)
    inputs = tuple(_random(t, rng) for t in func.function_type.inputs)
    expected = tuple(run_te(module, list(inputs)))
    outputs = [_stages_of(value) for op in func.body.block.ops if isinstance(op, ReturnOp) for value in op.operands]
    times = [4 if _transforms_anything(stages) else 2 if _goes_on_from_sums(stages) else 0 for stages in outputs]
    rounded = run_te(module, list(inputs), "native") if any(times) else expected
    found = zip(outputs, expected, times, map(_lost, expected, rounded), strict=True)
    return Reference(inputs, expected, tuple(_tolerance_of(*each) for each in found))


def _tolerance_of(stages: Sequence[Operation], expected: Array, times: int, lost: float) -> Tolerance:
    """The tolerance of an output of some stages, of what it loses in the working precision so many times."""
    usual, grown = tolerance(stages), growth(stages)
    return Tolerance(max(usual.atol, grown * _typical(expected), times * lost), max(usual.rtol, grown))


def _lost(expected: Array, rounded: Array) -> float:
    """The most that an element loses; 0 where that is no number, and of truth values."""
    if expected is rounded or expected.dtype == np.bool_:
        return 0.0
    lost = float(np.max(np.abs(_wide(expected) - _wide(rounded)), initial=0.0))
    return lost if np.isfinite(lost) else 0.0


def _stages_of(output: SSAValue) -> list[Operation]:
    """The stages that an output is computed from, its own among them."""
    found, waiting = dict[Operation, None](), [output]
    while waiting:
        stage = waiting.pop().owner
        if isinstance(stage, Operation) and stage not in found:
            found[stage] = None
            waiting += [*stage.operands, *(op.tensor for op in stage.walk() if isinstance(op, ReadOp))]
    return list(found)


def reference_bytes(func: FuncOp) -> int:
    """The most memory that making a reference takes: inputs, all stages, and the largest of these in double precision.

    Outputs count three times: what is expected, a candidate's, and their difference.
    """
    inputs = [_elements(t) * _itemsize(t) for t in func.function_type.inputs]
    stages = [value.type for op in func.body.block.ops for value in op.results]
    kept = [_elements(t) * _itemsize(t) for t in stages]
    wide = [_elements(t) * _WIDE_BYTES for t in (*func.function_type.inputs, *stages)]
    outputs = [_elements(t) * _itemsize(t) for t in func.function_type.outputs]
    return sum(inputs) + sum(kept) + 2 * sum(outputs) + max(wide, default=0)


def _elements(tensor: Attribute) -> int:
    return math.prod(tensor.get_shape()) if isinstance(tensor, TensorType) else 0


def _itemsize(tensor: Attribute) -> int:
    return element_bytes(tensor.get_element_type()) if isinstance(tensor, TensorType) else 0


def growth(stages: Iterable[Operation]) -> float:
    """Relative error of sums in 16 bits in their working precision; 0 where there are none.

    Each of K additions rounds the sum so far, by eps / 2 at most. Where the terms' signs are random, these errors add
    up to 0.15 * eps * sqrt(K) of the sums' root mean square, and to 0.7 of it at the most of 2**18 sums, relative to
    the sum and that mean together (measured, fp16 and bf16, K from 16 to 4096): eps * sqrt(K) is allowed. A worst-case
    bound, K * eps, would allow anything for K from 1000 on.
    """
    lengths = [(element, math.prod(a.extent for a in op.reduce_axes)) for op, element in _summing(stages)]
    return math.sqrt(sum(epsilon(element) ** 2 * length for element, length in lengths))


def _summing(stages: Iterable[Operation]) -> list[tuple[ComputeOp, Attribute]]:
    """The stages whose sums are kept in 16 bits, and the type of each."""
    found = []
    for op in stages:
        if isinstance(op, ComputeOp) and op.reduce_axes and op.combiner.data not in ("max", "min"):
            element = max((t.type.get_element_type() for t in op.outputs), key=_rounding)
            if _rounding(element) > _NARROW:
                found.append((op, element))
    return found


def _rounding(element: Attribute) -> float:
    return epsilon(element) if is_float(element) else 0.0


def _typical(array: Array) -> float:
    """The root mean square of what is finite in an array of floats; 0 for others."""
    wide = _wide(array)
    finite = wide[np.isfinite(wide)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size and array.dtype.kind not in "iub" else 0.0


def _wide(array: Array) -> npt.NDArray[np.float64]:
    return array.astype(np.float64)


def _goes_on_from_sums(stages: Sequence[Operation]) -> bool:
    """True where stages read sums in 16 bits, which are few enough terms to be added up in that precision here.

    What they compute may be off by more than the sums: 2 * silu(x) by 2.2 times as much.
    """
    sums = {op for op, _ in _summing(stages)}
    terms = sum(math.prod(a.extent for a in op.axes.data) for op in stages if isinstance(op, ComputeOp))
    read = any(op.tensor.owner in sums for stage in stages for op in stage.walk() if isinstance(op, ReadOp))
    return read and terms <= _FEW_TERMS


def _transforms_anything(stages: Iterable[Operation]) -> bool:
    return any(map(_transforms, stages))


def _transforms(op: Operation) -> bool:
    """True for a stage without a reduction that reads three or more elements of one that another stage computed."""
    if (
        not isinstance(op, ComputeOp)
        or op.reduce_axes
        or not all(is_float(t.type.get_element_type()) for t in op.outputs)
    ):
        return False
    counts = Counter(read.tensor for read in op.body.walk() if isinstance(read, ReadOp))
    return any(count >= 3 and isinstance(tensor.owner, ComputeOp) for tensor, count in counts.items())


def _random(tensor: object, rng: np.random.Generator) -> Array:
    assert isinstance(tensor, TensorType)
    element = tensor.get_element_type()
    dtype, shape = np.dtype(dtype_name(element)), tensor.get_shape()
    if is_float(element):
        return rng.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(0 if dtype.kind == "u" else -8, 9, shape).astype(dtype)


def tolerance(stages: Iterable[Operation]) -> Tolerance:
    """The tolerance by the least precise float type and the longest reduction; exact where all is integer.

    A sum of K products of numbers up to 1 that is rounded K times is off by up to K * eps in the worst case, and by a
    few sqrt(K) * eps in practice; transforms and chains of stages multiply that. The bound is 4 * K * eps, at least
    64 * eps, against which a missing or repeated term of such a sum stands out for any K below 1 / (8 * eps). A sum of
    sums, as the parts of a cumulative one, has the terms of all of them.
    """
    eps = 0.0
    length = 1
    known: dict[Operation | Block, int] = {}
    for op in stages:
        for value in op.results:
            if isinstance(value.type, TensorType):
                element = value.type.get_element_type()
                if is_float(element):
                    eps = max(eps, epsilon(element))
        if isinstance(op, ComputeOp):
            size = 1
            for axis in op.reduce_axes:
                size *= axis.extent
            length = max(length, size, _terms(op, known))
    bound = eps * max(64, 4 * length)
    return Tolerance(min(bound, 0.05), min(max(64 * eps, bound / 16), 0.05))


def _terms(op: Operation | Block, known: dict[Operation | Block, int]) -> int:
    """Terms of what a stage adds up, those of sums among them counted; 1 of one that does more than add."""
    if op not in known:
        known[op] = _terms_added(op, known)
    return known[op]


def _terms_added(op: Operation | Block, known: dict[Operation | Block, int]) -> int:
    if not isinstance(op, ComputeOp) or op.combiner.data not in ("add", "none"):
        return 1
    inside = [each for each in op.walk() if each is not op]
    if any(not isinstance(each, ReadOp | YieldOp | AddfOp) for each in inside):
        return 1
    own = math.prod(axis.extent for axis in op.reduce_axes)
    return own * max((_terms(each.tensor.owner, known) for each in inside if isinstance(each, ReadOp)), default=1)
