"""Operators with templates: each is right on a CPU at odd shapes, and known in networks by its reduction."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from effort import examples
from template_shapes import ODD

import loopwright as lw
from loopwright.graph.template_tasks import operator_of
from loopwright.search.template.fallback import fallback_config
from loopwright.search.template.registry import operators, shipped
from loopwright.te import create_module
from loopwright.topi.testing import conv2d_nchw_python, conv2d_transpose_nchw_python, convolve_python

TARGET = "llvm cores=2 vector_bytes=32"
Array = npt.NDArray[Any]

MORE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "dilated": ("conv2d_nchw", (1, 11, 9, 6, 5, 3, 3, (1, 1), (2, 2), (2, 2))),
    "dilated, channels last": ("conv2d_nhwc", (1, 11, 9, 6, 5, 3, 3, (1, 2), (1, 2), (2, 3))),
    "dilated, depthwise": ("depthwise_conv2d_nchw", (1, 6, 11, 9, 3, 3, (1, 1), (2, 2), (2, 2))),
    "one channel a group": ("group_conv2d_nchw", (1, 7, 9, 6, 6, 3, 3, 6, (1, 1), (1, 1))),
    "blocks of channels, padded": ("conv2d_nchwc", ODD["conv2d_nchw"]),
    "blocks of channels, copied": ("conv2d_nchwc", (1, 5, 7, 12, 20, 1, 1)),
    "Winograd 2x2": ("conv2d_nchw_winograd", (1, 7, 9, 6, 5, 3, 3, 1, 1, 1, "float32", 2)),
    "Winograd 2x2, channels last, transformed": (
        "conv2d_nhwc_winograd",
        (1, 9, 7, 6, 5, 3, 3, 1, (0, 1), 1, "float32", 2, True),
    ),
    "Winograd, not padded": ("conv2d_nchw_winograd", (1, 6, 10, 12, 20)),
    "Winograd, one tile": ("conv2d_nchw_winograd", (1, 3, 4, 6, 5, 3, 3, 1, 1)),
    "Winograd, one channel": ("conv2d_nchw_winograd", (1, 7, 9, 1, 1, 3, 3, 1, 1)),
    "int8 dense": ("dense", (6, 15, 21, "int8")),
    "int8 NCHW": ("conv2d_nchw", (1, 7, 9, 6, 5, 3, 3, (1, 1), (1, 1), (1, 1), "int8")),
    "int8 NHWC": ("conv2d_nhwc", (1, 7, 9, 6, 5, 3, 3, (2, 1), (1, 1), (1, 1), "int8")),
}


@pytest.mark.parametrize(("name", "args"), [*ODD.items(), *MORE.values()], ids=[*ODD, *MORE])
@pytest.mark.few(1)
def test_templates_for_cpus_are_right(name: str, args: tuple[Any, ...]) -> None:
    task = lw.TemplateTask(name, args, TARGET)
    rows = task.config_space.sample(np.random.default_rng(1), examples(96))
    legal = task.legal(rows)
    assert legal[:4].tolist() == [task.why_not(row) is None for row in rows[:4]] and legal.any()
    assert all(case.trusted for case, _ in task.cases.groups(rows[legal]) if case is not None)
    reference = task.reference
    for row in (fallback_config(task).row, *rows[legal][:2]):
        output = task.build(row)(*reference.inputs)
        assert isinstance(output, np.ndarray)
        assert output.dtype == reference.expected[0].dtype == ("int32" if "int8" in args else "float32")
        np.testing.assert_allclose(output, reference.expected[0], **reference.tolerances[0]._asdict())


def nchw(x: Array) -> Array:
    return np.moveaxis(x, -1, 1)


def oihw(k: Array) -> Array:
    return np.moveaxis(k, (-1, -2), (0, 1))


NUMPY: dict[str, Callable[[Array, Array], Array]] = {
    "conv1d_ncw": lambda x, k: convolve_python(x, k, (2,), (1,), (1,), (1,)),
    "conv1d_nwc": lambda x, k: np.moveaxis(convolve_python(nchw(x), oihw(k), (1,), (2,), (2,), (2,)), 1, -1),
    "conv3d_ncdhw": lambda x, k: convolve_python(x, k, (1, 1, 2), (1, 0, 1), (1, 0, 1), (1, 1, 1)),
    "conv2d_transpose_nchw": lambda x, k: conv2d_transpose_nchw_python(x, k, (2, 2), (1, 1, 1, 1), (1, 0)),
    "conv2d_nchw_winograd": lambda x, k: conv2d_nchw_python(x, k, 1, 1),
    "conv2d_nhwc_winograd": lambda x, k: np.moveaxis(conv2d_nchw_python(nchw(x), oihw(k), 1, (1, 0)), 1, -1),
    "group_conv2d_nchw": lambda x, k: conv2d_nchw_python(x, k, 1, 1, 1, 3),
    "group_conv2d_nhwc": lambda x, k: np.moveaxis(conv2d_nchw_python(nchw(x), oihw(k), (2, 1), (1, 1), 1, 3), 1, -1),
}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.few(4)
def test_operators_are_those_of_numpy(name: str) -> None:
    reference = lw.TemplateTask(name, ODD[name], TARGET).reference
    expected = NUMPY[name](*reference.inputs)
    np.testing.assert_allclose(reference.expected[0], expected, **reference.tolerances[0]._asdict())


@pytest.mark.parametrize("name", ODD)
def test_operators_are_known_by_their_reduction(name: str) -> None:
    operator = operators()[name]
    assert operator_of(lw.SearchTask(create_module(operator.tensors(*ODD[name])), target=TARGET)) == name


def test_every_operator_is_tested_and_comes_for_every_device() -> None:
    assert set(operators()) == set(ODD)
    assert {f"{name}_{device}" for name in ODD for device in ("cpu", "gpu", "mali")} <= set(shipped())
    assert set(shipped()) - {f"{name}_{device}" for name in ODD for device in ("cpu", "gpu", "mali")} == {
        "conv2d_nchwc_cpu",
        "conv2d_no_batching",
    }
