"""Networks whose convolutions are computed by Winograd's transforms: the same results, kernels, tuned templates."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.pipeline import PREPARE

TARGET = "llvm cores=2 vector_bytes=32"


def transformed(net: lw.Network, tile_size: int = 4) -> lw.Network:
    return net.transform(f"{PREPARE},lw-graph-winograd{{tile_size={tile_size}}},lw-graph-fold-constants,dce")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("tile_size", [2, 4])
def test_results_are_the_same_and_weights_are_transformed_ahead(layout: str, tile_size: int) -> None:
    net = lw.testing.network("resnet-18", layout=layout, **SMALL["resnet-18"])
    after = transformed(net, tile_size)
    names = [op.operator.data for op in after.module.walk() if isinstance(op, ApplyOp)]
    assert "conv2d_winograd" in names and "conv2d" in names and "winograd_weight_transform" not in names
    feeds = feeds_of(net)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4 * float(np.abs(want).max()))


def test_a_network_is_compiled_with_tuned_winograd_templates(tmp_path: Path, quick_measuring: None) -> None:
    net = lw.Network("small")
    data = net.input("data", (1, 6, 9, 7))
    weight = np.random.default_rng(0).uniform(-1, 1, (6, 6, 3, 3)).astype(np.float32)
    net.output(net.relu(net.conv2d(data, net.constant(weight, "w"), padding=1)))
    after, records = transformed(net), tmp_path / "records.jsonl"
    (task,), _ = lw.extract_template_tasks(after, TARGET)
    assert task.name == "conv2d_nchw_winograd_cpu"
    best = lw.tuners.RandomTuner(task).tune(2, callbacks=[lw.tuners.callbacks.log_to_file(records)]).best
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = lw.compile(after, TARGET, records, processes=1)
    assert [kernel.schedule for kernel in compiled.package.plan.kernels] == [best.schedule]
    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(compiled.executor()(*feeds.values()), want, atol=1e-4 * float(np.abs(want).max()))


def test_other_tiles_are_refused() -> None:
    net = lw.testing.network("resnet-18", **SMALL["resnet-18"])
    with pytest.raises(ValueError, match="tile_size is 2 or 4, got 3"):
        net.transform("lw-graph-winograd{tile_size=3}")
