"""Constant weights end to end: declared, laid out anew by a schedule, packed when built, when called, when measured."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm import device
from loopwright.dialects.interpret.loop import run_loops
from loopwright.passes.analysis.packing import Packing
from loopwright.passes.pipeline_text import schedule_text
from loopwright.search.measure.buffers import Buffers
from loopwright.search.measure.measurer import Measurer

TARGET = "llvm cores=1 vector_bytes=32"


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product(m: int = 5, k: int = 7, n: int = 11, constant: bool = True) -> list[te.Tensor]:
    a = te.placeholder((m, k), name="a")
    w = te.placeholder((k, n), name="w", constant=constant)
    bias = te.placeholder((n,), name="bias", constant=True)
    r = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="c")
    return [a, w, bias, te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="d")]


def packed_product(tensors: list[te.Tensor] | None = None) -> lw.Schedule:
    """Panels of 4 columns, of which the last holds 3, read as vectors."""
    sch = lw.Schedule(tensors or product(), target=TARGET)
    sch.transform_layout("c", "w", layout=["j/4", "k", "j%4"])
    sch.split("c", "j", [None, 4])
    sch.reorder("c", "j0", "i", "k", "j1")
    sch.vectorize("c", "j1")
    return sch


def test_the_mark_is_kept_from_tensors_to_kernels() -> None:
    module = te.create_module(product())
    assert str(module).count("lw.constant") == 2
    assert "w = PLACEHOLDER [7, 11] constant" in lw.SearchTask(product, target=TARGET).compute_dag.__str__()
    kernel = lw.build(module, TARGET)
    assert [a.constant for a in kernel.arguments] == [False, True, True, False]
    assert [a.packing for a in kernel.arguments] == [None] * 4


def test_a_workload_with_constants_is_another_workload() -> None:
    def plain() -> list[te.Tensor]:
        return product(constant=False)

    assert lw.register_workload(product).dag().hash != lw.register_workload(plain).dag().hash


def test_only_constants_are_packed() -> None:
    sch = lw.Schedule(product(constant=False), target=TARGET)
    with pytest.raises(lw.ScheduleError, match="'w' is an argument that is not constant"):
        sch.transform_layout("c", "w", layout=["j/4", "k", "j%4"])


def test_packed_when_built(monkeypatch: pytest.MonkeyPatch) -> None:
    a, w, bias = random(5, 7), random(7, 11, seed=1), random(11, seed=2)
    packed: list[tuple[int, ...]] = []
    pack = Packing.pack
    monkeypatch.setattr(Packing, "pack", lambda self, array: packed.append(array.shape) or pack(self, array))
    given, given_bias = w.copy(), bias.copy()
    kernel = lw.build(packed_product(), TARGET, params={"w": given, "bias": given_bias})
    assert packed == [(7, 11)]
    given[...], given_bias[...] = 0, 0  # what was given may change: the kernel has its own
    assert [argument.name for argument in kernel.arguments] == ["a", "d"]
    for _ in range(2):
        np.testing.assert_allclose(kernel(a), a @ w + bias, rtol=1e-5)
    out = np.empty((5, 11), np.float32)
    kernel(a, out)
    np.testing.assert_allclose(out, a @ w + bias, rtol=1e-5)
    assert kernel.benchmark(a, min_repeat_ms=1, repeat=2).min > 0
    assert len(packed) == 1
    with pytest.raises(TypeError, match=r"kernel main takes 1 arrays \(a\), or 2 with its outputs \(d\), got 3"):
        kernel(a, w, bias)


def test_some_constants_given_others_passed() -> None:
    a, w, bias = random(5, 7), random(7, 11, seed=1), random(11, seed=2)
    np.testing.assert_allclose(lw.build(packed_product(), TARGET, {"bias": bias})(a, w), a @ w + bias, rtol=1e-5)
    np.testing.assert_allclose(lw.build(packed_product(), TARGET, {"w": w})(a, bias), a @ w + bias, rtol=1e-5)


def test_packed_at_each_call_otherwise() -> None:
    kernel = lw.build(packed_product(), TARGET)
    assert kernel.arguments[1].shape == (7, 11)
    a, w, bias = random(5, 7), random(7, 11, seed=1), random(11, seed=2)
    for array in (w, np.asfortranarray(w), w[::-1]):
        np.testing.assert_allclose(kernel(a, array, bias), a @ array + bias, rtol=1e-5)
    w *= 2  # the same array with other values
    np.testing.assert_allclose(kernel(a, w, bias), a @ w + bias, rtol=1e-5)


REFUSED = [
    ({"v": random(7, 11)}, ValueError, "kernel main: there is no constant 'v'; it has w, bias"),
    ({"d": random(5, 11)}, ValueError, "kernel main: there is no constant 'd'; it has w, bias"),
    (
        {"a": random(5, 7)},
        ValueError,
        "kernel main: input 'a' is no constant; declare it with te.placeholder(..., name='a', constant=True)",
    ),
    ({"w": random(11, 7)}, ValueError, "kernel main: constant 'w' must have shape (7, 11), got (11, 7)"),
    ({"w": random(3, 7, 4)}, ValueError, "kernel main: constant 'w' must have shape (7, 11), got (3, 7, 4)"),
    ({"w": np.zeros((7, 11))}, TypeError, "kernel main: constant 'w' must be float32, got float64"),
]


@pytest.mark.parametrize(("params", "kind", "text"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused_params(params: dict[str, np.ndarray], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        lw.build(packed_product(), TARGET, params=params)
    assert str(caught.value) == text


def test_refused_params_without_constants() -> None:
    x = te.placeholder((4,), name="x")
    with pytest.raises(ValueError, match="there is no constant 'w'; it has none"):
        lw.build(lw.Schedule([x, topi.nn.relu(x)]), TARGET, params={"w": random(4)})


def conv(layout: str) -> Callable[[], list[te.Tensor]]:
    def workload() -> list[te.Tensor]:
        shape, weight = ((1, 3, 9, 9), (5, 3, 3, 3)) if layout == "nchw" else ((1, 9, 9, 3), (3, 3, 3, 5))
        data = te.placeholder(shape, name="data")
        kernel = te.placeholder(weight, name="kernel", constant=True)
        return [data, kernel, getattr(topi.nn, f"conv2d_{layout}")(data, kernel, 2, 1)]

    return workload


LAYOUTS = {
    "nchw": ["ff/4", "rc", "ry*rx", "ff%4"],
    "nhwc": ["ff", "ry*rx*rc/4", "ry*rx*rc%4"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_convolution_weights(layout: str) -> None:
    """Fused dimensions with a tail, against the same convolution as declared; interpreted too."""
    tensors = conv(layout)()
    sch = lw.Schedule(tensors, target=TARGET)
    block = next(b for b in sch.blocks if "ff" in sch.get_loops(b))
    sch.transform_layout(block, "kernel", layout=LAYOUTS[layout])
    data, weight = random(*tensors[0].shape), random(*tensors[1].shape, seed=1)
    wanted = lw.build(te.create_module(tensors), TARGET)(data, weight)
    np.testing.assert_allclose(lw.build(sch, params={"kernel": weight})(data), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lw.build(sch)(data, weight), wanted, rtol=1e-4, atol=1e-5)
    packing = lw.build(sch).arguments[1].packing
    assert packing is not None
    (interpreted,) = run_loops(sch.module, [data, packing.pack(weight)])
    np.testing.assert_allclose(interpreted, wanted, rtol=1e-4, atol=1e-5)


def test_measuring_gives_the_original_and_times_the_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runner does: `run`, check, `time` many times, check; the packing is in none of the timed runs."""
    task = lw.SearchTask(product, target=TARGET)
    reference = task.reference
    paths = []
    for number, array in enumerate((*reference.inputs, *reference.expected)):
        np.save(tmp_path / f"{number}.npy", array)
        paths.append(str(tmp_path / f"{number}.npy"))
    buffers = Buffers(paths[:3], paths[3:], reference.tolerances)
    kernel = device.load(device.build(str(task.module), schedule_text(packed_product().steps)))
    packed: list[int] = []
    pack = Packing.pack
    monkeypatch.setattr(Packing, "pack", lambda self, array: packed.append(1) or pack(self, array))
    buffers.poison()
    kernel.run(buffers.args)
    assert buffers.wrong() is None and buffers.memory_violation() is None
    for _ in range(3):
        buffers.poison()
        assert kernel.time(buffers.args, 2) > 0
        assert buffers.wrong() is None and buffers.memory_violation() is None
    assert len(packed) == 1


def test_time_before_any_run_packs_too() -> None:
    kernel = device.load(device.build(str(te.create_module(product(), TARGET)), schedule_text(packed_product().steps)))
    a, w, bias, out = random(5, 7), random(7, 11, seed=1), random(11, seed=2), np.empty((5, 11), np.float32)
    kernel.time([a, w, bias, out], 1)
    np.testing.assert_allclose(out, a @ w + bias, rtol=1e-5)


def test_measured_in_worker_processes(quick_measuring: None) -> None:
    task = lw.SearchTask(product, target=TARGET)
    reference = task.reference
    measured = reference.task(str(task.module))
    options = replace(task.measure_options(), builders=1)
    with Measurer(options) as measurer:
        measurer.use(measured)
        (found,) = measurer.measure([schedule_text(packed_product().steps)])
    assert found.ok, found.message
