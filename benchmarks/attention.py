"""Compare attention with PyTorch's scaled_dot_product_attention in one run: check, time in turn, print a table.

`.venv/bin/python benchmarks/attention.py` takes the CPU, `--target cuda` the GPU, where both sides are replayed as
graphs; `--only` names cases by a part of their names (`b1_`, `causal`, `q1_`), `--seed 0` takes shapes that nobody has
chosen, `--trials` tunes each case first. Ours is a network of products, mask and softmax, as compiled for the target;
`kernels` is how many that makes. Figures are medians of rounds in turn; the ratio is the peer's time over ours (above
1: we are faster). GFLOP/s are of 4 * queries * keys * size for each head, half of it where it is causal.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from drawn_cases import extent
from gpu import graphed
from rounds import PAUSE_S, call_by_clock, medians_in_turn

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.target import Target

MOST_BYTES = 1 << 31
"""Bytes of all scores, at most: cases with more are left out, as kernels apart write them."""
MOST_ERROR = {"float32": 1e-4, "float16": 2e-2}
"""The largest deviation from PyTorch's result, in units of the largest value."""


@dataclass(frozen=True)
class Case:
    """Attention of so many queries to so many keys, each of `size` elements, in each head of each sequence."""

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    causal: bool

    @property
    def name(self) -> str:
        sizes = f"b{self.batch}_h{self.heads}_q{self.queries}_k{self.keys}_d{self.size}"
        return f"{sizes}_causal" if self.causal else sizes

    @property
    def flops(self) -> float:
        """Arithmetic of both products."""
        whole = 4.0 * self.batch * self.heads * self.queries * self.keys * self.size
        return whole / 2 if self.causal else whole

    def network(self, dtype: str) -> lw.Network:
        """As models write it: batch and heads apart, the causal mask a constant."""
        net = lw.Network(self.name)
        flat = []
        for name, rows in (("q", self.queries), ("k", self.keys), ("v", self.keys)):
            value = net.input(name, (self.batch, self.heads, rows, self.size), dtype)
            flat.append(net.apply("reshape", value, shape=(self.batch * self.heads, rows, self.size)))
        scores = net.apply("batch_matmul", flat[0], flat[1], transpose_b=True) * (1 / sqrt(self.size))
        if self.causal:
            earlier = net.constant(np.tri(self.queries, self.keys, dtype=bool), "earlier")
            scores = net.apply("where", earlier, scores, -30000.0)
        context = net.apply("batch_matmul", net.apply("softmax", scores), flat[2])
        net.output(net.apply("reshape", context, shape=(self.batch, self.heads, self.queries, self.size)))
        return net


def cases(bytes_each: int) -> Iterator[Case]:
    """Prompts of all lengths, causal and not, and one new token beside a cache of keys."""
    for batch, heads, size in product((1, 16), (12, 32), (64, 128)):
        for tokens, causal in product((128, 512, 1024, 4096), (False, True)):
            if batch * heads * tokens * tokens * bytes_each <= MOST_BYTES:
                yield Case(batch, heads, tokens, tokens, size, causal)
        for tokens in (512, 4096):
            yield Case(batch, heads, 1, tokens, size, False)


MOST_FLOPS = 1.0e11
"""Arithmetic of a drawn case at most: a tenth of a second on two cores."""


def drawn(seed: int, number: int, bytes_each: int) -> Iterator[Case]:
    """Cases of lengths, heads and sizes that are drawn at random, a third of each causal, few queries, and any."""
    rng, made = np.random.default_rng(seed), 0
    while made < number:
        batch, heads = int(rng.choice((1, 1, 2, 4, 8))), int(rng.choice((3, 6, 8, 12, 16, 20, 32)))
        size, keys = int(rng.choice((32, 40, 48, 64, 72, 80, 96, 128))), extent(rng, 16, 4096)
        queries = (keys, int(rng.integers(1, 17)), extent(rng, 1, 2048))[made % 3]
        case = Case(batch, heads, queries, keys, size, causal=made % 3 == 0)
        if case.flops <= MOST_FLOPS and batch * heads * queries * keys * bytes_each <= MOST_BYTES:
            yield case
            made += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="llvm", help="llvm, llvm cores=1, cuda")
    parser.add_argument("--dtype", default="float32", choices=list(MOST_ERROR))
    parser.add_argument("--only", default="", help="cases whose names contain this, such as b1_h12_q512")
    parser.add_argument("--trials", type=int, default=0, help="of each case, before it is timed")
    parser.add_argument("--seed", type=int, help="cases that are drawn at random, in place of those that are listed")
    parser.add_argument("--number", type=int, default=24, help="of drawn cases")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    import torch

    target = resolve_target(options.target)
    if not target.is_gpu:
        torch.set_num_threads(target.cores)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{target}, {options.dtype}, PyTorch {torch.__version__}, {options.trials} trials each\n")
    print("| case | ours (ms) | PyTorch (ms) | ratio | GFLOP/s | kernels | error |\n|---|---|---|---|---|---|---|")
    bytes_each = np.dtype(options.dtype).itemsize
    listed = cases(bytes_each) if options.seed is None else drawn(options.seed, options.number, bytes_each)
    for case in listed:
        if options.only in case.name:
            print(_line(case, target, options, torch), flush=True)


def _line(case: Case, target: Target, options: argparse.Namespace, torch: Any) -> str:
    rng = np.random.default_rng(0)
    net = case.network(options.dtype)
    feeds = {n: rng.standard_normal(v.shape).astype(v.dtype) for n, v in net.inputs.items()}
    compiled = _compiled(net, target, options.trials)
    executor = compiled.executor()
    executor.set_input(**feeds)
    executor.run()
    tensors = [torch.from_numpy(a).to("cuda" if target.is_gpu else "cpu") for a in feeds.values()]

    def peer() -> Any:
        with torch.inference_mode():
            return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=case.causal)

    error = _error(executor.get_output(0), peer().cpu().numpy())
    if not error < MOST_ERROR[options.dtype]:
        raise ValueError(f"{case.name} is off by {error:.1e} of the largest value")
    timers = {"ours": call_by_clock(executor.run), "peer": call_by_clock(peer)}
    if target.is_gpu:
        timers = {"ours": lambda: _replayed(executor), "peer": graphed(torch, peer)}
    found = medians_in_turn(timers, options.rounds, 0.0 if target.is_gpu else PAUSE_S)
    figures = (f"{found['ours'] * 1e3:.3f}", f"{found['peer'] * 1e3:.3f}", f"{found['peer'] / found['ours']:.2f}")
    rate = f"{case.flops / found['ours'] / 1e9:.0f}"
    return f"| {case.name} | {' | '.join(figures)} | {rate} | {len(compiled.kernels)} | {error:.0e} |"


def _compiled(net: lw.Network, target: Target, trials: int) -> Any:
    if not trials:
        return lw.compile(net, target)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        tasks, weights = lw.extract_tasks(net, target)
        options = lw.TuningOptions(num_measure_trials=trials, records=path)
        lw.TaskScheduler(tasks, weights).tune(options)
        return lw.compile(net, target, records=path)


def _error(got: Any, want: Any) -> float:
    return float(np.abs(got.astype(np.float64) - want).max() / np.abs(want).max())


def _replayed(executor: Any) -> float:
    return float(executor.benchmark(repeat=1, min_repeat_ms=20).median)


if __name__ == "__main__":
    main()
