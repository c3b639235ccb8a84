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
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rebuilt_samples import COLUMNS, rebuilt

import loopwright as lw
from loopwright.search.cost_model import CostModel
from loopwright.search.cost_model.general import USUAL_GROWTH, General, Growth
from loopwright.search.cost_model.ranking import ranking_quality

FOLDS = 5
DRAWS = 2000
"""Of workloads, by which means are compared."""
GROWTH = {"cuda": USUAL_GROWTH, "llvm": Growth(forests=8, trees=60, leaves=12, rate=0.1)}
"""By the kind of target."""
DOUBT = {"cuda": 0.0, "llvm": 0.1}
"""By the kind of target: log2 of how much faster than the rules' own choice a candidate must be predicted to be."""
LIKED = {"cuda": True, "llvm": False}
"""By the kind of target: slow candidates of little estimate count too. On CPUs defaults are seldom left."""
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
        growth, doubt, liked = GROWTH[self.target], DOUBT[self.target], LIKED[self.target]
        arrays = self.features, self.times_s, self.workloads
        return General.trained(self.columns, *arrays, growth=growth, doubt=doubt, liked=liked)


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
        "workloads": np.random.default_rng(0).permutation(int(samples.workloads.max()) + 1)[samples.workloads] % FOLDS,
        "kinds": np.unique(np.array(samples.kinds)[samples.workloads], return_inverse=True)[1],
        "files": np.repeat(np.arange(len(parts)), [len(part.times_s) for part in parts]),
    }
    fold = folds[options.apart]
    predicted = held_out_predictions(samples, fold)
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
        lost = [_per_workload(own, scores[mask], _lost) for scores in picks.values()]
        ranks = float(np.nanmean(_per_workload(own, predicted[mask], _correlation)))
        row = [kind, len(lost[0]), len(own.times_s), *(f"{np.exp(np.mean(np.log(each))):.2f}x" for each in lost)]
        row += [f"{ranks:.2f}", *([_between(lost[0] / lost[-1])] if beside is not None else [])]
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def _between(ratios: Floats) -> str:
    """The bounds of the geometric means of nine in ten draws of workloads, with as many as there are."""
    drawn = np.random.default_rng(0).choice(np.log(ratios), (DRAWS, len(ratios)))
    low, high = np.exp(np.percentile(drawn.mean(axis=1), [5, 95]))
    return f"{low:.2f} to {high:.2f}"


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
