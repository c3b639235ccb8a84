"""Run a sample of schedules under NVIDIA's compute-sanitizer: accesses out of bounds (memcheck), races (racecheck).

The schedules are drawn from the search's own sketches of small workloads. Kernels are compiled here; another process
loads and runs them all, once under each tool, and compares what they give with NumPy.
"""

from __future__ import annotations

import argparse
import importlib.util
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sanitized_families import FAMILIES

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.reference import make_reference

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
TARGET = "cuda model=h200"
INSTALL = "install CUDA's toolkit, or pip install nvidia-cuda-sanitizer-api"
_MARK = "loopwright kernel: "
_COMPLAINT = re.compile(r"^=+ (\S.*)$")
"""The first line of a complaint; those that say more of it are indented."""
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
_NOISE = ("COMPUTE-SANITIZER", "SUMMARY", "Target application returned")


class MissingSanitizer(RuntimeError):
    """compute-sanitizer, or a device to run it on, is not here."""


@dataclass(frozen=True)
class Sample:
    """A kernel to run: what it is, and the schedule that made it."""

    name: str
    schedule: str
    artifact: bytes
    inputs: tuple[Any, ...]
    expected: tuple[Any, ...]
    tolerances: tuple[Any, ...]


def conv() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 8, 14, 14), name="data"), te.placeholder((16, 8, 3, 3), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1))]


def depthwise() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 12, 12, 16), name="data"), te.placeholder((3, 3, 16, 1), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(data, kernel, 1, 1))]


def matmul() -> list[te.Tensor]:
    a, b = te.placeholder((72, 64), name="a"), te.placeholder((64, 80), name="b")
    return [a, b, topi.matmul(a, b)]


def large_matmul() -> list[te.Tensor]:
    """Products in slices, and large tiles whose copies are spread over the steps of a fill."""
    a, b = te.placeholder((304, 320), name="a"), te.placeholder((320, 336), name="b")
    return [a, b, topi.matmul(a, b)]


def uneven_matmul() -> list[te.Tensor]:
    """Extents that no vector divides: rows that begin anywhere, zeros beyond the terms, edges that are dropped."""
    a, b = te.placeholder((301, 323), name="a"), te.placeholder((323, 337), name="b")
    return [a, b, topi.matmul(a, b)]


def computed_matmul() -> list[te.Tensor]:
    """A factor that is computed as it is copied, in a product of few tiles whose terms are divided among slices."""
    a, b = te.placeholder((190, 40), name="a"), te.placeholder((40, 70), name="b")
    return [a, b, topi.matmul(topi.nn.relu(a), b)]


def wide_conv() -> list[te.Tensor]:
    """By transforms of Winograd, whose products are a batch, and directly."""
    data, kernel = te.placeholder((8, 128, 14, 13), name="data"), te.placeholder((128, 128, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)]


def wide_window() -> list[te.Tensor]:
    """A window of 5x5: parts of it by transforms of Winograd, which share the inverse."""
    data, kernel = te.placeholder((4, 64, 28, 27), name="data"), te.placeholder((64, 64, 5, 5), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 2)]


def softmax() -> list[te.Tensor]:
    data = te.placeholder((6, 600), name="data")
    return [data, topi.nn.softmax(data, -1)]


def sums() -> list[te.Tensor]:
    data = te.placeholder((48, 100), name="data")
    return [data, topi.sum(data, axis=0)]


def half_matmul() -> list[te.Tensor]:
    """Whole tiles of every matrix unit: fragments in registers, tiles in shared memory, bulk copies."""
    a, b = te.placeholder((128, 128), "float16", name="a"), te.placeholder((192, 128), "float16", name="b")
    return [a, b, topi.cast(topi.matmul(a, b, transpose_b=True, out_dtype="float32"), "float16")]


def ragged_matmul() -> list[te.Tensor]:
    a, b = te.placeholder((100, 72), "float16", name="a"), te.placeholder((72, 88), "float16", name="b")
    return [a, b, topi.matmul(a, b, out_dtype="float32")]


def bytes_matmul() -> list[te.Tensor]:
    a, b = te.placeholder((128, 256), "int8", name="a"), te.placeholder((128, 256), "int8", name="b")
    return [a, b, topi.matmul(a, b, transpose_b=True, out_dtype="int32")]


def half_conv() -> list[te.Tensor]:
    data = te.placeholder((1, 14, 14, 32), "float16", name="data")
    kernel = te.placeholder((3, 3, 32, 64), "float16", name="kernel")
    product = topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")
    return [data, kernel, topi.cast(topi.nn.relu(product), "float16")]


def attention() -> list[te.Tensor]:
    """Softmax between two products, causal: one kernel on matrix units."""
    return _attention(128)


def few_queries() -> list[te.Tensor]:
    """The same of a few queries, which see all keys: parts of these on blocks of threads, and a kernel that joins."""
    return _attention(3)


def _attention(queries: int) -> list[te.Tensor]:
    q, k, v = (te.placeholder((2, n, 64), "float16", name=name) for name, n in (("q", queries), ("k", 128), ("v", 128)))
    products = topi.nn.batch_matmul(q, k, False, True, out_dtype="float32")
    scores = te.compute(
        products.shape,
        lambda b, i, j: (
            te.if_then_else(j <= i, products[b, i, j] * 0.125, float("-inf"))
            if queries == 128
            else products[b, i, j] * 0.125
        ),
        name="causal",
    )
    along, again = te.reduce_axis((0, 128), "k"), te.reduce_axis((0, 128), "n")
    largest = te.compute((2, queries), lambda b, i: te.max(scores[b, i, along], axis=along), name="largest")
    powers = te.compute(scores.shape, lambda b, i, j: te.exp(scores[b, i, j] - largest[b, i]), name="powers")
    total = te.compute((2, queries), lambda b, i: te.sum(powers[b, i, again], axis=again), name="total")
    weights = te.compute(
        scores.shape, lambda b, i, j: (powers[b, i, j] / total[b, i]).astype("float16"), name="weights"
    )
    return [q, k, v, topi.cast(topi.nn.batch_matmul(weights, v, out_dtype="float32"), "float16")]


WORKLOADS: tuple[Callable[[], list[te.Tensor]], ...] = (
    conv,
    depthwise,
    matmul,
    large_matmul,
    uneven_matmul,
    computed_matmul,
    wide_conv,
    wide_window,
    softmax,
    sums,
    half_matmul,
    ragged_matmul,
    bytes_matmul,
    half_conv,
    attention,
    few_queries,
    *FAMILIES,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4, help="candidates of each sketch")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"])
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[w.__name__ for w in WORKLOADS], help="these workloads")
    parser.add_argument("--timeout-s", type=float, default=240.0, help="of each tool")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        return run_all(pickle.loads(options.run.read_bytes()))
    try:
        sanitizer = find_sanitizer()
        workloads = [workload for workload in WORKLOADS if not options.only or workload.__name__ in options.only]
        samples = draw(workloads, options.target, options.samples, options.seed)
        print(f"{len(samples)} kernels of {len(workloads)} workloads, {options.target}", flush=True)
        clean = [report(tool, sanitize(sanitizer, tool, samples, options.timeout_s)) for tool in options.tools]
    except MissingSanitizer as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(clean) else 1


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer: on PATH, in a toolkit, or in NVIDIA's package."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    folders = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]
    folders += [str(folder) for root in roots for folder in root.glob("*/compute-sanitizer")]
    found = shutil.which("compute-sanitizer") or next(
        filter(None, (shutil.which("compute-sanitizer", path=folder) for folder in folders)), None
    )
    if found is None:
        raise MissingSanitizer(f"checking CUDA kernels needs compute-sanitizer, which is not here: {INSTALL}")
    return found


def draw(workloads: Sequence[Callable[[], list[te.Tensor]]], target: str, samples: int, seed: int) -> list[Sample]:
    """Compile each workload's untuned choice, the default of each of its sketches and candidates from anywhere."""
    from loopwright.backends.cuda.device import build

    rng = np.random.default_rng(seed)
    drawn = []
    for workload in workloads:
        task = lw.SearchTask(workload, target=target)
        reference = make_reference(task.module)
        for schedule in schedules_of(task, samples, rng):
            drawn.append(
                Sample(
                    workload.__name__,
                    schedule,
                    build(str(task.module), schedule),
                    reference.inputs,
                    reference.expected,
                    reference.tolerances,
                )
            )
    return drawn


def schedules_of(task: lw.SearchTask, samples: int, rng: np.random.Generator) -> list[str]:
    found: dict[str, None] = {task.default_schedule: None}
    for sketch in task.sketches:
        rows = rng.integers(0, [len(h.choices) for h in sketch.holes], size=(2000, len(sketch.holes)))
        rows = np.concatenate([sketch.default[None], rows])
        for row in rows[sketch.legal(rows)][:samples]:
            found[sketch.schedule(row)] = None
    return list(found)


def sanitize(sanitizer: str, tool: str, samples: Sequence[Sample], timeout_s: float) -> dict[str, list[str]]:
    """Run all samples under one tool; returns complaints by the kernel that they are about."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "samples")
        given.write_bytes(pickle.dumps(list(samples)))
        command = [sanitizer, "--tool", tool, sys.executable, __file__, "--run", str(given)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    text = done.stdout + done.stderr
    if done.returncode == _ABSENT:
        raise MissingSanitizer(text.strip().splitlines()[0])
    if _SUMMARY.search(text) is None:
        raise MissingSanitizer(f"{tool} says nothing of what it found:\n{text[-2000:]}")
    return complaints_in(text)


def complaints_in(text: str) -> dict[str, list[str]]:
    """Read the output of a run: complaints stand after the mark of the kernel that they are about."""
    found: dict[str, list[str]] = {}
    current = "before the first kernel"
    for line in text.splitlines():
        if line.startswith(_MARK):
            current = line.removeprefix(_MARK)
        elif (complaint := _COMPLAINT.match(line)) and not any(word in line for word in _NOISE):
            found.setdefault(current, []).append(complaint.group(1))
        elif line.startswith("WRONG: "):
            found.setdefault(current, []).append(line)
    total = sum(int(number) for groups in _SUMMARY.findall(text) for number in groups if number)
    if total and not found:
        found["unknown"] = [f"{total} errors"]
    return found


def report(tool: str, found: dict[str, list[str]]) -> bool:
    """Print what a tool found; True where that is nothing."""
    print(f"{tool}: {'clean' if not found else f'{len(found)} kernels with complaints'}", flush=True)
    for name, lines in found.items():
        print(f"  {name}")
        for line in dict.fromkeys(lines[:5]):
            print(f"    {line}")
    return not found


_ABSENT = 77


def run_all(samples: Sequence[Sample]) -> int:
    """Do the work of the process under the tool."""
    from loopwright.backends.cuda.device import load
    from loopwright.backends.cuda.driver import MissingCuda

    for number, sample in enumerate(samples):
        print(f"{_MARK}{number} {sample.name} {sample.schedule}", flush=True)
        outputs = [np.full(e.shape, 7, e.dtype) for e in sample.expected]
        try:
            load(sample.artifact).run([*sample.inputs, *outputs])
        except MissingCuda as error:
            print(error, flush=True)
            return _ABSENT
        for got, expected, (atol, rtol) in zip(outputs, sample.expected, sample.tolerances, strict=True):
            if not np.allclose(got, expected, atol=atol, rtol=rtol):
                print(f"WRONG: {np.abs(got - expected).max()} off", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
