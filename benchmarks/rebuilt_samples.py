"""Features and estimates of measured candidates, computed again of what fills their holes: after a change of either.

    python benchmarks/rebuilt_samples.py samples.npz --output samples.npz [--bare]

Of a file of `collect_samples.py` that says how each candidate is decided. What no sketch gives any more is left out,
and counted. A `--bare` file has no features: `train_cost_model.py` computes them whenever it reads it, so that they are
always those of the code as it is, and the file is a tenth as large.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sampled_workloads import Workload

import loopwright as lw
from loopwright.search.features.catalogue import PRIOR, names
from loopwright.search.features.of_sketch import SketchFeatures
from loopwright.search.sketch.sketch import Sketch

COLUMNS = (*names(), PRIOR.name)


@dataclass(frozen=True)
class Decided:
    """Candidates of one workload from one sketch: their numbers in the file, and their rows."""

    sketch: Sketch
    samples: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--bare", action="store_true", help="write no features")
    options = parser.parse_args()
    with np.load(options.samples, allow_pickle=False) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files if name != "features"}
    about, (kept, features) = json.loads(str(arrays["about"])), rebuilt(options.samples)
    about["columns"] = () if options.bare else COLUMNS
    lengths = np.array([len(holes) for holes in about["holes"]])[arrays["spaces"]]
    ends = np.cumsum(lengths)
    arrays["values"] = np.concatenate([arrays["values"][ends[n] - lengths[n] : ends[n]] for n in kept])
    arrays |= {name: arrays[name][kept] for name in ("times_s", "workloads", "sketches", "rounds", "spaces")}
    if not options.bare:
        arrays["features"] = features
    np.savez_compressed(options.output, **{**arrays, "about": np.array(json.dumps(about))})


def rebuilt(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The candidates of a file that sketches still give: their numbers `(n,)`, and their features of `COLUMNS`."""
    with np.load(path, allow_pickle=False) as arrays:
        numbers, count = np.unique(arrays["workloads"]), len(arrays["times_s"])
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(numbers), os.cpu_count() or 1), context) as pool:
        parts = [part for each in pool.map(partial(_of_workload, path), numbers.tolist()) for part in each]
    kept = np.concatenate([np.zeros(0, dtype=np.int64), *(samples for samples, _ in parts)])
    if len(kept) < count:
        print(f"{path.name}: {count - len(kept)} of {count} are left out, as no sketch gives them any more")
    return kept, np.concatenate([np.zeros((0, len(COLUMNS)), dtype=np.float32), *(rows for _, rows in parts)])


def _of_workload(path: Path, number: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """The numbers and features of one workload's candidates, sketch by sketch."""
    return [(each.samples, each.sketch.features(each.rows).astype(np.float32)) for each in decided(path, number)]


def decided(path: Path, number: int) -> list[Decided]:
    """The candidates of a workload of a file that sketches still give, by sketch."""
    with np.load(path, allow_pickle=False) as arrays:
        about = json.loads(str(arrays["about"]))
        of_workload, spaces, values = arrays["workloads"] == number, arrays["spaces"], arrays["values"]
        places = arrays["sketches"]
    holes = [tuple(each) for each in about["holes"]]
    ends = np.cumsum(np.array([len(each) for each in holes])[spaces])
    kind, *args = about["workloads"][number]
    task = Workload(kind, tuple(args), about["constant"][number]).task(about["target"])
    found, sketches = [], [as_measured(sketch, task) for sketch in task.sketches]
    for space, place in np.unique(np.stack([spaces, places])[:, of_workload], axis=1).T:
        own = np.flatnonzero(of_workload & (spaces == space) & (places == place))
        filled = np.stack([values[ends[n] - len(holes[space]) : ends[n]] for n in own])
        found += _of_sketch(sketches, place, holes[space], own, filled)
    return found


def as_measured(sketch: Sketch, task: lw.SearchTask) -> Sketch:
    """A sketch described by the steps that samples were measured with, where it has others now (`Draft.do_unseen`)."""
    if sketch.seen_template == sketch.template:
        return sketch
    described = SketchFeatures(task.module, task.target, sketch.name, sketch.seen_template, sketch.prior)
    return replace(sketch, describe=described)


def _of_sketch(
    sketches: Sequence[Sketch],
    place: int,
    holes: tuple[str, ...],
    samples: npt.NDArray[np.int64],
    filled: npt.NDArray[np.int64],
) -> list[Decided]:
    """The candidates of the sketch at a place, where it has these holes, else of the only one that has.

    Several sketches of a workload may have the same holes, as lanes along the same axis laid out here or there. Places
    are by the estimates, and change with them.
    """
    alike = [each for each in sketches if tuple(hole.name for hole in each.holes) == holes]
    if len(alike) != 1 and (place >= len(sketches) or sketches[place] not in alike):
        return []
    sketch = alike[0] if len(alike) == 1 else sketches[place]
    rows, known = np.zeros(filled.shape, dtype=np.int64), np.ones(len(filled), dtype=bool)
    for column, hole in enumerate(sketch.holes):
        at = {choice: place for place, choice in enumerate(hole.choices)}
        known &= np.array([value in at for value in filled[:, column].tolist()])
        rows[:, column] = [at.get(value, 0) for value in filled[:, column].tolist()]
    known &= sketch.legal(rows)
    return [Decided(sketch, samples[known], rows[known])] if known.any() else []


if __name__ == "__main__":
    main()
