"""Templates of Winograd convolutions: how exact they are, what they refuse, and what is fused behind them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.template.fallback import fallback_config
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.te import ShapeError, create_module
from loopwright.topi.testing import conv2d_nchw_python

TARGET = "llvm cores=2 vector_bytes=32"
Array = npt.NDArray[Any]


def error(name: str, channels: int, *more: Any) -> float:
    """The largest error of a convolution in units of `eps * sqrt(terms)` of the outputs' root mean square."""
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, (1, channels, 9, 11)).astype(np.float32)
    kernel = rng.uniform(-1, 1, (8, channels, 3, 3)).astype(np.float32)
    expected = conv2d_nchw_python(data.astype(np.float64), kernel.astype(np.float64), 1, 1)
    task = lw.TemplateTask(name, (1, 9, 11, 8, channels, 3, 3, 1, 1, 1, "float32", *more), TARGET)
    output = task.build(fallback_config(task))(data, kernel)
    assert isinstance(output, np.ndarray)
    unit = np.finfo(np.float32).eps * np.sqrt(9 * channels) * np.sqrt(np.mean(expected**2))
    return float(np.max(np.abs(output - expected)) / unit)


@pytest.mark.parametrize("channels", [7, 64])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_tiles_of_4_are_less_exact_and_tiles_of_2_are_not(channels: int) -> None:
    """Of 16 to 256 channels, tiles of 2 were off by 0.5, tiles of 4 by 5 to 7, the direct convolution by 1 to 1.5."""
    small, large = error("conv2d_nchw_winograd", channels, 2), error("conv2d_nchw_winograd", channels, 4)
    assert small < 2 and error("conv2d_nchw", channels) < 4
    assert 3 * small < large < 16


@pytest.mark.parametrize("target", [TARGET, "cuda model=h200"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.few(1)
def test_every_position_of_a_tile_is_unrolled(layout: str, target: str) -> None:
    task = lw.TemplateTask(f"conv2d_{layout}_winograd", (1, 9, 11, 32, 32, 3, 3, 1, 1), target)
    text = task.schedule(fallback_config(task))
    unrolled = {name: text.count(f'lw-unroll{{block="{name}"') for name in ("data_rows", "kernel_rows", "inverse_rows")}
    assert unrolled == {"data_rows": 2, "kernel_rows": 2, "inverse_rows": 2}


def fused(channels_last: bool) -> list[te.Tensor]:
    """A Winograd convolution with a bias, another branch and an activation behind it."""
    if channels_last:
        data, kernel = te.placeholder((1, 9, 7, 5), name="data"), te.placeholder((3, 3, 5, 6), name="kernel")
        result = topi.nn.conv2d_winograd_nhwc(data, kernel)
    else:
        data, kernel = te.placeholder((1, 5, 9, 7), name="data"), te.placeholder((6, 5, 3, 3), name="kernel")
        result = topi.nn.conv2d_winograd_nchw(data, kernel)
    bias = te.placeholder((6,) if channels_last else (1, 6, 1, 1), name="bias")
    branch = te.placeholder(result.shape, name="branch")
    return [data, kernel, bias, branch, topi.nn.relu(result + bias + branch)]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_what_is_fused_behind_stays_in_the_last_transform(layout: str) -> None:
    module = create_module(fused(layout == "nhwc"))
    task = lw.TemplateTask(f"conv2d_{layout}_winograd", (str(module),), TARGET)
    chosen = task.instantiate(fallback_config(task))
    assert "conv2d_winograd" not in chosen.blocks and "T_relu" in chosen.blocks
    reference = task.reference
    output = task.build(fallback_config(task))(*reference.inputs)
    assert isinstance(output, np.ndarray)
    np.testing.assert_allclose(output, reference.expected[0], **reference.tolerances[0]._asdict())


def test_transforms_are_in_local_memory_and_unrolled() -> None:
    task = lw.TemplateTask("conv2d_nhwc_winograd", (1, 9, 7, 6, 5), TARGET)
    text = task.schedule(fallback_config(task))
    for member in ("data_rows", "inverse", "inverse_rows", "kernel_rows"):
        assert f'lw-set-scope{{block="{member}" scope="local"}}' in text
    assert text.count('lw-unroll{block="data_pack"') == 2


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ((1, 9, 9, 4, 4, 5, 5), "got 5x5"),
        ((1, 9, 9, 4, 4, 3, 3, (2, 2)), "stride (2, 2)"),
        ((1, 9, 9, 4, 4, 3, 3, 1, 2, 2), "dilation (2, 2)"),
        ((1, 9, 9, 4, 4, 3, 3, 1, 1, 1, "float32", 3), "tile_size is 2 or 4, got 3"),
        ((1, 9, 9, 4, 4, 3, 3, 1, 1, 1, "int8"), "use the direct convolution"),
    ],
)
def test_other_convolutions_are_refused(args: tuple[Any, ...], part: str) -> None:
    with pytest.raises(ShapeError) as caught:
        lw.TemplateTask("conv2d_nchw_winograd", args, TARGET)
    assert part in str(caught.value)


def test_other_computations_are_refused() -> None:
    a, b = te.placeholder((4, 5), name="a"), te.placeholder((5, 6), name="b")
    text = str(create_module([a, b, topi.matmul(a, b)]))
    with pytest.raises(ConfigError, match="got a computation without 'data_rows'"):
        lw.TemplateTask("conv2d_nchw_winograd", (text,), TARGET)
