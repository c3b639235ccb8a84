"""Products and convolutions in half precision of shapes that are drawn at random, untuned beside PyTorch.

    python benchmarks/tensor_drawn.py --products 48 --convolutions 32 --seed 0 --jobs 15

Nobody has chosen the shapes, and another seed gives others: extents are log-uniform, a third of them multiples of 64, a
third of 8, the others any; types fp16 and bf16. How a case is measured is `tensor.py`'s; the rows of the table come in
the order of the ratios, the worst first.
"""

from __future__ import annotations

import argparse
import statistics
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
from drawn_cases import extent
from tensor import Case, Untuned, _conv, _conv_apart, _nn, _nt, convolution, matmul, measure, prepared

LARGEST_PRODUCT = 2.0e11
"""Multiply-adds of a product at most: a quarter of a millisecond."""
LARGEST_CONVOLUTION = 4.0e10
"""Multiply-adds of a convolution at most."""


def _product(rng: np.random.Generator) -> Case:
    while True:
        m, n, k = extent(rng, 1, 8192), extent(rng, 64, 8192), extent(rng, 32, 8192)
        if m * n * k <= LARGEST_PRODUCT:
            break
    dtype, transposed = str(rng.choice(("float16", "bfloat16"))), bool(rng.integers(2))
    name = f"{m}x{n}x{k}_{'nt' if transposed else 'nn'}_{dtype}"
    return Case(name, partial(matmul, m, n, k, dtype, transposed), _nt if transposed else _nn)


def _convolution(rng: np.random.Generator) -> Case:
    while True:
        batch = int(rng.choice((1, 1, 2, 4, 8, 16, 32, 64)))
        size, window = int(rng.choice((7, 10, 14, 19, 20, 28, 38, 40, 56, 80, 112))), int(rng.choice((1, 3, 3, 5)))
        channels, filters = (int(rng.choice((16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512))) for _ in range(2))
        if batch * size * size * window * window * channels * filters <= LARGEST_CONVOLUTION:
            break
    name = f"conv_b{batch}_{size}_{channels}_to_{filters}_window_{window}"
    return Case(name, partial(convolution, size, channels, filters, window, batch), _conv, apart=_conv_apart)


@cache
def drawn(seed: int, products: int, convolutions: int) -> dict[str, Case]:
    """The cases of a seed, by their names."""
    rng = np.random.default_rng(seed)
    cases = [*(_product(rng) for _ in range(products)), *(_convolution(rng) for _ in range(convolutions))]
    return {case.name: case for case in cases}


def untuned(chosen: tuple[int, int, int], name: str) -> Untuned:
    """Choose and compile a case of a seed; no device is needed."""
    return prepared(drawn(*chosen)[name])


def _ratio(row: str) -> float:
    """PyTorch's time over ours, of a row of the table; 0 where it failed."""
    cells = row.split("|")
    return float(cells[5].strip().rstrip("x")) if len(cells) > 6 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=48)
    parser.add_argument("--convolutions", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that choose and compile")
    options = parser.parse_args()
    import torch

    chosen = (options.seed, options.products, options.convolutions)
    cases = drawn(*chosen)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        found = {name: pool.submit(untuned, chosen, name) for name in cases}
    rows = []
    for name, case in cases.items():
        try:
            rows.append(measure(torch, case, found[name].result(), 0, 0.0))
        except Exception as error:
            rows.append(f"| {name} | {type(error).__name__}: {str(error)[:300]} |")
    heads = ("untuned (us)", "tuned (us)", "PyTorch (us)", "PyTorch / ours", "kernels apart / ours", "error")
    print(f"| workload | {' | '.join(heads)} |\n|{'---|' * 7}")
    print("\n".join(sorted(rows, key=_ratio)))
    for what, some in (("products", rows[: options.products]), ("convolutions", rows[options.products :])):
        ratios = [ratio for ratio in map(_ratio, some) if ratio]
        if ratios:
            print(f"{what}: {statistics.geometric_mean(ratios):.2f}x, {sum(r < 0.9 for r in ratios)} below 0.9x")


if __name__ == "__main__":
    main()
