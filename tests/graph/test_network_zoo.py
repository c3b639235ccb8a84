"""`lw.testing`: the networks are the published ones, and mean what PyTorch makes of them, in both layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.testing.pytorch import run_torch

# Parameters that are trained, as torchvision 0.20 counts them (its Inception with the second classifier left off).
COUNTS = {
    "resnet-18": 11_689_512,
    "mobilenet": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "squeezenet_v1.1": 1_235_496,
    "inception_v3": 23_834_568,
    "densenet-121": 7_978_856,
}


def test_every_network_has_small_options() -> None:
    assert set(SMALL) == set(lw.testing.NETWORKS)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.few(3)
def test_parameters_are_as_many_as_published(name: str) -> None:
    net = lw.testing.network(name)
    trained = {label: a for label, a in net.params.items() if not label.endswith(("_mean", "_variance"))}
    assert sum(array.size for array in trained.values()) == COUNTS[name]


@pytest.mark.parametrize("name", SMALL)
def test_meaning_is_that_of_pytorch(name: str) -> None:
    pytest.importorskip("torch")
    net = lw.testing.network(name, batch=2, **SMALL[name])
    feeds = feeds_of(net)
    (want,) = run_torch(net, feeds)
    (got,) = net.evaluate(**feeds)
    assert np.ptp(want) > 1e-3
    np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max(), rtol=1e-3)


@pytest.mark.parametrize("name", ["resnet3d-18", "vgg-11", "squeezenet_v1.1", "inception_v3", "dcgan"])
@pytest.mark.few(1)
def test_layouts_agree(name: str) -> None:
    first = lw.testing.network(name, **SMALL[name])
    last = lw.testing.network(name, layout="NHWC", **SMALL[name])
    (data,) = feeds_of(first).values()
    (want,), (got,) = first.evaluate(data=data), last.evaluate(data=np.ascontiguousarray(np.moveaxis(data, 1, -1)))
    got = got if got.ndim < 4 else np.moveaxis(got, -1, 1)
    np.testing.assert_allclose(got, want, atol=1e-5, rtol=1e-3)


def test_weights_follow_from_the_seed() -> None:
    nets = [lw.testing.mlp(seed=seed) for seed in (0, 0, 1)]
    first, again, other = (net.params["fc1_weight"] for net in nets)
    assert (first == again).all()
    assert not (first == other).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lw.testing.network("lenet"), r"there is no network 'lenet'; there are resnet-18, "),
        (lambda: lw.testing.resnet(20), r"resnet has 18, 34, 50, 101, 152, 200, 269 layers, got 20"),
        (lambda: lw.testing.vgg(12), r"vgg has 11, 13, 16, 19 layers, got 12"),
        (lambda: lw.testing.mobilenet(layout="CHWN"), r"layout is NCHW or NHWC .*, got 'CHWN'"),
        (lambda: lw.testing.bert_encoder_layer(hidden=10, heads=3), r"10 hidden units do not divide among 3 heads"),
        (lambda: lw.testing.resnet(50, image=0), r"extents are numbers of at least 1, got \(1, 3, 0, 0\)"),
    ],
)
def test_wrong_options_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
