"""Replay a table of schedules through CUDA and through OpenCL on one device, and compare their times.

Each schedule is applied to its case twice, for a target of either kind; both kernels are checked against NumPy first.
CUDA's time is that of a replayed graph, OpenCL's the sum of its kernels' own events: neither waits for the host.
Without a CUDA device the OpenCL column stands alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases
import numpy as np

import loopwright as lw
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
from loopwright.search.reference import Reference

TABLE = Path(__file__).parent / "results" / "gpu-h200-2026-11-21.schedules.json"
ASKED = 1.25
"""OpenCL is to take at most so many times as long as CUDA."""
SECONDS_A_ROUND = 0.02


@dataclass(frozen=True)
class Row:
    """One case: seconds of a run through each, or why there are none."""

    name: str
    cuda: float | str
    opencl: float | str

    @property
    def ratio(self) -> float | None:
        """OpenCL's time over CUDA's, where there are both."""
        return self.opencl / self.cuda if isinstance(self.cuda, float) and isinstance(self.opencl, float) else None


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
    for line in (*heading(index), *map(row_text, compared(chosen, schedules, index, options.rounds))):
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
        f"Medians, microseconds; at most {ASKED}x is asked for.",
        "",
        "| case | CUDA (us) | OpenCL (us) | OpenCL / CUDA |",
        "|---|---|---|---|",
    ]


def compared(chosen: Sequence[cases.Case], schedules: Mapping[str, str], index: int, rounds: int) -> list[Row]:
    """Time each case both ways."""
    return [compare(case.name, case.tensors, schedules[case.name], index, rounds) for case in chosen]


def compare(name: str, tensors: Callable[..., Any], schedule: str, index: int, rounds: int) -> Row:
    """Time one case both ways; a way that fails says why instead."""
    reference: list[Reference] = []

    def through(target: Callable[[], Target], load: Callable[[str, str], DeviceExecutable], time: Timer) -> float | str:
        try:
            task = lw.SearchTask(tensors, target=target())
            reference.append(reference[0] if reference else task.reference)
            return timed(load(str(task.module), schedule), reference[0], time, rounds)
        except MissingCuda:
            return "no device"
        except Exception as error:  # one case must not cost the others their device time
            return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"

    return Row(
        name,
        through(cuda_target, lambda *parts: cuda_device.load(cuda_device.build(*parts)), graph_time),
        through(lambda: target_of_device(index), lambda *parts: load_opencl(index, *parts), kernel_time),
    )


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
    for got, expected in zip(outputs, reference.expected, strict=True):
        np.testing.assert_allclose(got, expected, atol=reference.atol, rtol=reference.rtol)
    runtime = executable.runtime
    buffers = executable._upload(arrays, again=True)
    once_s = time(runtime, buffers, 1)
    number = max(1, min(1000, int(SECONDS_A_ROUND / max(once_s, 1e-7))))
    return statistics.median(time(runtime, buffers, number) / number for _ in range(rounds))


def row_text(row: Row) -> str:
    shown = [f"{cell * 1e6:.1f}" if isinstance(cell, float) else cell for cell in (row.cuda, row.opencl)]
    verdict = "" if row.ratio is None else f"{row.ratio:.2f}x{' (above)' if row.ratio > ASKED else ''}"
    return f"| {row.name} | {shown[0]} | {shown[1]} | {verdict} |"


if __name__ == "__main__":
    raise SystemExit(main())
