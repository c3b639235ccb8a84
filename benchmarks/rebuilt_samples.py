"""Features and estimates of measured candidates, computed again of what fills their holes: after a change of either.

    python benchmarks/rebuilt_samples.py samples.npz --output samples.npz

Of a file of `collect_samples.py` that says how each candidate is decided. What no sketch gives any more is left out,
and counted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sampled_workloads import Workload

from loopwright.search.features.catalogue import PRIOR, names
from loopwright.search.sketch.sketch import Sketch


@dataclass(frozen=True)
class Decided:
    """Candidates of one workload from one sketch: their numbers in the file, and their rows."""

    workload: int
    sketch: Sketch
    samples: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with np.load(options.samples, allow_pickle=False) as file:
        arrays: dict[str, Any] = dict(file)
    about, found = json.loads(str(arrays["about"])), decided(options.samples)
    about["columns"] = (*names(), PRIOR.name)
    kept = np.concatenate([each.samples for each in found])
    lost = len(arrays["times_s"]) - len(kept)
    if lost:
        print(f"{lost} of {lost + len(kept)} are left out: no sketch gives them any more")
    ends = np.cumsum([len(about["holes"][space]) for space in arrays["spaces"]])
    runs = [arrays["values"][ends[n] - len(about["holes"][arrays["spaces"][n]]) : ends[n]] for n in kept]
    arrays |= {name: arrays[name][kept] for name in ("times_s", "workloads", "sketches", "rounds", "spaces")}
    arrays["features"] = np.concatenate([each.sketch.features(each.rows) for each in found]).astype(np.float32)
    arrays["values"] = np.concatenate(runs)
    np.savez_compressed(options.output, **{**arrays, "about": np.array(json.dumps(about))})


def decided(path: Path) -> list[Decided]:
    """The candidates of a file that sketches still give, by workload and sketch."""
    with np.load(path, allow_pickle=False) as arrays:
        about = json.loads(str(arrays["about"]))
        workloads, spaces, values = arrays["workloads"], arrays["spaces"], arrays["values"]
        numbers = arrays["sketches"]
    holes = [tuple(each) for each in about["holes"]]
    ends = np.cumsum([len(holes[space]) for space in spaces])
    found = []
    for number in np.unique(workloads):
        kind, *args = about["workloads"][number]
        task = Workload(kind, tuple(args), about["constant"][number]).task(about["target"])
        for sketch, space in np.unique(np.stack([numbers, spaces], axis=1)[workloads == number], axis=0):
            own = np.flatnonzero((workloads == number) & (spaces == space) & (numbers == sketch))
            filled = np.stack([values[ends[n] - len(holes[space]) : ends[n]] for n in own])
            found += _of_sketch(int(number), task.sketches, int(sketch), holes[space], own, filled)
    return found


def _of_sketch(
    number: int,
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
    return [Decided(number, sketch, samples[known], rows[known])] if known.any() else []


if __name__ == "__main__":
    main()
