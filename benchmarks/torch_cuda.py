"""Compare torch.compile on a CUDA device, by our backend, with PyTorch: the host's time for a call, and whole calls.

Kernels are not tuned unless `--tune` gives seconds a region: what is compared here is what a call costs beside its
kernels. `host` is the time until a call returns, its kernels being queued; `call` is a call among many, back to back;
`replay` is a run of a CUDA graph that was captured of it. `launches` counts our kernels. Ours and the peer take turns;
figures are medians of alternating rounds.

The second table is of a region's launches alone, without PyTorch's tensors: one by one, as a graph, and as a graph
whose inputs and outputs lie elsewhere than in the call before. `--attention` compares attention taken apart with
PyTorch's kernel for it. `--overhead` prints the host's time for a region beside that for its graph alone, in turn: what
a call takes beyond its kernels.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import loopwright as lw
from loopwright.frontends.torch.backend import compiled_by
from loopwright.frontends.torch.graph import CompiledGraph
from loopwright.frontends.torch.operators import attention as attention_module
from loopwright.frontends.torch.options import TorchOptions
from loopwright.frontends.torch.region import Region
from loopwright.graph.runtime.on_cuda import CudaNetwork

ROUNDS = 9
QUEUED = 20
"""Calls in a row whose host's time is taken: few enough to fit the driver's queue, so that none waits."""
CALLS = 200
TURNS = 60
"""Rounds of what takes the host a few microseconds, of which the least counts too."""


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
    Case("ten kernels", lambda nn: nn.Sequential(*(nn.Softmax(-1) for _ in range(10))), (8, 64)),
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
    return [statistics.median(times) for times in turns_us(torch, timed, calls, ROUNDS)]


def turns_us(
    torch: Any, timed: Callable[[Any, Callable[[], Any]], float], calls: Sequence[Any], rounds: int
) -> list[list[float]]:
    """Return the microseconds of each call in each round."""
    for call in calls:
        timed(torch, call)
    found = [[timed(torch, call) * 1e6 for call in calls] for _ in range(rounds)]
    return [list(times) for times in zip(*found, strict=True)]


def compiled_case(torch: Any, module: Any, x: Any, options: TorchOptions) -> tuple[Callable[[Any], Any], list[Region]]:
    """Return a compiled module, and its regions, all of which run in our kernels."""
    graphs: list[CompiledGraph] = []
    compiled = torch.compile(module, backend=compiled_by(options, graphs.append))
    torch.testing.assert_close(compiled(x), module(x), rtol=1e-3, atol=1e-4)
    regions = [region for graph in graphs for region in graph.regions]
    assert regions and all(region.failure is None for region in regions), [region.failure for region in regions]
    return compiled, regions


def loaded(region: Region) -> CudaNetwork:
    """Return a region's network on its device."""
    assert region.compiled is not None
    network = region.compiled.loaded(region.device.index)
    assert isinstance(network, CudaNetwork)
    return network


def launches_of(region: Region) -> int:
    """Return how many kernels a region launches."""
    network = loaded(region)
    return sum(len(network.functions[step.kernel].kernel.launches) for step in network.plan.steps)


def row(torch: Any, case: Case, options: TorchOptions) -> tuple[str, str]:
    """Return the rows of a case in both tables."""
    module, x = made(torch, case)
    compiled, regions = compiled_case(torch, module, x, options)
    calls = [lambda: module(x), lambda: compiled(x)]
    host = alternating(torch, host_s, calls)
    whole = alternating(torch, call_s, calls)
    replays = alternating(torch, call_s, [captured(torch, call) for call in calls])
    region, arguments = regions[0], _arguments(compiled, regions[0], x)
    alone = alternating(torch, host_s, [lambda: region(*arguments)])
    figures = [f"{us:.1f}" for us in (*(each for pair in (host, whole, replays) for each in pair), *alone)]
    launches = [launches_of(each) for each in regions]
    first = f"| {case.name} | {len(regions)} | {sum(launches)} | {' | '.join(figures)} |"
    return first, f"| {case.name} | {launches[0]} | {' | '.join(f'{us:.1f}' for us in launches_alone(torch, region))} |"


def launches_alone(torch: Any, region: Region) -> list[float]:
    """Return the microseconds of a region's launches, for the host and for a call among many, in three ways."""
    calls = launch_calls(torch, region)
    return [*alternating(torch, host_s, calls), *alternating(torch, call_s, calls)]


def launch_calls(torch: Any, region: Region) -> list[Callable[[], Any]]:
    """Return a region's launches one by one, as a graph, and as a graph whose tensors move from call to call."""
    network = loaded(region)
    bound: Any = region._bound
    frame = network.frame(bound.loaded.constants.addresses)
    sizes = [port.nbytes for port in (*network.plan.inputs, *network.plan.outputs)]
    given = [[torch.zeros(size, dtype=torch.uint8, device="cuda") for size in sizes] for _ in range(2)]
    places = [[tensor.data_ptr() for tensor in tensors] for tensors in given]
    workspace = torch.zeros(max(1, network.binding.workspace_bytes), dtype=torch.uint8, device="cuda")
    stream, turns = torch.cuda.current_stream().cuda_stream, itertools.cycle(places)
    return [
        lambda: frame.run(places[0], workspace.data_ptr(), stream, True),
        lambda: frame.run(places[0], workspace.data_ptr(), stream),
        lambda: frame.run(next(turns), workspace.data_ptr(), stream),
    ]


def overhead(torch: Any, options: TorchOptions) -> None:
    """Print the host's time for each case's first region, for its graph alone, and what the region takes beyond it."""
    print("| model | parameters | launches | region: least | median | graph: least | median | beyond: least | median |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        module, x = made(torch, case)
        compiled, regions = compiled_case(torch, module, x, options)
        region, arguments = regions[0], _arguments(compiled, regions[0], x)
        calls = [lambda region=region, arguments=arguments: region(*arguments), launch_calls(torch, region)[1]]  # type: ignore[misc]
        both = turns_us(torch, host_s, calls, TURNS)
        beyond = [ours - graph for ours, graph in zip(*both, strict=True)]
        least = [min(both[0]), min(both[1]), min(both[0]) - min(both[1])]
        medians = map(statistics.median, (*both, beyond))
        figures = " | ".join(f"{a:.1f} | {b:.1f}" for a, b in zip(least, medians, strict=True))
        print(f"| {case.name} | {len(region.static)} | {launches_of(region)} | {figures} |", flush=True)


def made(torch: Any, case: Case) -> tuple[Any, Any]:
    """Return a case's module and input, in a PyTorch that has compiled nothing."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    return case.make(torch.nn).eval().cuda(), torch.randn(case.shape, device="cuda")


def attention(torch: Any, options: TorchOptions) -> None:
    """Print a layer of attention, taken apart and not, by the length of its sequences."""
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        """Attention of 8 heads of 64, between products."""

        def __init__(self) -> None:
            super().__init__()
            self.given, self.made = nn.Linear(512, 3 * 512), nn.Linear(512, 512)

        def forward(self, x: Any) -> Any:
            n, length, _ = x.shape
            q, k, v = self.given(x).view(n, length, 3, 8, 64).permute(2, 0, 3, 1, 4).unbind(0)
            found = nn.functional.scaled_dot_product_attention(q, k, v)
            return torch.relu(self.made(found.transpose(1, 2).reshape(n, length, 512)))

    print("\n| length | regions | call: PyTorch | PyTorch's kernel | taken apart | replay: PyTorch | ", end="")
    print("PyTorch's kernel | taken apart |\n|---|---|---|---|---|---|---|---|")
    for length in (16, 64, 128, 256, 512, 1024):
        torch.manual_seed(0)
        torch._dynamo.reset()
        module, x = Layer().eval().cuda(), torch.randn(2, length, 512, device="cuda")
        calls: list[Callable[[], Any]] = [lambda module=module, x=x: module(x)]  # type: ignore[misc]
        counts = []
        for most in (0, 1 << 40):
            with patch.object(attention_module, "MOST_SCORES", most):
                compiled, regions = compiled_case(torch, module, x, options)
            calls.append(lambda compiled=compiled, x=x: compiled(x))  # type: ignore[misc]
            counts.append(str(len(regions)))
        whole = alternating(torch, call_s, calls)
        replays = alternating(torch, call_s, [captured(torch, call) for call in calls])
        print(
            f"| {length} | {', '.join(counts)} | {' | '.join(f'{us:.1f}' for us in (*whole, *replays))} |", flush=True
        )


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
    parser.add_argument("--attention", action="store_true", help="attention alone, by length")
    parser.add_argument("--overhead", action="store_true", help="regions beside their graphs alone")
    given = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        print("torch_cuda: PyTorch sees no CUDA device", file=sys.stderr)
        return 2
    torch.backends.cudnn.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, loopwright {lw.__version__}; microseconds\n")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        options = TorchOptions(tune=given.tune, records=f"{folder}/records.jsonl" if given.tune else None)
        if given.attention:
            attention(torch, options)
            return 0
        if given.overhead:
            overhead(torch, options)
            return 0
        columns = [f"{what}: {whose}" for what in ("host", "call", "replay") for whose in ("PyTorch", "ours")]
        heads = ["model", "regions", "launches", *columns, "host: first region alone"]
        print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
        second = []
        for case in CASES:
            first, alone = row(torch, case, options)
            print(first, flush=True)
            second.append(alone)
    heads = [f"{what}: {how}" for what in ("host", "call") for how in ("one by one", "graph", "graph, addresses move")]
    print(f"\n| model | launches | {' | '.join(heads)} |\n{'|---' * (len(heads) + 2)}|")
    print("\n".join(second))
    return 0


if __name__ == "__main__":
    sys.exit(main())
