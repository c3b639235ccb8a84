"""Compare torch.compile on a CUDA device, by our backend, with PyTorch: the host's time for a call, and whole calls.

Kernels are not tuned unless `--tune` gives seconds a region: what is compared here is what a call costs beside its
kernels. `host` is the time until a call returns, its kernels being queued; `call` is a call among many, back to back;
`replay` is a run of a CUDA graph that was captured of it. `launches` counts our kernels. Ours and the peer take turns;
figures are medians of alternating rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import loopwright as lw
from loopwright.frontends.torch.backend import compiled_by
from loopwright.frontends.torch.graph import CompiledGraph
from loopwright.frontends.torch.options import TorchOptions
from loopwright.graph.runtime.on_cuda import CudaNetwork

ROUNDS = 9
QUEUED = 20
"""Calls in a row whose host's time is taken: few enough to fit the driver's queue, so that none waits."""
CALLS = 200


@dataclass(frozen=True)
class Case:
    """A module in plain PyTorch, by its maker, and the shape of its input."""

    name: str
    make: Callable[[Any], Any]
    shape: tuple[int, ...]


CASES = (
    Case("one kernel", lambda nn: nn.Softmax(-1), (8, 64)),
    Case(
        "perceptron",
        lambda nn: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)),
        (16, 64),
    ),
    Case(
        "convolutions",
        lambda nn: nn.Sequential(
            *(layer for _ in range(4) for layer in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()))
        ),
        (4, 16, 32, 32),
    ),
    Case(
        "encoder layer",
        lambda nn: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        (2, 16, 64),
    ),
)


def host_s(torch: Any, call: Callable[[], Any]) -> float:
    """Return the seconds until a call returns, the device having nothing else to do."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(QUEUED):
        call()
    seconds = (time.perf_counter() - start) / QUEUED
    torch.cuda.synchronize()
    return seconds


def call_s(torch: Any, call: Callable[[], Any]) -> float:
    """Return the seconds of a call among many."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / CALLS


def captured(torch: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """Return the replay of a CUDA graph of a call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    replay: Callable[[], Any] = graph.replay
    return replay


def alternating(torch: Any, timed: Callable[[Any, Callable[[], Any]], float], calls: Sequence[Any]) -> list[float]:
    """Return the median microseconds of each call, which take turns."""
    for call in calls:
        timed(torch, call)
    rounds = [[timed(torch, call) for call in calls] for _ in range(ROUNDS)]
    return [statistics.median(times) * 1e6 for times in zip(*rounds, strict=True)]


def row(torch: Any, case: Case, options: TorchOptions) -> str:
    """Return the row of a case."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    module, x = case.make(torch.nn).eval().cuda(), torch.randn(case.shape, device="cuda")
    graphs: list[CompiledGraph] = []
    compiled = torch.compile(module, backend=compiled_by(options, graphs.append))
    torch.testing.assert_close(compiled(x), module(x), rtol=1e-3, atol=1e-4)
    regions = [region for graph in graphs for region in graph.regions]
    assert regions and all(region.failure is None for region in regions), [region.failure for region in regions]
    launches = 0
    for region in regions:
        assert region.compiled is not None
        loaded = region.compiled.loaded(region.device.index)
        assert isinstance(loaded, CudaNetwork)
        launches += sum(len(loaded.functions[step.kernel].kernel.launches) for step in loaded.plan.steps)
    calls = [lambda: module(x), lambda: compiled(x)]
    host = alternating(torch, host_s, calls)
    whole = alternating(torch, call_s, calls)
    replays = alternating(torch, call_s, [captured(torch, call) for call in calls])
    alone = [""]
    if len(regions) == 1 and len(graphs) == 1:
        (region,), arguments = regions, _arguments(compiled, regions[0], x)
        alone = [f"{alternating(torch, host_s, [lambda: region(*arguments)])[0]:.1f}"]
    figures = [f"{us:.1f}" for pair in (host, whole, replays) for us in pair]
    return f"| {case.name} | {len(regions)} | {launches} | {' | '.join([*figures, *alone])} |"


def _arguments(compiled: Callable[[Any], Any], region: Any, x: Any) -> Any:
    """Return the arguments of a region in a call."""
    seen: list[Any] = []
    run = region._run
    region._run = lambda bound, arguments: seen.append(arguments) or run(bound, arguments)
    compiled(x)
    del region._run
    return seen[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where there is no device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of tuning for each region (default: 0)")
    given = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        print("torch_cuda: PyTorch sees no CUDA device", file=sys.stderr)
        return 2
    torch.backends.cudnn.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, loopwright {lw.__version__}; microseconds\n")
    print(
        "| model | regions | launches | host: PyTorch | host: ours | call: PyTorch | call: ours | replay: PyTorch ",
        end="",
    )
    print("| replay: ours | host: region alone |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        options = TorchOptions(tune=given.tune, records=f"{folder}/records.jsonl" if given.tune else None)
        for case in CASES:
            print(row(torch, case, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
