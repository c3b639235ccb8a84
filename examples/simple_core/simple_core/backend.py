"""The simulator of a simple core: kernels run by loopwright's interpreter, and take the cycles of their instructions.

A cycle an instruction, of one vector at most, and two a round of a loop; there are no caches, and no branches. An
artifact is the kernel dialect as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser

import loopwright as lw
from loopwright.backends.context import create_context
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.target import target_of

HERTZ = 1e8
ROUND_CYCLES = 2
_ELEMENT_BYTES = 4


def compile(module: ModuleOp) -> bytes:
    """Return the kernel as text; MissingRequirement where its cycles are not known before it runs."""
    cycles_of(module)
    return str(module).encode()


def load(artifact: bytes) -> SimulatedKernel:
    """Return a kernel to run."""
    return SimulatedKernel(Parser(create_context(), artifact.decode()).parse_module())


def source(artifact: bytes) -> str:
    """Return the kernel as people read it."""
    return artifact.decode()


def device_name() -> str:
    return f"simple core at {HERTZ / 1e6:.0f} MHz (simulated)"


def versions() -> dict[str, str]:
    return {"simple-core": "0.1"}


class SimulatedKernel:
    """A kernel that is interpreted, and timed by counting."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        (self._function,) = (op for op in module.ops if isinstance(op, FuncOp))

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        """Run once on inputs, then outputs, which are written."""
        marks = self._function.arg_attrs.data if self._function.arg_attrs is not None else ()
        count = sum("lw.output" not in mark.data for mark in marks)
        for output, result in zip(args[count:], run_kernel(self._function, args[:count]), strict=True):
            np.copyto(output, result)

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        """Return the seconds that `number` runs take, whatever the arrays hold."""
        return number * self._cycles / HERTZ

    @cached_property
    def _cycles(self) -> int:
        return cycles_of(self._module)


def cycles_of(module: ModuleOp) -> int:
    """Return the cycles of one run; MissingRequirement for control flow that a simple core does not have."""
    vector_bytes = target_of(module).vector_bytes
    return sum(_cycles(func.body.block, vector_bytes) for func in module.ops if isinstance(func, FuncOp))


def _cycles(block: Block, vector_bytes: int) -> int:
    return sum(_cycles_of_operation(op, vector_bytes) for op in block.ops)


def _cycles_of_operation(op: Operation, vector_bytes: int) -> int:
    if isinstance(op, scf.ForOp):
        lower, upper, step = map(_number, (op.lb, op.ub, op.step))
        return max(0, ceil((upper - lower) / step)) * (ROUND_CYCLES + _cycles(op.body.block, vector_bytes))
    if op.regions:
        raise lw.MissingRequirement(f"a simple core has no {op.name}: it has loops of a fixed number of rounds")
    if isinstance(op, arith.ConstantOp):
        return 0
    widths = [_lanes(value) * _ELEMENT_BYTES for value in (*op.operands, *op.results)]
    return max([1, *(ceil(width / vector_bytes) for width in widths)])


def _lanes(value: SSAValue) -> int:
    return value.type.element_count() if isinstance(value.type, VectorType) else 1


def _number(value: SSAValue) -> int:
    """Return the value of a loop's bound."""
    if isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, IntegerAttr):
        return int(value.owner.value.value.data)
    raise lw.MissingRequirement("a simple core has no loops whose number of rounds is computed")
