"""Hold two versions of loopwright to each other: the schedules, sources and features of random candidates.

`write` draws candidates of every sketch of every named workload on three targets and keeps hashes of what becomes of
them; `compare`, run on the other version, draws the same ones and says where anything differs. A change that means to
leave kernels alone leaves all of them equal, byte for byte; nothing is run, so no device is needed:

    python benchmarks/replay_spaces.py write before.json
    python benchmarks/replay_spaces.py compare before.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.llvm.emit import emit
from loopwright.backends.opencl.compile import print_opencl
from loopwright.search.named_workloads import named_workloads

TARGETS = {
    "llvm cores=2 vector_bytes=64 vector_registers=32": emit,
    "cuda model=h200": print_cuda,
    "opencl model=mali-t860": print_opencl,
}
PARTS = ("schedule", "source", "features")


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def candidates(rows: int, match: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of each candidate, with the hash of each of its parts; an error's text where it does not lower."""
    for target, printed in TARGETS.items():
        for name, workload in named_workloads().items():
            if match not in name:
                continue
            task = lw.SearchTask(workload, target=target)
            for sketch in task.sketches:
                drawn = sketch.sample(np.random.default_rng(0), rows)
                features = sketch.features(drawn)
                for number, (row, values) in enumerate(zip(drawn, features, strict=True)):
                    schedule = sketch.schedule(row)
                    try:
                        source = printed(lower_to_kernel(task.schedule_module(schedule), task.target)).source
                    except Exception as error:  # a version that fails here differs here
                        source = repr(error)
                    parts = (schedule.encode(), source.encode(), values.tobytes())
                    label = f"{target.split()[0]} {name} {sketch.name} {number}"
                    yield label, dict(zip(PARTS, map(digest, parts), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=3, help="candidates of each sketch (default 3)")
    parser.add_argument("--match", default="", help="only workloads whose name holds this")
    options = parser.parse_args()
    found = dict(candidates(options.rows, options.match))
    if options.mode == "write":
        options.file.write_text(json.dumps(found, indent=0))
        print(f"{len(found)} candidates")
        return 0
    before = {k: v for k, v in json.loads(options.file.read_text()).items() if options.match in k}
    differing = Counter[str]()
    for label in sorted(before.keys() | found.keys()):
        ours, theirs = found.get(label), before.get(label)
        wrong = [p for p in PARTS if ours is None or theirs is None or ours[p] != theirs[p]]
        differing.update(wrong)
        if wrong:
            gone = " (not there now)" if ours is None else " (new)" if theirs is None else ""
            print(f"{label}: {', '.join(wrong)}{gone}")
    counts = ", ".join(f"{differing[part]} {part}" for part in PARTS)
    print(f"{len(found)} candidates, {len(before)} before; differing: {counts}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
