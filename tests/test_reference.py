"""What counts as right: rounding errors of long sums and of transforms do, a missing term does not."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.search.reference import tolerance


def winograd(channels: int = 48) -> list[te.Tensor]:
    data, kernel = (
        te.placeholder((1, channels, 12, 12), name="data"),
        te.placeholder((8, channels, 3, 3), name="kernel"),
    )
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, 1, tile_size=4)]


def test_errors_of_transforms_are_allowed_and_missing_terms_are_not() -> None:
    task = lw.SearchTask(winograd, target="llvm cores=1")
    reference = task.reference
    assert reference.atol > 4 * tolerance(task.compute_dag.func)[0]
    single = run_te(task.module, list(reference.inputs), "native")[0]
    bound = reference.atol + reference.rtol * np.abs(reference.expected[0])
    assert (np.abs(single - reference.expected[0]) <= bound).all()
    short = [reference.inputs[0].copy(), reference.inputs[1].copy()]
    short[1][:, -1, 1, 1] = 0  # one of 432 products is left out
    wrong = run_te(task.module, short)[0]
    assert (np.abs(wrong - reference.expected[0]) > bound).mean() > 0.9


@pytest.mark.parametrize("extent", [64, 4096])
def test_sums_are_bounded_by_their_length(extent: int) -> None:
    def row_sums() -> list[te.Tensor]:
        data = te.placeholder((4, extent), name="data")
        return [data, topi.sum(data, axis=1)]

    reference = lw.SearchTask(row_sums, target="llvm cores=1").reference
    assert reference.atol == 4 * extent * 2.0**-23
