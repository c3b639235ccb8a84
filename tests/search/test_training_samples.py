"""The samples that the cost models that ship are trained on hold no network's own shapes: each network is left out."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sampled_workloads import Workload
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te
from loopwright.dialects.te import ComputeOp

FOLDER = Path(__file__).parents[2] / "benchmarks" / "samples"

Reduction = tuple[tuple[int, ...], tuple[int, ...]]
"""Extents above 1 of results, and of what is joined, in order: of a product, a convolution, a row of a softmax."""


def reductions(module: ModuleOp) -> Iterator[Reduction]:
    for op in module.walk():
        if isinstance(op, ComputeOp) and op.reduce_axes:
            of_results, of_terms = ([a.extent for a in axes] for axes in (op.spatial_axes, op.reduce_axes))
            yield extents(of_results), extents(of_terms)


def extents(found: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(extent for extent in found if extent > 1))


@cache
def trained_on() -> set[Reduction]:
    """Those of all samples but what was held back, by which models are compared."""
    found: set[Reduction] = set()
    for path in FOLDER.glob("*.npz"):
        if path.name.startswith("held-back"):
            continue
        about = json.loads(str(np.load(path, allow_pickle=False)["about"]))
        for kind, *arguments in about["workloads"]:
            found.update(reductions(te.create_module(Workload(kind, tuple(arguments), False).tensors())))
    return found


@pytest.mark.parametrize("name", ["resnet-50", "bert_encoder_layer", "mobilenet_v2", "resnet-18", "densenet-121"])
@pytest.mark.slow
def test_no_reduction_of_a_network_is_among_the_samples(name: str) -> None:
    tasks, _ = lw.extract_tasks(lw.testing.network(name), "cuda model=h200")
    own = {reduction for task in tasks for reduction in reductions(task.module)}
    assert len(trained_on()) > 1000
    assert own and not own & trained_on()
