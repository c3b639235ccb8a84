"""Check on a CUDA machine what no other machine can: timing, arrays of other packages, and kernels that misbehave.

Prints a line for each check, PASS, FAIL or SKIP with figures, and exits with 1 if any failed. It is its own measuring
backend: the schedule of a candidate is the body of a CUDA kernel on 64 numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.kernel_source import KernelSource, Launch
from loopwright.backends.cuda.device import checks, device_name, identity, load
from loopwright.backends.cuda.nvrtc import compile_cubin
from loopwright.backends.signature import Argument

__all__ = ["build", "checks", "device_name", "identity", "load", "versions"]

N = 64


def build(workload: str, schedule: str) -> bytes:
    """Compile a kernel body for the compute capability that stands in the workload's place."""
    source = f'extern "C" __global__ void k(float* x, float* y) {{ int i = threadIdx.x; {schedule} }}'
    return _artifact(int(workload), source, (N,), [Launch("k", (1, 1, 1), (N, 1, 1), (0, 1), 0, 0, False)]).to_bytes()


def versions() -> dict[str, str]:
    """Nothing to tell."""
    return {}


def _artifact(capability: int, source: str, shape: tuple[int, ...], launches: Sequence[Launch]) -> Artifact:
    arguments = (Argument("x", "float32", shape, False), Argument("y", "float32", shape, True))
    kernel = KernelSource("k", arguments, (), tuple(launches), source)
    return Artifact("cuda", f"sm_{capability}", kernel, (), compile_cubin(source, capability).code)


# -- checks: each returns figures to print, and raises AssertionError where something is not as it must be ------------

TWO_LAUNCHES = """
extern "C" __global__ void first(float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = 2.0f * x[i]; }
extern "C" __global__ void second(float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = y[i] + 1.0f; }
"""
FAULTS = {
    "a kernel that hangs": ("volatile int n = 1; while (n) y[i] = n;", "RUN_TIMEOUT", "longer than"),
    "a write past the end": ("y[i] = 2 * x[i]; if (i == 0) y[64] = 1;", "WRONG_RESULT", "outside of argument 1"),
    "a write before the start": ("y[i] = 2 * x[i]; y[-1 - i] = 1;", "WRONG_RESULT", "outside of argument 1"),
    "a changed input": ("y[i] = 2 * x[i]; x[i] += 1;", "WRONG_RESULT", "changed its input 0"),
    "a write to nowhere": ("y[i] = 2 * x[i]; *(float*)16 = 1;", "DEVICE_LOST", "illegal"),
    "a misaligned write": ("y[i] = 2 * x[i]; *(float*)((char*)y + 2) = 1;", "DEVICE_LOST", "misaligned"),
    "a wrong kernel": ("y[i] = 3 * x[i];", "WRONG_RESULT", "63 of 64 elements"),
    "a kernel that is right at first": ("y[i] = y[i] != y[i] ? 2 * x[i] : -7;", "WRONG_RESULT", "right at first"),
    "a trap": ('asm("trap;"); y[i] = x[i];', "DEVICE_LOST", ""),
    "no program": ("y[i] = frobnicate;", "COMPILE_ERROR", "frobnicate"),
}
RIGHT = "y[i] = 2 * x[i];"


def check_preflight() -> str:
    from loopwright.backends.cuda.driver import target_of_device
    from loopwright.search.measure.measurer import Measurer
    from loopwright.search.task import SearchTask

    start = time.perf_counter()
    with Measurer(SearchTask(_adding_module(), target=target_of_device()).measure_options()) as measurer:
        return f"{measurer.device}, {time.perf_counter() - start:.1f} s to start and try"


def _adding_module() -> Any:
    from loopwright import te

    a = te.placeholder((1 << 20,), name="a")
    return te.create_module([a, te.compute((1 << 20,), lambda i: a[i] + 1.0, name="b")])


def check_graph_timing() -> str:
    """Two short launches: replayed, they take less than launched one by one, and about the same each time."""
    runtime, buffers = _two_launches(blocks=528)
    for _ in range(3):
        runtime.time(buffers, 2000, graph=True)  # until clocks are up
    launched_s = min(runtime.time(buffers, 2000) / 2000 for _ in range(3))
    replayed = [runtime.time(buffers, 2000, graph=True) / 2000 for _ in range(5)]
    again = [runtime.time(buffers, n, graph=True) / n for n in (50, 120, 1000)]
    figures = f"launched {launched_s * 1e6:.2f} us, replayed {min(replayed) * 1e6:.2f} to {max(replayed) * 1e6:.2f} us"
    assert runtime.replays, "cuda-bindings is not here, so nothing is replayed"
    assert min(replayed) <= 1.05 * launched_s, figures
    assert max(replayed) <= 1.2 * min(replayed), f"{figures}: not steady"
    assert max(again) <= 1.5 * min(replayed), f"{figures}; shorter ones {[f'{t * 1e6:.2f}' for t in again]} us"
    return figures


def _two_launches(blocks: int) -> tuple[Any, list[Any]]:
    from loopwright.backends.cuda.driver import target_of_device
    from loopwright.backends.cuda.runtime import CudaRuntime

    launches = [Launch(name, (blocks, 1, 1), (256, 1, 1), (0, 1), 0, 0, False) for name in ("first", "second")]
    runtime = CudaRuntime(_artifact(target_of_device().compute_capability, TWO_LAUNCHES, (blocks * 256,), launches))
    buffers = [runtime.allocate(4 * 256 * blocks) for _ in range(2)]
    runtime.upload(buffers[0], np.ones(256 * blocks, np.float32))
    return runtime, buffers


def check_measured_as_graph() -> str:
    """Check that the measurer reports for a short kernel what replaying it takes, not what launching it takes."""
    from loopwright.search.measure.timing import GPU_TIMING, measure_times

    runtime, buffers = _two_launches(blocks=132)
    times, stopped = measure_times(lambda n: runtime.time(buffers, n, graph=True), GPU_TIMING, None)
    replayed_s = min(runtime.time(buffers, 5000, graph=True) / 5000 for _ in range(3))
    slower, early = measure_times(lambda n: runtime.time(buffers, n, graph=True), GPU_TIMING, replayed_s / 1.3)
    figures = (
        f"measured {min(times) * 1e6:.2f} us, replayed {replayed_s * 1e6:.2f} us, spread {max(times) / min(times):.2f}"
    )
    assert not stopped and abs(min(times) / replayed_s - 1) < 0.1, figures
    assert not early, (
        f"{figures}: {min(slower) * 1e6:.2f} us was taken for much slower than {replayed_s / 1.3 * 1e6:.2f}"
    )
    assert measure_times(lambda n: runtime.time(buffers, n, graph=True), GPU_TIMING, replayed_s / 4)[1], "not stopped"
    return figures


def check_benchmark() -> str:
    """A kernel on 24 MB: from memory it takes longer than from the L2 cache; plain, as graph, flushed, both."""
    from loopwright import te
    from loopwright.backends.build import build as build_kernel
    from loopwright.search.task import SearchTask

    a = te.placeholder((3 << 20,), name="a")
    task = SearchTask(te.create_module([a, te.compute((3 << 20,), lambda i: a[i] + 1.0, name="b")]), target="cuda")
    kernel: Any = build_kernel(task.schedule_module(task.default_schedule), "cuda")
    times = {
        (graph, flush): kernel.benchmark(min_repeat_ms=50, graph=graph, flush=flush).median * 1e6
        for graph in (False, True)
        for flush in (False, True)
    }
    figures = ", ".join(
        f"{'graph' if graph else 'launched'}{' flushed' if flush else ''} {us:.1f} us"
        for (graph, flush), us in times.items()
    )
    assert times[True, False] <= 1.05 * times[False, False], figures
    assert times[True, True] > 1.1 * times[True, False], f"{figures}: flushing L2 changed nothing"
    return figures


def _matmul_kernel() -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    from loopwright import te, topi
    from loopwright.search.task import SearchTask

    a, b = te.placeholder((96, 64), name="a"), te.placeholder((64, 80), name="b")
    task = SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target="cuda")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((96, 64), np.float32), rng.standard_normal((64, 80), np.float32)
    return task.build(), x, y


def check_torch() -> str:
    """Tensors in and out, in place, on another stream, and back by DLPack."""
    torch = _module("torch")
    kernel, x, y = _matmul_kernel()
    a, b = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
    out = torch.empty((96, 80), device="cuda")
    assert kernel(a, b, out) is out, "the output given is the output returned"
    _close(out.cpu().numpy(), x @ y)
    result = kernel(a, b)
    _close(torch.from_dlpack(result).cpu().numpy(), x @ y)
    _close(torch.as_tensor(result, device="cuda").cpu().numpy(), x @ y)
    with torch.cuda.stream(torch.cuda.Stream()):
        c = a * 2.0
        torch.cuda.current_stream().synchronize()
        _close(torch.from_dlpack(kernel(c, b)).cpu().numpy(), 2 * x @ y)
    try:
        kernel(a.t(), b)
    except ValueError:
        pass
    else:
        raise AssertionError("a transposed tensor must be refused")
    return f"torch {torch.__version__}"


def check_cupy() -> str:
    """Arrays in and out, in place and by both protocols."""
    cupy = _module("cupy")
    kernel, x, y = _matmul_kernel()
    a, b = cupy.asarray(x), cupy.asarray(y)
    out = cupy.empty((96, 80), cupy.float32)
    assert kernel(a, b, out) is out
    _close(cupy.asnumpy(out), x @ y)
    _close(cupy.asnumpy(cupy.asarray(kernel(a, b))), x @ y)
    _close(cupy.asnumpy(cupy.from_dlpack(kernel(a, b))), x @ y)
    return f"cupy {cupy.__version__}"


def check_numpy() -> str:
    kernel, x, y = _matmul_kernel()
    _close(kernel(x, y), x @ y)
    return "copied there and back"


def _close(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


class Missing(Exception):
    """The error of a check whose needs are not here."""


def _module(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(str(error)) from error


def _measurer(**options: Any) -> Any:
    from loopwright.search.measure.measurer import MeasureOptions, Measurer
    from loopwright.search.measure.timing import GPU_TIMING

    given = {"builders": 2, "overlap": True, "run_timeout_s": 5.0, "timing": GPU_TIMING, **options}
    return Measurer(MeasureOptions("gpu_selfcheck", **given))


def _task() -> Any:
    from loopwright.backends.cuda.driver import target_of_device
    from loopwright.search.measure.measurer import MeasureTask
    from loopwright.search.measure.tolerance import Tolerance

    x = np.arange(N, dtype=np.float32)
    return MeasureTask(str(target_of_device().compute_capability), [x], [2 * x], [Tolerance(1e-6, 1e-6)])


def check_fault(name: str) -> str:
    """The fault has its code, and the candidate after it is measured."""
    body, code, words = FAULTS[name]
    with _measurer() as measurer:
        measurer.use(_task())
        start = time.perf_counter()
        bad, good = measurer.measure([body, f"{RIGHT} /* {name} */"])
        seconds, pids = time.perf_counter() - start, measurer.pids
    assert bad.error.value == code, f"{bad.error.value} instead of {code}: {bad.message[-400:]}"
    assert words in bad.message, bad.message[-400:]
    assert good.ok, f"the next candidate: {good.error.value}: {good.message[-400:]}"
    assert not any(map(_alive, pids)), "a worker outlived the measurer"
    return f"{code}, both candidates in {seconds:.1f} s"


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_overhead() -> str:
    """Measuring takes little more than timing: 40 short kernels."""
    with _measurer(builders=min(8, os.cpu_count() or 1)) as measurer:
        measurer.use(_task())
        measurer.measure([RIGHT])
        start = time.perf_counter()
        found = measurer.measure([f"y[i] = 2 * x[i] + {n}e-9f;" for n in range(40)])
        seconds = (time.perf_counter() - start) / 40
    assert all(m.ok for m in found), next(m.message for m in found if not m.ok)[-400:]
    timed_s = 0.034
    figures = f"{seconds * 1e3:.1f} ms a candidate, of which about {timed_s * 1e3:.0f} are timing"
    assert seconds < timed_s + 0.1, figures
    return figures


def check_large_outputs() -> str:
    """A GB in and out is checked on the device in milliseconds."""
    from tempfile import TemporaryDirectory

    from loopwright.search.measure.device_buffers import DeviceBuffers
    from loopwright.search.measure.tolerance import Tolerance

    x = np.arange(1 << 26, dtype=np.float32)
    with TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x)
        buffers = DeviceBuffers(checks(), [f"{folder}/x.npy"], [f"{folder}/x.npy"], [Tolerance(1e-6, 1e-6)])
    buffers.poison()
    assert not buffers._all_right()
    buffers._checks.copy(buffers._outputs[0].buffer, 4096, buffers._outputs[0].model, x.nbytes)
    start = time.perf_counter()
    assert buffers.wrong() is None and buffers.memory_violation() is None
    seconds = time.perf_counter() - start
    assert seconds < 0.05, f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e3:.2f} ms for 256 MB of inputs and as much of outputs"


def check_tuning() -> str:
    """A short search of a matrix product: nothing fails, and the records hold what a GPU's should."""
    from tempfile import TemporaryDirectory

    import loopwright as lw
    from loopwright import te, topi

    a, b = te.placeholder((256, 256), name="a"), te.placeholder((256, 256), name="b")
    task = lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target="cuda")
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        options = lw.TuningOptions(num_measure_trials=32, records=f"{folder}/r.jsonl", progress=False)
        result = task.tune(options)
        seconds = time.perf_counter() - start
    state = result.state
    assert state.valid == state.done, state.error_counts()
    assert result.best.resources and result.best.resources[0]["registers"] > 0
    kernel = task.build(result.best.schedule)
    graph_s = min(kernel.benchmark(min_repeat_ms=20, graph=True).times_s)  # type: ignore[call-arg]
    figures = (
        f"{seconds:.1f} s (search {state.search_s:.1f}, build {state.build_s:.1f}, run {state.run_s:.1f}), best "
        f"{result.best.time_s * 1e6:.2f} us, replayed {graph_s * 1e6:.2f} us, {result.speedup:.2f} times the untuned"
    )
    assert abs(graph_s / result.best.time_s - 1) < 0.15, figures
    return figures


CHECKS: dict[str, Callable[[], str]] = {
    "preflight": check_preflight,
    "numpy": check_numpy,
    "torch": check_torch,
    "cupy": check_cupy,
    "graph timing": check_graph_timing,
    "measured as graph": check_measured_as_graph,
    "benchmark": check_benchmark,
    "overhead": check_overhead,
    "large outputs": check_large_outputs,
    "tuning": check_tuning,
    **{name: lambda name=name: check_fault(name) for name in FAULTS},  # type: ignore[misc]
}


def main(names: Sequence[str] | None = None) -> int:
    """Run the checks, or those named, and return how many failed as an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"of {', '.join(CHECKS)} (default: all)")
    chosen = parser.parse_args(names).checks or list(CHECKS)
    if unknown := [name for name in chosen if name not in CHECKS]:
        parser.error(f"there is no check {unknown[0]!r}")
    try:
        device_name()
    except RuntimeError as error:
        print(f"gpu_selfcheck: {error}", file=sys.stderr)
        return 2
    failed = sum(_tried(name, CHECKS[name]) == "FAIL" for name in chosen)
    print(f"{len(chosen) - failed} of {len(chosen)} checks did not fail")
    return 1 if failed else 0


def _tried(name: str, check: Callable[[], str]) -> str:
    start = time.perf_counter()
    try:
        verdict, text = "PASS", check()
    except Missing as error:
        verdict, text = "SKIP", str(error)
    except Exception as error:  # one check must not cost the others their time on the machine
        verdict, text = "FAIL", f"{type(error).__name__}: {str(error)[:600]}"
    print(f"{verdict} {name}: {text} [{time.perf_counter() - start:.1f} s]", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
