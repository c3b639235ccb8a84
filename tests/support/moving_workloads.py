"""Small workloads for moving blocks around, and how a schedule of one is held to NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.passes.primitive import Primitive
from loopwright.topi.nn.pad import pad

Array = np.ndarray[Any, Any]


def conv_relu(size: int = 7, stride: int = 1, padding: int = 1, dilation: int = 1) -> ModuleOp:
    """Padding, convolution, bias and relu: `pad_temp` -> `conv` -> `relu`."""
    data = te.placeholder((1, 3, size, size), name="data")
    weight = te.placeholder((5, 3, 3, 3), name="weight")
    bias = te.placeholder((5,), name="bias")
    padded = pad(data, (0, 0, padding, padding))
    out = (size + 2 * padding - 2 * dilation - 1) // stride + 1
    rc, ry, rx = (te.reduce_axis((0, n), name) for n, name in ((3, "rc"), (3, "ry"), (3, "rx")))

    def conv(n: Any, f: Any, y: Any, x: Any) -> Any:
        read = padded[n, rc, y * stride + ry * dilation, x * stride + rx * dilation]
        return te.sum(read * weight[f, rc, ry, rx], axis=[rc, ry, rx])

    convolved = te.compute((1, 5, out, out), conv, "conv")
    relu = te.compute((1, 5, out, out), lambda n, f, y, x: te.maximum(convolved[n, f, y, x] + bias[f], 0.0), "relu")
    return te.create_module([data, weight, bias, relu])


def softmax(rows: int = 5, columns: int = 7) -> ModuleOp:
    """`top` (max), `e`, `total` (sum), `norm`: several readers, reductions with two combiners."""
    x = te.placeholder((rows, columns), name="x")
    k, j = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "j")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), "top")
    e = te.compute((rows, columns), lambda i, c: te.exp(x[i, c] - top[i]), "e")
    total = te.compute((rows,), lambda i: te.sum(e[i, j], axis=j), "total")
    norm = te.compute((rows, columns), lambda i, c: e[i, c] / total[i], "norm")
    return te.create_module([x, norm])


def stencils(size: int = 9) -> ModuleOp:
    """Transposed, padded and shifted reads of one buffer by two readers: `a` -> `pad_temp` -> `b`, `c` -> `d`."""
    x = te.placeholder((size, size + 2), name="x")
    bias = te.placeholder((size,), name="bias")
    a = te.compute((size + 2, size), lambda i, j: x[j, i] * 2.0 + 1.0, "a")
    padded = pad(a, (1, 0), (0, 2))
    b = te.compute((size, size), lambda i, j: padded[i, j] + padded[i + 2, j + 2] * padded[i, j], "b")
    c = te.compute((size, size), lambda i, j: padded[j + 1, i] - bias[i], "c")
    d = te.compute((size, size), lambda i, j: te.tanh(b[j, i]) + c[i, j], "d")
    return te.create_module([x, bias, d])


def upsample(size: int = 5) -> ModuleOp:
    """Reads with floordiv and mod: `twice` -> `flat` -> `total`."""
    x = te.placeholder((size, size), name="x")
    scaled = te.compute((size, size), lambda i, j: x[i, j] * 3.0, "scaled")
    twice = te.compute((2 * size, 2 * size), lambda y, z: scaled[y // 2, z // 2] + 1.0, "twice")
    flat = te.compute((4 * size * size,), lambda p: twice[p // (2 * size), p % (2 * size)] * 0.5, "flat")
    r = te.reduce_axis((0, 2 * size), "r")
    total = te.compute((2 * size,), lambda q: te.sum(flat[q * (2 * size) + r], axis=r), "total")
    return te.create_module([x, total])


def best_index(rows: int = 4, columns: int = 7) -> ModuleOp:
    """A custom combiner with two outputs, read by two blocks: `arg` -> `picked`."""
    x = te.placeholder((rows, columns), name="x")
    y = te.placeholder((rows, columns), name="y")
    k = te.reduce_axis((0, columns), "k")
    scaled = te.compute((rows, columns), lambda i, j: x[i, j] * y[i, j], "scaled")

    def join(a: Any, b: Any) -> Any:
        keep = a[1] >= b[1]
        return te.select(keep, a[0], b[0]), te.select(keep, a[1], b[1])

    def start(first: str, second: str) -> Any:
        return te.const(-1, first), te.min_value(second)

    argmax = te.comm_reducer(join, start, "argmax")
    where, top = te.compute((rows,), lambda i: argmax((te.cast(k, "int32"), scaled[i, k]), axis=k), "arg")
    picked = te.compute((rows,), lambda i: te.cast(where[i], "float32") + top[i], "picked")
    return te.create_module([x, y, picked])


def inputs_of(module: ModuleOp, seed: int = 0) -> list[Array]:
    """Random arrays for the arguments of a module on tensors."""
    rng = np.random.default_rng(seed)
    function: Any = next(iter(module.ops))
    return [rng.standard_normal(t.get_shape()).astype("float32") for t in function.function_type.inputs]


def hold_to_numpy(module: ModuleOp, steps: Sequence[Primitive[Any]]) -> ModuleOp:
    """Lower `module`, take the steps, and compare its results with those of the te program; the scheduled module."""
    inputs = inputs_of(module)
    wanted = run_te(module, inputs)
    lower_te_to_loop(module)
    for step in steps:
        step.run(module)
        module.verify()
    for got, want in zip(run_loops(module, inputs), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return module
