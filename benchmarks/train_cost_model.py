"""Train the cost model that ships for a kind of target on the samples of `collect_samples.py`, and say how good it is.

    python benchmarks/train_cost_model.py benchmarks/samples/cuda-*.npz --output pretuned/cuda.model
    python benchmarks/train_cost_model.py benchmarks/samples/llvm-*.npz --output pretuned/llvm.model

`make models` does both. Files without features (`rebuilt_samples.py`) have theirs computed anew, so that models are of
the estimates and features that there are.

Quality is that of models which have not seen the workload: workloads are divided into folds. "picked" is the time of a
workload's candidate that is predicted best over that of its fastest one, in geometric mean; "estimates" has what the
rules' own estimates pick, where there are any, else the lower bounds of the roofline. With `--apart kinds` models have
not seen the kind of workload, with `--apart files` not the file, as another machine's is.

With `--beside MODEL` each kind has what that one picks too, and how much slower the new one's are: nine in ten of the
means that draws of its workloads have lie between the two numbers. A kind whose numbers are both above 1 has become
worse. Where the other model was trained on the samples it looks better than it is; `--check` compares on other files.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rebuilt_samples import COLUMNS, rebuilt

import loopwright as lw
from loopwright.search.cost_model import CostModel
from loopwright.search.cost_model.general import General
from loopwright.search.cost_model.held_out import (
    bounds_of_mean,
    folds_of,
    geometric_mean,
    held_out_predictions,
    picked,
    trained_for,
)
from loopwright.search.cost_model.ranking import ranking_quality

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
        """The samples of a file that `collect_samples.py` wrote; features are computed where it has none."""
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            kinds = tuple(kind for kind, *_ in about["workloads"])
            numbers, times_s = arrays["workloads"].astype(np.int64), arrays["times_s"]
            target, features = about["target"].split()[0], arrays.get("features")
        if features is not None:
            return cls(tuple(about["columns"]), kinds, features, times_s, numbers, target)
        kept, features = rebuilt(path)
        return cls(COLUMNS, kinds, features, times_s[kept], numbers[kept], target)

    def of(self, mask: npt.NDArray[np.bool_]) -> Samples:
        """Some of them."""
        return replace(self, features=self.features[mask], times_s=self.times_s[mask], workloads=self.workloads[mask])

    def train(self) -> General:
        """The model of these."""
        return trained_for(self.target, self.columns, self.features, self.times_s, self.workloads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="+", type=Path)
    parser.add_argument("--output", help="the model, of all samples")
    parser.add_argument(
        "--units", type=Path, help="a model whose correction its candidates on matrix units are to have"
    )
    parser.add_argument(
        "--apart", choices=["workloads", "kinds", "files"], default="workloads", help="what is held out"
    )
    parser.add_argument("--beside", type=Path, help="the file of a model to compare with, as the one that ships")
    parser.add_argument("--check", nargs="+", type=Path, help="samples that neither model was trained on")
    options = parser.parse_args()
    beside = lw.load_cost_model(options.beside) if options.beside else None
    parts = [Samples.read(path) for path in options.samples]
    samples = joined(parts)
    print(f"{len(samples.times_s)} samples of {len(np.unique(samples.workloads))} workloads")
    folds = {
        "workloads": folds_of(samples.workloads),
        "kinds": np.unique(np.array(samples.kinds)[samples.workloads], return_inverse=True)[1],
        "files": np.repeat(np.arange(len(parts)), [len(part.times_s) for part in parts]),
    }
    fold = folds[options.apart]
    predicted = held_out_predictions(lambda seen: samples.of(seen).train(), samples.features, fold)
    print(_table(samples, predicted, beside))
    if options.check:
        check = joined([Samples.read(path) for path in options.check])
        print("\nof other files, by the model of all samples:")
        print(_table(check, samples.train().predict(check.features)[0], beside))
    if options.apart == "files":
        for number, path in enumerate(options.samples):
            print(f"\n{path.name}, by models of the others:")
            print(_table(samples.of(fold == number), predicted[fold == number]))
    if options.output:
        model = samples.train()
        if options.units is not None:
            model = model.with_units_of(lw.load_cost_model(options.units))
        model.save(options.output)


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


def estimates(samples: Samples) -> Floats:
    """Minus the estimates that the features hold, `(n,)`."""
    prior, bound = (samples.features[:, samples.columns.index(name)] for name in ("prior.seconds", "bound.total"))
    return -np.asarray(np.where(np.isfinite(prior), prior, bound))


def _table(samples: Samples, predicted: Floats, beside: CostModel | None = None) -> str:
    """By kind of operator: samples, and how far what the models and the estimates pick is from the best."""
    picks = {"picked by the model": predicted, "by estimates": estimates(samples)}
    if beside is not None:
        picks["beside"] = beside.predict(samples.features)[0]
    title = ["kind", "workloads", "samples", *picks, "rank correlation", *(["slower"] if beside is not None else [])]
    lines = [f"| {' | '.join(title)} |", "|---" * len(title) + "|"]
    kinds = np.array(samples.kinds)[samples.workloads]
    for kind in [*dict.fromkeys(samples.kinds), "all"]:
        mask = np.ones(len(kinds), dtype=bool) if kind == "all" else kinds == kind
        if not mask.any():
            continue
        own = samples.of(mask)
        lost = [picked(scores[mask], own.times_s, own.workloads) for scores in picks.values()]
        row = [kind, len(lost[0]), len(own.times_s), *(f"{geometric_mean(each):.2f}x" for each in lost)]
        row += [f"{_ranks(own, predicted[mask]):.2f}"]
        row += ["{:.2f} to {:.2f}".format(*bounds_of_mean(lost[0] / lost[-1]))] if beside is not None else []
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def _ranks(samples: Samples, scores: Floats) -> float:
    """The mean rank correlation within workloads of several samples."""
    found = []
    for workload in np.unique(samples.workloads):
        own = samples.workloads == workload
        if np.count_nonzero(own) > 1 and (quality := ranking_quality(scores[own], samples.times_s[own])) is not None:
            found.append(quality.rank_correlation)
    return float(np.mean(found)) if found else float("nan")


if __name__ == "__main__":
    main()
