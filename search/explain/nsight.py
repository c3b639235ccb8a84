"""Hardware counters of a CUDA device: Nsight Compute (`ncu`) around one run of a schedule, in a process of its own."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...backends.cuda.nvrtc_library import toolkit_folders
from ..measure.measurer import headline
from ..task import SearchTask

SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "WarpStateStats", "SchedulerStats", "Occupancy", "LaunchStats")
"""Sections of Nsight Compute that say what binds a kernel; all of them take some tens of passes."""
TIMEOUT_S = 120.0
"""Of a profiler's run. A choice: far beyond what counters of a few launches take, so that only a hung one is ended."""

METRICS = (
    "Duration",
    "Compute (SM) Throughput",
    "Memory Throughput",
    "L1/TEX Cache Throughput",
    "L2 Cache Throughput",
    "DRAM Throughput",
    "L1/TEX Hit Rate",
    "L2 Hit Rate",
    "Achieved Occupancy",
    "Theoretical Occupancy",
    "Issue Slots Busy",
    "Executed Ipc Active",
    "Issued Warp Per Scheduler",
    "Eligible Warps Per Scheduler",
    "Warp Cycles Per Issued Instruction",
    "Registers Per Thread",
    "Waves Per SM",
)
"""Metrics that are shown, under the names that Nsight Compute gives them."""


@dataclass(frozen=True)
class LaunchCounters:
    """The counters of one launch: the kernel's name, and values with their units by the metric's name."""

    kernel: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Profile:
    """The counters of each launch of a schedule; `why` says why there are none."""

    launches: tuple[LaunchCounters, ...]
    why: str = ""


def profiler() -> str | None:
    """The path of `ncu`, on PATH, in a toolkit, or where its installer puts it; None where it is not here."""
    found = shutil.which("ncu")
    places = [folder / "bin" / "ncu" for folder in toolkit_folders()]
    places += sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)
    return found or next((str(place) for place in places if place.is_file()), None)


def profile(task: SearchTask, schedule: str, launches: int, timeout_s: float = TIMEOUT_S) -> Profile:
    """Run a schedule under `ncu` by `loopwright replay`, and read the counters of its first `launches` launches."""
    path = profiler()
    if path is None:
        return Profile((), "Nsight Compute (ncu) is not on PATH, nor in a CUDA toolkit")
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder, "workload.mlir")
        workload.write_text(str(task.module) + "\n")
        return _run([*_options(path, launches), *_replay(workload, task, schedule)], timeout_s)


def _options(path: str, launches: int) -> list[str]:
    sections = [word for section in SECTIONS for word in ("--section", section)]
    return [path, "--csv", "--page", "details", "--launch-count", str(launches), *sections]


def _replay(workload: Path, task: SearchTask, schedule: str) -> list[str]:
    own = [sys.executable, "-m", "loopwright", "replay", str(workload), "--schedule", schedule]
    return [*own, "--target", str(task.target), "--repeat", "1", "--min-repeat-ms", "0"]


def _run(command: list[str], timeout_s: float) -> Profile:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Profile((), f"ncu did not end within {timeout_s:g} s")
    except OSError as error:
        return Profile((), f"ncu does not start: {error.strerror}")
    found = launch_counters(done.stdout.splitlines())
    if found:
        return Profile(found)
    said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.startswith("==ERROR==")]
    return Profile((), headline(said[0] if said else done.stderr or "ncu counted nothing").removeprefix("==ERROR== "))


def launch_counters(lines: Iterable[str]) -> tuple[LaunchCounters, ...]:
    """Read the details page of Nsight Compute as CSV, whatever the program under it printed before."""
    rows = [line for line in lines if line.startswith('"')]
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for row in csv.DictReader(rows):
        name, number = row.get("Metric Name") or "", row.get("ID") or ""
        if name in METRICS and number.isdigit():
            kernel, values = found.setdefault(number, ((row.get("Kernel Name") or "").partition("(")[0], {}))
            values.setdefault(name, f"{row.get('Metric Value') or ''} {row.get('Metric Unit') or ''}".strip())
            found[number] = kernel, values
    return tuple(LaunchCounters(kernel, values) for kernel, values in found.values())
