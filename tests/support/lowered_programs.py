"""Scheduled programs on a CPU, lowered, and held to NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lowered_runs import check_lowering, exact_inputs
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.schedule import Schedule
from loopwright.topi import testing

CPU = "llvm cores=2 vector_bytes=64"
Steps = Callable[[Schedule], Any]


def check(tensors: Sequence[te.Tensor], steps: Steps | str = "", *wanted: Any, rtol: float = 1e-5) -> ModuleOp:
    """Schedule, lower and run; hold the outputs to the interpreter of the DAG, or to functions of the inputs."""
    sch = Schedule(tensors, target=CPU)
    if isinstance(steps, str):
        sch.apply(steps)
    else:
        steps(sch)
    inputs = exact_inputs(sch.workload)
    expected = [w(*inputs) for w in wanted] or run_te(sch.workload, inputs)
    return check_lowering(sch.module, inputs, [np.asarray(e) for e in expected], rtol=rtol, atol=rtol / 10)


def count(op: Operation, kind: type) -> int:
    return sum(isinstance(inner, kind) for inner in op.walk())


def placeholder(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def matmul(m: int = 7, n: int = 11, k: int = 5, dtype: str = "float32", out: str = "") -> list[te.Tensor]:
    a, b, r = placeholder("a", m, k, dtype=dtype), placeholder("b", k, n, dtype=dtype), te.reduce_axis((0, k), "k")
    kind = out or dtype
    product = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(kind) * b[r, j].astype(kind), axis=r), name="c")
    return [a, b, product]


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


MARKS = ("serial", "parallel", "vectorize", "unroll", "vthread")


def mark(sch: Schedule, loop: str, how: str, block: str = "c") -> None:
    if how == "vthread":
        sch.bind(block, loop, "vthread")
    elif how != "serial":
        getattr(sch, how)(block, loop)


def convolution(size: int = 9, stride: int = 1, channels: int = 5) -> list[te.Tensor]:
    data, weight = placeholder("data", 1, 3, size, size), placeholder("weight", channels, 3, 3, 3)
    bias = placeholder("bias", 1, channels, 1, 1)
    return [data, weight, bias, topi.nn.relu(topi.nn.conv2d_nchw(data, weight, stride, 1) + bias)]


def convolved(stride: int) -> Callable[..., np.ndarray]:
    def reference(data: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return np.maximum(testing.conv2d_nchw_python(data, weight, stride, 1) + bias, 0)

    return reference
