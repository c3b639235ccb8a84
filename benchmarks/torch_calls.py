"""Print what a call of a compiled model takes beside its kernels: ten kernels of next to no work, called one by one.

`python benchmarks/torch_calls.py [--rounds N]`. All ways to call the same network take turns in one process, a
thousand calls a round; the least and the median round are printed. `nothing` is torch.compile around a backend whose
graphs return a tensor that is there: what PyTorch itself takes of each call. `kernels` are the ten kernels alone, by
one native call.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rounds import times_in_turn
from torch import nn

import loopwright as lw

CALLS = 1000
LAYERS, WIDTH = 5, 8


def network() -> nn.Module:
    """Return five linear layers with a softmax each: ten kernels."""
    return nn.Sequential(*(part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Softmax(-1)))).eval()


def contestants(x: torch.Tensor) -> dict[str, Callable[[torch.Tensor], Any]]:
    """Return ways to call the network, each called once."""
    optimized = lw.torch.optimize(network(), (x,))
    made = optimized(x)
    bound = optimized.graph.regions[0]._bound
    assert bound is not None and len(bound.network.plan.steps) == 2 * LAYERS
    frame, addresses = bound.taken_frame(), [x.data_ptr(), made.data_ptr()]
    ways: dict[str, Callable[[torch.Tensor], Any]] = {
        "kernels": lambda _: frame.run(addresses),
        "lw.torch.optimize": optimized,
        'torch.compile, "loopwright"': torch.compile(network(), backend="loopwright"),
        "torch.compile, nothing": torch.compile(network(), backend=lambda gm, inputs: lambda *_: (made,)),
        'torch.compile, "eager"': torch.compile(network(), backend="eager"),
        "PyTorch": network(),
    }
    for call in ways.values():
        call(x)
    return ways


def times_us(ways: dict[str, Callable[[torch.Tensor], Any]], x: torch.Tensor, rounds: int) -> dict[str, list[float]]:
    """Return the microseconds a call of each way, one number a round."""

    def microseconds(call: Callable[[torch.Tensor], Any]) -> float:
        start_s = time.perf_counter()
        for _ in range(CALLS):
            call(x)
        return (time.perf_counter() - start_s) / CALLS * 1e6

    return times_in_turn({name: partial(microseconds, call) for name, call in ways.items()}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    x = torch.randn(1, WIDTH)
    with torch.no_grad():
        found = times_us(contestants(x), x, options.rounds)
    kernels = min(found["kernels"])
    print("| call | least (us) | median (us) | least beyond the kernels (us) |\n|---|---|---|---|")
    for name, each in found.items():
        ours = name in ("lw.torch.optimize", 'torch.compile, "loopwright"')
        beyond = f"{min(each) - kernels:.1f}" if ours else ""
        print(f"| {name} | {min(each):.1f} | {statistics.median(each):.1f} | {beyond} |")


if __name__ == "__main__":
    main()
