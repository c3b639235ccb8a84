"""The networks of `lw.testing` in each float type: compiled ones beside their evaluation in double precision."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_networks import SMALL, feeds_of, in_type

import loopwright as lw
from loopwright.dialects.element import DTYPES, epsilon
from loopwright.dialects.numpy_types import FLOATS, teach_numpy
from loopwright.graph.builders import BuildError

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")

TARGET = "llvm cores=1"
TYPES = [dtype for dtype in FLOATS if dtype != "float32"]
LAYOUTS = ["NCHW", "NHWC"]
QUICK = ["mlp", "bert_encoder_layer", "dcgan", "mobilenet", "squeezenet_v1.1", "lstm", "dqn"]
QUICK += ["transformer_encoder", "transformer_decoder"]
ROUNDINGS = {"float16": 8, "bfloat16": 8, "float64": 32}
"""Times that a kernel may be off by what rounding each operator's result once costs: fused operators round in another
order, errors are compared by their largest, and a sum of doubles, unlike one of 16-bit floats, is rounded at each term.
Measured: up to 2.4 times, and 8.6 times in doubles."""


def distance(got: Any, exact: Any) -> float:
    return float(np.abs(np.asarray(got).astype(np.float64) - exact).max())


def require_right(name: str, dtype: str, layout: str, target: str) -> None:
    """A compiled network is as close to the one in double precision, of the same weights, as its type allows.

    What one rounding of each operator's result costs follows from the network evaluated in single precision: to first
    order it is proportional to the type's epsilon.
    """
    net = lw.testing.network(name, batch=2, layout=layout, dtype=dtype, **SMALL[name])
    feeds = feeds_of(net)
    wide = {k: {n: a if a.dtype == bool else a.astype(k) for n, a in feeds.items()} for k in ("float64", "float32")}
    (exact,), (single,) = (in_type(net, kind).evaluate(**given) for kind, given in wide.items())
    found = {v.dtype for v in (*net.inputs.values(), *net.outputs.values())} | {
        a.dtype.name for a in net.params.values()
    }
    assert found - {"bool"} == {dtype}
    executor = lw.compile(net, target, processes=1).executor()
    executor.run(**feeds)
    got = executor.get_output(0)
    assert got.dtype.name == dtype
    of_type, of_single = epsilon(DTYPES[dtype]), epsilon(DTYPES["float32"])
    lost = max(distance(single, exact) / of_single, float(np.abs(exact).max()) / 2)
    assert distance(got, exact) <= ROUNDINGS[dtype] * lost * of_type < np.ptp(exact)


@pytest.mark.slow(1.2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.few(1)
def test_networks_are_as_right_as_their_type_allows(dtype: str, name: str, layout: str) -> None:
    require_right(name, dtype, layout, TARGET)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", sorted(set(SMALL) - set(QUICK)))
@pytest.mark.parametrize("dtype", TYPES)
def test_larger_networks_are_as_right_as_their_type_allows(dtype: str, name: str, layout: str) -> None:
    require_right(name, dtype, layout, TARGET)


@pytest.mark.slow(1.2)
@pytest.mark.parametrize("name", ["bert_encoder_layer", "mlp"])
@pytest.mark.parametrize("dtype", TYPES)
def test_networks_on_opencl_are_as_right_as_their_type_allows(dtype: str, name: str) -> None:
    pytest.importorskip("pyopencl")
    from loopwright.backends.opencl import device
    from loopwright.backends.opencl.platform import MissingOpenCl

    try:
        lack = device.lacking(dtype)
    except MissingOpenCl as error:
        lack = str(error)
    if lack is not None:
        pytest.skip(lack)
    require_right(name, dtype, "NHWC", "opencl")


def test_a_device_without_doubles_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyopencl")
    from loopwright.backends.opencl import device, executable

    small = SimpleNamespace(name="small", platform=SimpleNamespace(name="P"), driver_version="1", extensions="cl_khr_x")
    assert executable.lacking("float32", small) is None
    want = r"small \(P 1\) has no float64 \(cl_khr_fp64\): use float32, float16 or bfloat16"
    monkeypatch.setattr(device, "device_at", lambda: small)
    with pytest.raises(AssertionError, match=want):
        assert device.lacking("float64") is None, device.lacking("float64")
    monkeypatch.setattr(executable, "device_at", lambda _: small)
    monkeypatch.setattr(executable, "context_of", lambda _: None)
    with pytest.raises(BuildError, match=rf"kernel .* computes in float64: {want}"):
        lw.compile(lw.testing.mlp(dtype="float64"), "opencl model=pocl", processes=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.few(1)
def test_sums_of_16_bit_floats_are_rounded_once(dtype: str) -> None:
    """The sum of a thousand ones is a thousand: in bfloat16 256 + 1 is 256, in float16 2048 + 1 is 2048."""
    teach_numpy(dtype)
    count = {"float16": 4096, "bfloat16": 1024}[dtype]
    net = lw.Network("sums")
    x, ones = net.input("data", (1, count), dtype), net.constant(np.ones((1, count), dtype), "ones")
    image = net.reshape(x, shape=(1, 1, 1, count))
    window = net.constant(np.ones((1, 1, 1, count), dtype), "window")
    sums = {
        "dense": net.dense(x, ones),
        "matmul": net.matmul(x, ones, transpose_b=True),
        "einsum": net.einsum(x, ones, equation="ik,jk->ij"),
        "conv2d": net.conv2d(image, window),
        "sum": net.sum(x, axis=1),
        "mean": net.mean(x, axis=1) * count,
        "avg_pool": net.avg_pool(image, kernel=(1, count)) * count,
        "adaptive": net.adaptive_avg_pool(image, output_size=(1, 1)) * count,
    }
    net.output(*sums.values(), names=list(sums))
    executor = lw.compile(net, TARGET, processes=1).executor()
    executor.run(data=np.ones((1, count), dtype))
    got = {name: float(executor.get_output(name).item()) for name in sums}
    assert got == dict.fromkeys(sums, count)


def test_division_rounded_down_knows_bfloat16() -> None:
    teach_numpy("bfloat16")
    net = lw.Network("division")
    x, y = (net.input(name, (4,), "bfloat16") for name in "xy")
    net.output(net.floor_divide(x, y), net.mod(x, y))
    a, b = (np.array(values, "bfloat16") for values in ([7, -7, 5.5, 3], [2, 2, -2, 0.75]))
    quotient, rest = net.evaluate(x=a, y=b)
    assert [float(v) for v in quotient] == [3, -4, -3, 4]
    assert [float(v) for v in rest] == [1, 1, -0.5, 0]


@pytest.mark.parametrize("dtype", TYPES)
def test_weights_are_those_of_single_precision_rounded(dtype: str) -> None:
    single, other = lw.testing.mlp(), lw.testing.network("mlp", dtype=dtype)
    for name, values in other.params.items():
        assert (values == single.params[name].astype(dtype)).all()


def test_integers_are_no_type_of_a_network() -> None:
    with pytest.raises(ValueError, match=r"network mlp: dtype is one of float16, bfloat16, .*, got 'int8'"):
        lw.testing.network("mlp", dtype="int8")


@pytest.mark.slow(1.2)
def test_templates_come_for_kernels_of_each_type() -> None:
    found = {}
    for dtype in FLOATS:
        net = lw.testing.network("resnet-18", layout="NHWC", dtype=dtype, **SMALL["resnet-18"])
        tasks, _ = lw.extract_template_tasks(net, TARGET)
        found[dtype] = sorted(task.name for task in tasks)
    assert found["float16"] == found["bfloat16"] == found["float64"] == found["float32"]
