"""Train the cost model that ships for a kind of target on the samples of `collect_samples.py`, and say how good it is.

    python benchmarks/train_cost_model.py benchmarks/samples/cuda-*.npz --output pretuned/cuda.model
    python benchmarks/train_cost_model.py benchmarks/samples/llvm-*.npz --output pretuned/llvm.model

Quality is that of models which have not seen the workload: workloads are divided into folds. "picked" is the time of a
workload's candidate that is predicted best over that of its fastest one, in geometric mean; "estimates" has what the
rules' own estimates pick, where there are any, else the lower bounds of the roofline. With `--apart kinds` models have
not seen the kind of workload, with `--apart files` not the file, as another machine's is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.search.cost_model.general import USUAL_GROWTH, General, Growth
from loopwright.search.cost_model.ranking import ranking_quality

FOLDS = 5
GROWTH = {"cuda": USUAL_GROWTH, "llvm": Growth(forests=8, trees=60, leaves=12, rate=0.1)}
"""By the kind of target."""
DOUBT = {"cuda": 0.0, "llvm": 0.1}
"""By the kind of target: log2 of how much faster than the rules' own choice a candidate must be predicted to be."""
Floats = npt.NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """The samples of a file: `columns` name the features, `kinds` has the kind of each workload."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    features: Floats
    times_s: Floats
    workloads: npt.NDArray[np.int64]
    target: str
    """Its kind."""

    @classmethod
    def read(cls, path: Path) -> Samples:
        """The samples of a file that `collect_samples.py` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            kinds = tuple(kind for kind, *_ in about["workloads"])
            numbers = arrays["workloads"].astype(np.int64)
            target = about["target"].split()[0]
            return cls(tuple(about["columns"]), kinds, arrays["features"], arrays["times_s"], numbers, target)

    def of(self, mask: npt.NDArray[np.bool_]) -> Samples:
        """Some of them."""
        return replace(self, features=self.features[mask], times_s=self.times_s[mask], workloads=self.workloads[mask])

    def train(self) -> General:
        """The model of these."""
        how = {"growth": GROWTH[self.target], "doubt": DOUBT[self.target]}
        return General.trained(self.columns, self.features, self.times_s, self.workloads, **how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="+", type=Path)
    parser.add_argument("--output", help="the model, of all samples")
    parser.add_argument(
        "--apart", choices=["workloads", "kinds", "files"], default="workloads", help="what is held out"
    )
    options = parser.parse_args()
    parts = [Samples.read(path) for path in options.samples]
    samples = joined(parts)
    print(f"{len(samples.times_s)} samples of {len(np.unique(samples.workloads))} workloads")
    folds = {
        "workloads": np.random.default_rng(0).permutation(int(samples.workloads.max()) + 1)[samples.workloads] % FOLDS,
        "kinds": np.unique(np.array(samples.kinds)[samples.workloads], return_inverse=True)[1],
        "files": np.repeat(np.arange(len(parts)), [len(part.times_s) for part in parts]),
    }
    fold = folds[options.apart]
    predicted = held_out_predictions(samples, fold)
    print(_table(samples, predicted))
    if options.apart == "files":
        for number, path in enumerate(options.samples):
            print(f"\n{path.name}, by models of the others:")
            print(_table(samples.of(fold == number), predicted[fold == number]))
    if options.output:
        samples.train().save(options.output)


def joined(parts: list[Samples]) -> Samples:
    """All samples of several sets, by the features that are in all of them."""
    columns = tuple(name for name in parts[0].columns if all(name in part.columns for part in parts))
    first = np.cumsum([0, *(len(part.kinds) for part in parts)])
    return Samples(
        columns,
        tuple(kind for part in parts for kind in part.kinds),
        np.concatenate([part.features[:, [part.columns.index(name) for name in columns]] for part in parts]),
        np.concatenate([part.times_s for part in parts]),
        np.concatenate([part.workloads + start for part, start in zip(parts, first, strict=False)]),
        parts[0].target,
    )


def held_out_predictions(samples: Samples, fold: npt.NDArray[np.int64]) -> Floats:
    """Return what models that saw no sample of its fold predict of each sample, `(n,)`."""
    found = np.zeros(len(samples.times_s))
    for number in np.unique(fold):
        own = fold == number
        found[own] = samples.of(~own).train().predict(samples.features[own])[0]
    return found


def estimates(samples: Samples) -> Floats:
    """Minus the estimates that the features hold, `(n,)`."""
    prior, bound = (samples.features[:, samples.columns.index(name)] for name in ("prior.seconds", "bound.total"))
    return -np.asarray(np.where(np.isfinite(prior), prior, bound))


def _table(samples: Samples, predicted: Floats) -> str:
    """By kind of operator: samples, and how far what the model and the estimates pick is from the best."""
    lines = [
        "| kind | workloads | samples | picked by the model | by estimates | rank correlation |",
        "|---|---|---|---|---|---|",
    ]
    kinds = np.array(samples.kinds)[samples.workloads]
    for kind in [*dict.fromkeys(samples.kinds), "all"]:
        mask = np.ones(len(kinds), dtype=bool) if kind == "all" else kinds == kind
        if not mask.any():
            continue
        own = samples.of(mask)
        quality = [_per_workload(own, scores[mask], _lost) for scores in (predicted, estimates(samples))]
        ranks = float(np.nanmean(_per_workload(own, predicted[mask], _correlation)))
        lost = " | ".join(f"{np.exp(np.mean(np.log(each))):.2f}x" for each in quality)
        lines.append(f"| {kind} | {len(quality[0])} | {len(own.times_s)} | {lost} | {ranks:.2f} |")
    return "\n".join(lines)


def _per_workload(samples: Samples, scores: Floats, measure: Callable[[Floats, Floats], float]) -> Floats:
    found = []
    for workload in np.unique(samples.workloads):
        own = samples.workloads == workload
        if np.count_nonzero(own) > 1:
            found.append(measure(scores[own], samples.times_s[own]))
    return np.array(found)


def _lost(scores: Floats, times_s: Floats) -> float:
    return float(times_s[np.argmax(scores)] / times_s.min())


def _correlation(scores: Floats, times_s: Floats) -> float:
    quality = ranking_quality(scores, times_s)
    return quality.rank_correlation if quality is not None else float("nan")


if __name__ == "__main__":
    main()
