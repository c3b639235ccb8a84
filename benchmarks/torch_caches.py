"""Compare a token's step beside a cache of keys and values, which it writes, with eager PyTorch on the CPU.

`python benchmarks/torch_caches.py [--rounds N] [--lengths L...]`. A step is a linear layer that gives query, key and
value (8 heads of 64), a write of the last two into caches (1, 8, L, 64), attention over these, and a linear layer, in
fp32 on one thread. `ours` is torch.compile with this backend; `copies` is the same where caches of all lengths are
copied as a whole. All take turns in one process; medians of rounds of five calls are printed, in microseconds.
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

from loopwright.frontends.torch.backend import compiled_by
from loopwright.frontends.torch.options import TorchOptions
from loopwright.frontends.torch.written_inputs import WrittenInputs

CALLS, HEADS, ELEMENTS, WIDTH = 5, 8, 64, 512
WAYS = ("index_copy_", "index_put_", "slice")


class Step(nn.Module):
    """A step that writes its caches in one of the ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.project, self.out = way, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def _write(self, cache: torch.Tensor, row: torch.Tensor, place: torch.Tensor) -> None:
        if self.way == "index_copy_":
            cache.index_copy_(2, place, row)
        elif self.way == "index_put_":
            cache[:, :, place] = row
        else:
            cache[:, :, 5:6] = row

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, place: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return the token's state, (1, 1, 512)."""
        parts = self.project(x).view(1, 1, 3, HEADS, ELEMENTS).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        self._write(keys, key, place)
        self._write(values, value, place)
        made = nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return self.out(made.transpose(1, 2).reshape(1, 1, WIDTH))  # type: ignore[no-any-return]


def compiled(step: nn.Module, given: tuple[torch.Tensor, ...], in_place: bool) -> Callable[..., Any]:
    """Return the step under torch.compile, called once, with caches written in place, or as whole copies."""
    write_in_place = WrittenInputs.write_in_place
    if not in_place:
        WrittenInputs.write_in_place = lambda self, gm: None  # type: ignore[method-assign]
    try:
        made = torch.compile(step, backend=compiled_by(TorchOptions()))  # each has a backend, and graphs, of its own
        made(*given)
    finally:
        WrittenInputs.write_in_place = write_in_place  # type: ignore[method-assign]
    return made


def times_us(way: str, length: int, rounds: int) -> dict[str, float]:
    """Return the median microseconds a call."""
    torch._dynamo.reset()
    step, shape = Step(way).eval(), (1, HEADS, length, ELEMENTS)
    given = (torch.randn(1, 1, WIDTH), torch.randn(shape), torch.randn(shape), torch.tensor([5]))
    inputs = (*given, torch.zeros(1, 1, 1, length))
    calls: dict[str, Callable[..., Any]] = {"eager": step}
    calls |= {"copies": compiled(step, inputs, False), "ours": compiled(step, inputs, True)}

    def seconds(call: Callable[..., Any]) -> float:
        call(*inputs)
        start_s = time.perf_counter()
        for _ in range(CALLS):
            call(*inputs)
        return (time.perf_counter() - start_s) / CALLS

    found = times_in_turn({name: partial(seconds, call) for name, call in calls.items()}, rounds)
    return {name: statistics.median(times) * 1e6 for name, times in found.items()}


def main() -> None:
    """Print a row for each way and length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--lengths", type=int, nargs="*", default=[16, 128, 1024, 2048])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| write | L | eager | copies | ours | eager's over ours |\n|---|---|---|---|---|---|")
    with torch.no_grad():
        for way in WAYS:
            for length in options.lengths:
                us = times_us(way, length, options.rounds)
                row = [way, length, *(f"{each:.0f}" for each in us.values()), f"{us['eager'] / us['ours']:.2f}x"]
                print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
