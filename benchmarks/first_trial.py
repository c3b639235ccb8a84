"""Time from the start of `loopwright tune` to the first record in its file, of several versions in turn.

A version is the folder that holds it as a package called `loopwright` (a checkout is linked so as `.links`):

    python benchmarks/first_trial.py .links /tmp/before
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.005
GIVE_UP_S = 120.0


@dataclass(frozen=True)
class Took:
    """Seconds until the first record: on the wall, and of the processor by the command itself without its workers."""

    wall_s: float
    cpu_s: float


def first_record(version: Path, arguments: list[str]) -> Took:
    """Start a search, and end it when its record file has a line."""
    environment = {**os.environ, "PYTHONPATH": str(version.resolve())}
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "found.jsonl"
        command = [sys.executable, "-m", "loopwright", "tune", *arguments, "--records", str(records)]
        start_s = time.perf_counter()
        search = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not (records.exists() and b"\n" in records.read_bytes()):
            if search.poll() is not None or time.perf_counter() - start_s > GIVE_UP_S:
                search.kill()
                raise SystemExit(f"{version}: no trial was recorded")
            time.sleep(LOOK_EVERY_S)
        wall_s = time.perf_counter() - start_s
        search.kill()  # its workers' guards end them
        _, _, used = os.wait4(search.pid, 0)
        search.returncode = -9
        return Took(wall_s, used.ru_utime + used.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", type=Path, help="folders that hold a package called loopwright")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--arguments", default="conv2d --trials 64", help="of `loopwright tune` (default: make tune's)")
    options = parser.parse_args()
    found: dict[Path, list[Took]] = {version: [] for version in options.versions}
    for _ in range(options.rounds):
        for version, took in found.items():
            took.append(first_record(version, options.arguments.split()))
    for version, took in found.items():
        walls_s, cpus_s = [one.wall_s for one in took], [one.cpu_s for one in took]
        print(
            f"{version}: first trial after {statistics.median(walls_s):.2f} s ({min(walls_s):.2f} at least), "
            f"of which the command computes {statistics.median(cpus_s):.2f} s ({min(cpus_s):.2f})"
        )


if __name__ == "__main__":
    main()
