"""A program that says what it computes, schedules, tunes and builds it: each value has a type that checkers know.

Run: python examples/typed_program.py (some seconds). Checked by `mypy --strict` and pyright in the tests.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import loopwright as lw
from loopwright import te, topi


def layer(rows: int = 16) -> list[te.Tensor]:
    """Inputs and output of a dense layer, each row of which is divided by its sum of exponentials."""
    data, weight = te.placeholder((rows, 16), name="data"), te.placeholder((16, 8), name="weight")
    product = topi.matmul(data, weight)
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((rows,), lambda i: te.sum(te.exp(product[i, k]), axis=k), name="total")
    return [data, weight, te.compute((rows, 8), lambda i, j: te.exp(product[i, j]) / total[i], name="out")]


def by_hand() -> lw.Kernel:
    """The layer with a schedule of one's own."""
    sch = lw.Schedule(layer(), target="llvm cores=1")
    rows, columns = sch.get_loops("out")
    outer, inner = sch.split("out", rows, [None, 4])
    sch.vectorize(columns)
    sch.parallel(outer)
    sch.unroll(inner)
    return lw.build(sch)


def tuned(folder: Path) -> lw.Kernel:
    """The layer with a schedule that a search found."""
    task = lw.SearchTask(layer, (16,), target="llvm cores=1")
    options = lw.TuningOptions(num_measure_trials=2, records=folder / "layer.jsonl", progress=False)
    best: lw.Record = task.tune(options, lw.MeasureOptions("loopwright.backends.llvm.device", builders=1)).best
    return task.build(best.schedule)


def network() -> lw.CompiledNetwork:
    """The same as a network."""
    net = lw.Network("layer")
    data, weight = net.input("data", (16, 16)), net.constant(np.ones((16, 8), np.float32))
    values, places = net.top_k(net.softmax(net.matmul(data, weight)), k=2)
    net.output(values, places)
    return lw.compile(net, "llvm cores=1")


def main() -> None:
    random = np.random.default_rng(0)
    data, weight = random.random((16, 16), np.float32), random.random((16, 8), np.float32)
    with TemporaryDirectory() as folder:
        kernel = tuned(Path(folder))
    result = kernel(data, weight)
    np.testing.assert_allclose(by_hand()(data, weight), result, rtol=1e-5)
    values, places = network()(data)
    print(result.shape, values.shape, places.dtype, f"{kernel.benchmark(repeat=1).median * 1e6:.1f} us")


if __name__ == "__main__":
    main()
