"""Replay a table of schedules through CUDA and through OpenCL on one device, and compare their times.

Each schedule is applied to its case twice, for a target of either kind; both kernels are checked against NumPy first.
CUDA's time is that of a replayed graph, OpenCL's the sum of its kernels' own events: neither waits for the host. OpenCL
has nothing like graphs, and its events contain the launch; how much that is, a kernel of one element shows. The second
ratio is without it. Without a CUDA device the OpenCL column stands alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases
import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.executable import DeviceExecutable
from loopwright.backends.cuda import device as cuda_device
from loopwright.backends.cuda.driver import MissingCuda
from loopwright.backends.cuda.driver import describe as describe_cuda
from loopwright.backends.cuda.driver import target_of_device as cuda_target
from loopwright.backends.opencl import device as opencl_device
from loopwright.backends.opencl import executable as opencl_executable
from loopwright.backends.opencl.platform import describe, devices, target_of_device
from loopwright.dialects.target import Target
from loopwright.search.measure.reference import Reference

TABLE = Path(__file__).parent / "results" / "gpu-h200-2026-11-21.schedules.json"
ASKED = 1.25
"""OpenCL is to take at most so many times as long as CUDA."""
SECONDS_A_ROUND = 0.02
ONE_ELEMENT = 'lw-lower-te-to-loop,lw-bind{block="y" loop="i" thread="threadIdx.x"}'


@dataclass(frozen=True)
class Row:
    """One case: seconds of a run through each, or why there are none."""

    name: str
    cuda: float | str
    opencl: float | str
    launches: int = 1

    def ratio(self, launch_s: float = 0.0) -> float | None:
        """OpenCL's time, less that of its launches, over CUDA's, where there are both."""
        if not isinstance(self.cuda, float) or not isinstance(self.opencl, float):
            return None
        return (self.opencl - self.launches * launch_s) / self.cuda


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=Path, default=TABLE, help="JSON: a schedule for each case's name")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in cases.GPU_CASES])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, help="write the table to this file")
    options = parser.parse_args()
    schedules = json.loads(options.schedules.read_text())
    chosen = [case for case in cases.GPU_CASES if case.name in (options.cases or schedules)]
    missing = [case.name for case in chosen if case.name not in schedules]
    if missing:
        parser.error(f"{options.schedules} has no schedule for {', '.join(missing)}; it has {', '.join(schedules)}")
    index, lines = opencl_index(), []
    for line in itertools.chain(heading(index), table(chosen, schedules, index, options.rounds)):
        print(line, flush=True)
        lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    return 0


def opencl_index() -> int:
    """The number of the OpenCL device to use: NVIDIA's, where there is one."""
    found = [number for number, device in enumerate(devices()) if "nvidia" in device.platform.name.lower()]
    return found[0] if found else 0


def heading(index: int) -> list[str]:
    try:
        cuda = describe_cuda()
    except MissingCuda as error:
        cuda = f"none ({error})"
    return [
        "# The same schedules through CUDA and OpenCL",
        "",
        f"CUDA: {cuda}. OpenCL: {describe(devices()[index])}. loopwright {lw.__version__}.",
        f"Medians; at most {ASKED}x is asked for. The last column is without what OpenCL's events say of a launch.",
        "",
        "| case | CUDA (us) | OpenCL (us) | OpenCL / CUDA | without launches |",
        "|---|---|---|---|---|",
    ]


def table(chosen: Sequence[cases.Case], schedules: Mapping[str, str], index: int, rounds: int) -> Iterator[str]:
    """Time a kernel of one element, then each case, both ways; gives the lines of the table."""
    first = compare("one element", one_element, ONE_ELEMENT, index, rounds)
    yield row_text(first, launch_of(first))
    for case in chosen:
        yield row_text(compare(case.name, case.tensors, schedules[case.name], index, rounds), launch_of(first))


def one_element() -> list[te.Tensor]:
    x = te.placeholder((1,), name="x")
    return [x, te.compute((1,), lambda i: x[i] + 1.0, name="y")]


def launch_of(first: Row) -> float:
    """Seconds by which OpenCL's time of the smallest kernel is longer than CUDA's."""
    return max(0.0, first.opencl - first.cuda) if first.ratio() is not None else 0.0  # type: ignore[operator]


def compare(name: str, tensors: Callable[..., Any], schedule: str, index: int, rounds: int) -> Row:
    """Time one case both ways; a way that fails says why instead."""
    reference: list[Reference] = []
    launches: list[int] = []

    def through(target: Callable[[], Target], load: Callable[[str, str], DeviceExecutable], time: Timer) -> float | str:
        try:
            task = lw.SearchTask(tensors, target=target())
            reference.append(reference[0] if reference else task.reference)
            executable = load(str(task.module), schedule)
            launches.append(len(executable.artifact.kernel.launches))
            return timed(executable, reference[0], time, rounds)
        except MissingCuda:
            return "no device"
        except Exception as error:  # one case must not cost the others their device time
            return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"

    cuda = through(cuda_target, lambda *parts: cuda_device.load(cuda_device.build(*parts)), graph_time)
    opencl = through(lambda: target_of_device(index), lambda *parts: load_opencl(index, *parts), kernel_time)
    return Row(name, cuda, opencl, launches[-1] if launches else 1)


Timer = Callable[[Any, Sequence[Any], int], float]


def graph_time(runtime: Any, buffers: Sequence[Any], number: int) -> float:
    return float(runtime.time(buffers, number, graph=True))


def kernel_time(runtime: Any, buffers: Sequence[Any], number: int) -> float:
    return float(runtime.time_in_kernels(buffers, number))


def load_opencl(index: int, workload: str, schedule: str) -> DeviceExecutable:
    artifact = Artifact.from_bytes(opencl_device.build(workload, schedule), "opencl")
    return opencl_executable.load(artifact, index)


def timed(executable: DeviceExecutable, reference: Reference, time: Timer, rounds: int) -> float:
    """Check a kernel and return the median seconds of its runs."""
    outputs = [np.empty(e.shape, e.dtype) for e in reference.expected]
    arrays = [*map(np.ascontiguousarray, reference.inputs), *outputs]
    executable.run(arrays)
    for got, expected, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
        np.testing.assert_allclose(got, expected, **tolerance._asdict())
    runtime = executable.runtime
    buffers = executable._upload(arrays, again=True)
    once_s = time(runtime, buffers, 1)
    number = max(1, min(1000, int(SECONDS_A_ROUND / max(once_s, 1e-7))))
    return statistics.median(time(runtime, buffers, number) / number for _ in range(rounds))


def row_text(row: Row, launch_s: float = 0.0) -> str:
    shown = [f"{cell * 1e6:.1f}" if isinstance(cell, float) else cell for cell in (row.cuda, row.opencl)]
    ratios = [row.ratio(), row.ratio(launch_s)]
    verdicts = ["" if r is None else f"{r:.2f}x{' (above)' if r > ASKED else ''}" for r in ratios]
    return f"| {row.name} | {shown[0]} | {shown[1]} | {verdicts[0]} | {verdicts[1]} |"


if __name__ == "__main__":
    raise SystemExit(main())
