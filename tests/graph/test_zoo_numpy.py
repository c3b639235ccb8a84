"""Networks of `lw.testing` beside the same networks in plain NumPy; and the table of them on the page of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo_numpy as ref
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp
from loopwright.testing.resnet import STAGES

PAGE = Path(__file__).parents[2] / "docs" / "network.md"


def evaluated(net: lw.Network) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The first output, the weights and the inputs, these in double precision."""
    feeds = feeds_of(net)
    (got,) = net.evaluate(**feeds)
    params = {name: values.astype(np.float64) for name, values in net.params.items()}
    return got, params, {n: a if a.dtype == bool else a.astype(np.float64) for n, a in feeds.items()}


def require_close(got: Any, want: Any) -> None:
    assert np.ptp(want) > 1e-3
    np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max(), rtol=1e-4)


@pytest.mark.few(1)
@pytest.mark.parametrize("layers", STAGES)
def test_resnets_of_videos(layers: int) -> None:
    name = f"resnet3d-{layers}"
    got, params, feeds = evaluated(lw.testing.network(name, batch=2, **SMALL[name]))
    require_close(got, ref.resnet3d(params, feeds["data"], STAGES[layers], layers >= 50))
    assert sum(n.endswith(("weight",)) and "_down" not in n for n in params) == layers


def test_dqn() -> None:
    got, params, feeds = evaluated(lw.testing.dqn(batch=2, **SMALL["dqn"]))
    require_close(got, ref.dqn(params, feeds["data"]))


def test_dcgan() -> None:
    got, params, feeds = evaluated(lw.testing.dcgan(batch=2, **SMALL["dcgan"]))
    require_close(got, ref.dcgan(params, feeds["data"]))


@pytest.mark.parametrize(("layers", "steps"), [(1, 1), (1, 4), (3, 3)])
def test_lstm(layers: int, steps: int) -> None:
    net = lw.testing.lstm(batch=2, steps=steps, features=5, hidden=8, layers=layers)
    got, params, feeds = evaluated(net)
    assert got.shape == (2, steps, 8)
    require_close(got, ref.lstm(params, feeds["data"], layers))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("name", ["transformer_encoder", "transformer_decoder"])
def test_transformers(name: str, activation: str, norm: str) -> None:
    options = {**SMALL[name], "norm": norm, "activation": activation}
    got, params, feeds = evaluated(lw.testing.network(name, batch=2, **options))
    assert not feeds["mask"].all()
    require_close(got, ref.transformer(params, layers=2, heads=4, norm=norm, activation=activation, **feeds))


def test_what_a_mask_hides_changes_nothing() -> None:
    net = lw.testing.network("transformer_encoder", **SMALL["transformer_encoder"])
    feeds = feeds_of(net)
    feeds["mask"] = np.arange(7)[None] < 4
    (first,) = net.evaluate(**feeds)
    feeds["data"][:, 4:] += 1
    (second,) = net.evaluate(**feeds)
    np.testing.assert_array_equal(first[:, :4], second[:, :4])
    assert not np.allclose(first[:, 4:], second[:, 4:])


def test_a_decoder_looks_at_earlier_tokens_only() -> None:
    net = lw.testing.network("transformer_decoder", **SMALL["transformer_decoder"])
    feeds = feeds_of(net)
    (first,) = net.evaluate(**feeds)
    feeds["data"][:, 3] += 1
    (second,) = net.evaluate(**feeds)
    np.testing.assert_array_equal(first[:, :3], second[:, :3])
    assert (np.abs(first - second)[:, 3:].max(-1) > 1e-4).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("transformer_encoder", {"norm": "both"}, "transformer_encoder: norm is 'pre' or 'post', got 'both'"),
        (
            "transformer_decoder",
            {"activation": "tanh"},
            "transformer_decoder: activation is 'relu' or 'gelu', got 'tanh'",
        ),
        ("transformer_encoder", {"heads": 7}, "transformer_encoder: 512 hidden units do not divide among 7 heads"),
        ("lstm", {"steps": 0}, "lstm: at least 1 step, feature, unit, layer, got 0, 128, 256, 2"),
        ("dqn", {"image": 20}, "does not fit"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lw.testing.network(name, **options)


def row_of(name: str) -> str:
    """The line of a network in the table: its operators, its parameters in millions, and its GFLOP."""
    net = lw.testing.network(name)
    tasks, weights = lw.extract_tasks(net, "llvm cores=1", include_simple_tasks=True)
    flops = sum(task.flops * weight for task, weight in zip(tasks, weights, strict=True))
    count = sum(isinstance(op, ApplyOp) for op in net.module.walk())
    return f"| `{name}` | {count} | {net.parameter_count / 1e6:.2f} | {flops / 1e9:.3g} |"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", lw.testing.NETWORKS)
def test_table_of_networks(name: str) -> None:
    assert row_of(name) in PAGE.read_text().splitlines()
