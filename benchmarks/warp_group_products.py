"""Compare products of matrices by wgmma and TMA, scheduled by hand, with PyTorch (cuBLAS) on a GPU of sm_90a.

Run: python benchmarks/warp_group_products.py [--sizes 4096,8192] [--rounds 7]
Both sides are CUDA graphs of the same number of products of random data, timed in turn in one run; figures are medians.
Each result is held to PyTorch's, and two runs are compared bit for bit.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from gpu import graphed
from rounds import behind_one, medians_in_turn

import loopwright as lw

PRODUCTS = 20
"""Products of a graph."""


def example(name: str) -> ModuleType:
    """A file of `examples/`."""
    path = Path(__file__).resolve().parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def peer(a: Any, b: Any) -> Callable[[], float]:
    """PyTorch's products as a graph: a call gives the seconds of one."""
    import torch

    multiply = torch._int_mm if a.dtype == torch.int8 else torch.matmul
    b = b.t()
    return graphed(torch, lambda: multiply(a, b), PRODUCTS)


def ours(kernel: Any, arrays: list[Any]) -> Callable[[], float]:
    """Our products as a graph: a call gives the seconds of one."""
    runtime = kernel._executable.runtime
    pointers = [array.data_ptr() for array in arrays]
    return lambda: float(runtime.time(pointers, PRODUCTS, graph=True)) / PRODUCTS


def compare(name: str, schedule: Any, arrays: list[Any], rounds: int) -> None:
    """Print a row: both sides, the error, and whether two runs give the same bits."""
    import torch

    a, b = arrays
    kernel = lw.build(schedule)
    kind = torch.int32 if a.dtype == torch.int8 else a.dtype
    first, second = (torch.empty(a.shape[0], b.shape[0], dtype=kind, device="cuda") for _ in range(2))
    kernel(a, b, first)
    kernel(a, b, second)
    torch.cuda.synchronize()
    right = a.double() @ b.double().t()
    error = float((first.double() - right).norm() / right.norm())
    same = bool(torch.equal(first, second))
    sides = {"torch": peer(a, b), "ours": ours(kernel, [a, b, first])}
    times_s = medians_in_turn({side: behind_one(timer) for side, timer in sides.items()}, rounds)
    torch_s, ours_s = times_s["torch"], times_s["ours"]
    rate = 2e-12 * a.shape[0] * b.shape[0] * a.shape[1] / ours_s
    bits = "same bits" if same else "OTHER BITS"
    print(
        f"| {name} | {ours_s * 1e6:.1f} | {torch_s * 1e6:.1f} | {torch_s / ours_s:.2f}x | {rate:.0f} | {error:.1e} | "
        f"{bits} |",
        flush=True,
    )


def random(size: int, dtype: str) -> Any:
    """A square matrix of random numbers on the device."""
    import torch

    if dtype == "int8":
        return torch.randint(-128, 128, (size, size), device="cuda", dtype=torch.int8)
    return torch.randn(size, size, device="cuda", dtype=getattr(torch, dtype))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--dtypes", default="float16")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    wgmma = example("gpu_matmul_wgmma")
    forms = {
        "128 x 256, 4 stages": wgmma.Tiles(group=1),
        "128 x 256, 4 stages, groups of 8": wgmma.Tiles(),
        "256 x 128, 4 stages": wgmma.Tiles(tiles=(2, 1), columns=128, group=1),
        "256 x 128, 4 stages, groups of 4": wgmma.Tiles(tiles=(2, 1), columns=128, group=4),
        "128 x 128, 6 stages": wgmma.Tiles(columns=128, stages=6, group=1),
        "128 x 128, 3 stages, 2 blocks": wgmma.Tiles(columns=128, stages=3, group=1, blocks_per_sm=2),
        "64 x 128, 6 stages": wgmma.Tiles(groups=(1, 1), columns=128, stages=6, group=1),
    }
    print("| product | ours (us) | torch (us) | torch / ours | TFLOP/s | error | two runs |")
    print("|---|---|---|---|---|---|---|")
    for size in map(int, options.sizes.split(",")):
        for dtype in options.dtypes.split(","):
            arrays = [random(size, dtype) for _ in range(2)]
            for form, tiles in forms.items():
                if size % (tiles.groups[0] * tiles.tiles[0] * 64 * tiles.group) == 0:
                    schedule = wgmma.scheduled(size, dtype, "cuda model=h200", tiles)
                    compare(f"{dtype} {size}, {form}", schedule, arrays, options.rounds)


if __name__ == "__main__":
    main()
