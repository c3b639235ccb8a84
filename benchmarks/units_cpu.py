"""Products and convolutions on matrix units of this CPU, untuned, beside PyTorch (oneDNN) and onnxruntime: a table.

    python benchmarks/units_cpu.py --write-schedules before.json          # by an older version
    python benchmarks/units_cpu.py --before before.json --output units.jsonl
    python benchmarks/units_cpu.py --only bytes --without-amx             # AVX512-VNNI, on all sides
    python benchmarks/units_cpu.py --seed 0 --number 36                   # shapes that nobody has chosen

bf16 with sums in fp32, a bias and relu, rounded to bf16 at the end; data of uint8 and weights of int8 with a scale, a
bias and relu, in fp32 at the end. Weights are constants, packed ahead by both sides. Convolutions are those of
ResNet-50 at batch 1, channels last. Sides take turns on one thread, or `--threads`, in seconds of the CPU
where its clock is fine enough; figures are medians, and the fastest turns stand beside them: a virtual machine whose
neighbours use the unit, too, is several times as slow in between. A result is compared with PyTorch's by its norm.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from drawn_cases import CHANNELS, extent
from rounds import PAUSE_S, Timer, calls_by_clock, clock_of_a_thread, runs_by_clock, times_in_turn
from without_tiles import without_tiles

import loopwright as lw
from loopwright import te, topi
from loopwright.te import Tensor

AT_LEAST_S = 0.006
"""Of calls in a turn."""
MOST_ERROR = 2e-2
"""Norm of the difference over the norm of PyTorch's result, at most: both round to 8 bits."""
HALVES = (7, 10, 13, 14, 19, 20, 28, 33, 38, 40, 56)
"""Pixels along a side of the image that a drawn convolution gives."""
SCALE = 1e-3
"""The scale of products of bytes."""

Row = dict[str, Any]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A workload; `count` is how often ResNet-50 has it."""

    name: str
    count: int
    tensors: Callable[[], list[Tensor]]
    shapes: tuple[tuple[int, ...], ...]
    peer: Callable[[Any, Sequence[Any]], Callable[[], Any]]
    types: tuple[str, ...] = ("bfloat16", "bfloat16", "float32")
    onnx: Callable[[Sequence[Array], int], Callable[[], Any]] | None = None
    """The same by onnxruntime with so many threads, where it has a kernel for it."""


def conv(size: int, c: int, out: int, k: int = 1, stride: int = 1, count: int = 1) -> Case:
    """A convolution with channels last, square, "same" padding."""
    pad, end = k // 2, size // stride

    def tensors() -> list[Tensor]:
        data = te.placeholder((1, size, size, c), "bfloat16", name="data")
        weight = te.placeholder((k, k, c, out), "bfloat16", name="weight", constant=True)
        bias = te.placeholder((out,), "float32", name="bias", constant=True)
        sums = topi.nn.conv2d_nhwc(data, weight, stride, pad, out_dtype="float32")
        return [data, weight, bias, topi.cast(topi.nn.relu(topi.add(sums, bias)), "bfloat16")]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, weight, bias = arrays
        data, weight = data.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1)
        packed = torch._C._nn.mkldnn_reorder_conv2d_weight(
            weight.contiguous().to_mkldnn(), [pad, pad], [stride, stride], [1, 1], 1, list(data.shape)
        )
        run, bias = torch.ops.mkldnn._convolution_pointwise, bias.bfloat16()
        return lambda: run(data, packed, bias, [pad, pad], [stride, stride], [1, 1], 1, "relu", [], "").permute(
            0, 2, 3, 1
        )

    name = f"{k}x{k}{f' / {stride}' * (stride > 1)}, {c} to {out}, {end} wide"
    return Case(f"conv {name}", count, tensors, ((1, size, size, c), (k, k, c, out), (out,)), peer)


def product(m: int, n: int, k: int, count: int = 0) -> Case:
    """A product with a weight (out, in)."""

    def tensors() -> list[Tensor]:
        data = te.placeholder((m, k), "bfloat16", name="data")
        weight = te.placeholder((n, k), "bfloat16", name="weight", constant=True)
        bias = te.placeholder((n,), "float32", name="bias", constant=True)
        sums = topi.nn.matmul(data, weight, transpose_b=True, out_dtype="float32")
        return [data, weight, bias, topi.cast(topi.nn.relu(topi.add(sums, bias)), "bfloat16")]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, weight, bias = arrays
        bias, packed = bias.bfloat16(), torch.ops.mkldnn._reorder_linear_weight(weight, m)
        run = torch.ops.mkldnn._linear_pointwise
        return lambda: run(data, packed, bias, "relu", [], "")

    return Case(f"{m} x {n} x {k}", count, tensors, ((m, k), (n, k), (n,)), peer)


def product_of_bytes(m: int, n: int, k: int) -> Case:
    """A product of data of uint8 with a weight (out, in) of int8."""

    def tensors() -> list[Tensor]:
        data = te.placeholder((m, k), "uint8", name="data")
        weight = te.placeholder((n, k), "int8", name="weight", constant=True)
        bias = te.placeholder((n,), "float32", name="bias", constant=True)
        sums = topi.cast(topi.nn.matmul(data, weight, transpose_b=True, out_dtype="int32"), "float32")
        return [data, weight, bias, topi.nn.relu(topi.add(topi.multiply(sums, SCALE), bias))]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, weight, bias = arrays
        packed = torch.ops.onednn.qlinear_prepack(weight, [m, k])
        scales, zeros = torch.full((n,), SCALE), torch.zeros(n, dtype=torch.int64)
        run = torch.ops.onednn.qlinear_pointwise
        return lambda: run(data, 1.0, 0, packed, scales, zeros, bias, 1.0, 0, torch.float32, "relu", [], "")

    types = ("uint8", "int8", "float32")
    return Case(f"bytes {m} x {n} x {k}", 0, tensors, ((m, k), (n, k), (n,)), peer, types, _by_onnxruntime)


def _by_onnxruntime(arrays: Sequence[Array], threads: int) -> Callable[[], Any]:
    """A product of bytes, its scale and bias as one operator of onnxruntime's, then relu; it packs the weight ahead."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    data, weight, bias = arrays
    constants = {"w": np.ascontiguousarray(weight.T), "one": np.float32(1), "scale": np.float32(SCALE), "bias": bias}
    constants |= {"zero": np.uint8(0), "weight_zero": np.int8(0)}
    given = ["data", "w", "one", "scale", "zero", "weight_zero", "bias"]
    nodes = [helper.make_node("MatMulIntegerToFloat", given, ["sums"], domain="com.microsoft")]
    nodes.append(helper.make_node("Relu", ["sums"], ["out"]))
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("data", TensorProto.UINT8, data.shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, (len(data), len(weight)))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"data": data})[0]


CASES = [
    conv(224, 3, 64, 7, 2),
    conv(56, 64, 64),
    conv(56, 64, 64, 3, count=3),
    conv(56, 64, 256, count=4),
    conv(56, 256, 64, count=2),
    conv(56, 256, 128),
    conv(56, 128, 128, 3, 2),
    conv(28, 128, 512, count=4),
    conv(56, 256, 512, 1, 2),
    conv(28, 512, 128, count=3),
    conv(28, 128, 128, 3, count=3),
    conv(28, 512, 256),
    conv(28, 256, 256, 3, 2),
    conv(14, 256, 1024, count=6),
    conv(28, 512, 1024, 1, 2),
    conv(14, 1024, 256, count=5),
    conv(14, 256, 256, 3, count=5),
    conv(14, 1024, 512),
    conv(14, 512, 512, 3, 2),
    conv(7, 512, 2048, count=3),
    conv(14, 1024, 2048, 1, 2),
    conv(7, 2048, 512, count=2),
    conv(7, 512, 512, 3, count=2),
    product(1, 1000, 2048, count=1),
    product(1024, 1024, 1024),
    product(1000, 1000, 1000),
    product(777, 1025, 513),
    product(197, 768, 3072),
    product(128, 768, 768),
    product_of_bytes(1024, 1024, 1024),
    product_of_bytes(1000, 1000, 1000),
    product_of_bytes(197, 768, 3072),
    product_of_bytes(64, 4096, 1024),
    product_of_bytes(777, 1025, 513),
]


SMALLEST, LARGEST = 3.0e7, 4.0e9
"""Multiply-adds of a drawn case: less is done in the 20 us that a call of PyTorch takes, more takes 20 ms in lanes."""


def drawn(seed: int, number: int) -> list[Case]:
    """Cases of shapes that are drawn at random, products, convolutions and products of bytes in turn."""
    rng, found = np.random.default_rng(seed), []
    makers = (_drawn_product, _drawn_convolution, _drawn_product_of_bytes)
    while len(found) < number:
        case, cost = makers[len(found) % len(makers)](rng)
        if SMALLEST <= cost <= LARGEST:
            found.append(case)
    return found


def _drawn_product(rng: np.random.Generator) -> tuple[Case, float]:
    m, n, k = extent(rng, 1, 2048), extent(rng, 16, 4096), extent(rng, 16, 4096)
    return product(m, n, k), m * n * k


def _drawn_product_of_bytes(rng: np.random.Generator) -> tuple[Case, float]:
    m, n, k = extent(rng, 1, 2048), extent(rng, 16, 4096), extent(rng, 16, 4096)
    return product_of_bytes(m, n, k), m * n * k


def _drawn_convolution(rng: np.random.Generator) -> tuple[Case, float]:
    window, stride = int(rng.choice((1, 3, 3, 5))), int(rng.choice((1, 1, 2)))
    size, (c, out) = stride * int(rng.choice(HALVES)), (int(n) for n in rng.choice(CHANNELS, 2))
    return conv(size, c, out, window, stride, count=0), (size / stride) ** 2 * window**2 * c * out


def main() -> None:
    options = _options()
    target = lw.resolve_target(f"llvm cores={options.threads}" if options.threads else options.target)
    if options.without_amx:
        target = without_tiles(target)
    if options.write_schedules:
        texts = {case.name: lw.SearchTask(case.tensors, target=target).default_schedule for case in _asked(options)}
        Path(options.write_schedules).write_text(json.dumps(texts, indent=1))
        return
    import torch

    torch.set_num_threads(target.cores)
    torch.set_grad_enabled(False)
    before = json.loads(Path(options.before).read_text()) if options.before else {}
    rows = []
    for case in _asked(options):
        rows.append(measured(case, before.get(case.name, ""), target, options.turns))
        print(_line(rows[-1]), flush=True)
        if options.output:
            Path(options.output).write_text("\n".join(map(json.dumps, rows)) + "\n")
    if options.seed is None:
        _print_network(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default="llvm cores=1")
    parser.add_argument("--write-schedules", metavar="FILE", help="write the untuned schedules, and measure nothing")
    parser.add_argument("--before", metavar="FILE", help="also untuned schedules that an older version wrote")
    parser.add_argument("--threads", type=int, default=0, help="of both sides, by the wall; else of --target")
    parser.add_argument("--without-amx", action="store_true", help="refuse it to all sides, which take AVX512-VNNI")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--seed", type=int, help="cases of shapes drawn at random, in place of those that are listed")
    parser.add_argument("--number", type=int, default=36, help="of drawn cases")
    parser.add_argument("--output", help="a file of JSON lines")
    return parser.parse_args()


def _asked(options: argparse.Namespace) -> list[Case]:
    cases = CASES if options.seed is None else drawn(options.seed, options.number)
    return [case for case in cases if options.only in case.name]


def measured(case: Case, before: str, target: Any, turns: int) -> Row:
    """Check and time a case."""
    import torch

    arrays = _arrays(case)
    given = [
        torch.from_numpy(a.view(np.int16)).view(torch.bfloat16) if a.itemsize == 2 else torch.from_numpy(a)
        for a in arrays
    ]
    peer = case.peer(torch, given)
    wanted = peer().float().numpy()
    task = lw.SearchTask(case.tensors, target=target)
    texts = {"untuned": task.default_schedule} | ({"before": before} if before else {})
    clock = clock_of_a_thread() if target.cores == 1 else time.perf_counter
    calls: dict[str, Timer] = {"peer": calls_by_clock(peer, clock, AT_LEAST_S)}
    if case.onnx is not None:
        other = case.onnx(arrays, target.cores)
        require_close(case.name, "onnxruntime", other(), wanted)
        calls["onnx"] = calls_by_clock(other, clock, AT_LEAST_S)
    for name, text in texts.items():
        kernel = task.build(text)
        require_close(case.name, name, np.asarray(kernel(*arrays)).astype(np.float32), wanted)
        given_all = [*arrays, np.empty(wanted.shape, task.reference.expected[0].dtype)]
        kernel._executable.run(given_all)
        calls[name] = runs_by_clock(partial(kernel._executable.time, given_all), clock, AT_LEAST_S)
    unit = next((p for p in ("amx", "avx512bf16", "avx512vnni") if f'"{p}.' in texts["untuned"]), "none")
    found_s = {
        key: value
        for n, v in times_in_turn(calls, turns, PAUSE_S).items()
        for key, value in ((f"{n}_s", statistics.median(v)), (f"{n}_least_s", min(v)))
    }
    return {"case": case.name, "count": case.count, "unit": unit, **found_s}


def require_close(case: str, name: str, found: Array, wanted: Array) -> None:
    error = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    if error > MOST_ERROR:
        raise ValueError(f"{case}, {name}: {error:.2g} from PyTorch's result")


def _arrays(case: Case) -> list[Array]:
    import ml_dtypes

    generator, found = np.random.default_rng(0), []
    for shape, kind in zip(case.shapes, case.types, strict=True):
        if kind in ("uint8", "int8"):
            found.append(generator.integers(0 if kind == "uint8" else -128, 128, shape).astype(kind))
        else:
            normal = generator.normal(size=shape).astype(np.float32)
            found.append(normal.astype(ml_dtypes.bfloat16) if kind == "bfloat16" else normal)
    return found


def _line(row: Row) -> str:
    cells = [row["case"], row["unit"]]
    for key in ("", "least_"):
        peer = row[f"peer_{key}s"]
        cells.append(f"{peer * 1e6:.0f}")
        if (other := row.get(f"onnx_{key}s")) is not None:
            cells.append(f"onnxruntime {other * 1e6:.0f} {other / row[f'untuned_{key}s']:.2f}")
        for name in ("before", "untuned"):
            own = row.get(f"{name}_{key}s")
            cells += [] if own is None else [f"{own * 1e6:.0f}", f"{peer / own:.2f}"]
    return f"| {' | '.join(cells)} |"


def _print_network(rows: Sequence[Row]) -> None:
    """Sums over the convolutions and the product of ResNet-50, each as often as it has it, in milliseconds."""
    if not any(row["count"] for row in rows):
        return
    for key in ("peer_s", "before_s", "untuned_s", "peer_least_s", "before_least_s", "untuned_least_s"):
        if all(key in row for row in rows):
            print(key, f"{sum(row['count'] * row[key] for row in rows) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
