"""Print how long the first call of a ResNet-50 takes, untuned: from nothing, then from the cache.

`python benchmarks/torch_first_call.py [--rounds N]`. Each line is the quickest of N processes of its own. `cold`
begins with an empty cache folder, `warm` finds the kernels that another process compiled, and `aot_eager` is PyTorch's
own tracing, by Dynamo and AOTAutograd, around its own operators; `eager` is Dynamo's alone: no compiler behind
torch.compile can take less. `optimize` is `lw.torch.optimize` with its first call, and `export` what PyTorch takes of
that: torch.export and its decompositions. `saved` is a program of torch.export imported, compiled and written to a
file, `loaded` that file read by another process. Importing torch and making the model are not counted; importing
loopwright is. A call is the second one. CPU seconds are those of the process and of those that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Channels within a block, blocks, and the stride of the first (He et al. 2016, table 1)."""
COMPILED = (("cold", "loopwright"), ("warm", "loopwright"), ("aot_eager", "aot_eager"), ("eager", "eager"))
NOT_WAITED = (("cold, wait=False", "no wait"),)
OPTIMIZED = (("optimize, cold", "optimize"), ("optimize, warm", "optimize"), ("export", "export"))
SAVED = (("saved, cold", "save"), ("loaded", "load"))
GROUPS = (COMPILED, NOT_WAITED, OPTIMIZED, SAVED)
"""Rows of the table, with the way of each; those of one group share a cache folder, which the first finds empty."""


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, channels: int, width: int, stride: int, is_first: bool) -> None:
        super().__init__()
        made = 4 * width
        self.one = nn.Sequential(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width))
        self.two = nn.Sequential(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width))
        self.three = nn.Sequential(nn.Conv2d(width, made, 1, bias=False), nn.BatchNorm2d(made))
        short = nn.Sequential(nn.Conv2d(channels, made, 1, stride, bias=False), nn.BatchNorm2d(made))
        self.short = short if is_first else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.three(F.relu(self.two(F.relu(self.one(x))))) + self.short(x))


def resnet50() -> nn.Module:
    """Return the network of (N, 3, 224, 224)."""
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks, channels = [], 64
    for width, count, stride in STAGES:
        for number in range(count):
            blocks.append(Bottleneck(channels, width, stride if number == 0 else 1, number == 0))
            channels = 4 * width
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    return nn.Sequential(stem, *blocks, head).eval()


def compiled_by(way: str, model: nn.Module, x: torch.Tensor) -> Callable[[torch.Tensor], Any]:
    """Return a model compiled in a way: one of WAYS, or a backend of torch.compile."""
    made: Callable[[torch.Tensor], Any] = WAYS[way](model, x) if way in WAYS else torch.compile(model, backend=way)
    return made


def _without_wait(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.compile(model, backend="loopwright", options={"wait": False})


def _optimized(model: nn.Module, x: torch.Tensor) -> Any:
    import loopwright as lw

    return lw.torch.optimize(model, (x,))


def _exported(model: nn.Module, x: torch.Tensor) -> Any:
    from torch._decomp import core_aten_decompositions

    return torch.export.export(model, (x,)).run_decompositions(core_aten_decompositions()).module()


def _saved(model: nn.Module, x: torch.Tensor) -> Any:
    import loopwright as lw

    compiled = lw.compile(lw.from_exported(torch.export.export(model, (x,))))
    compiled.save(f"{os.environ['XDG_CACHE_HOME']}/model.lw")
    return lambda given: compiled(given.numpy())


def _loaded(model: nn.Module, x: torch.Tensor) -> Any:
    import loopwright as lw

    compiled = lw.load_network(f"{os.environ['XDG_CACHE_HOME']}/model.lw")
    return lambda given: compiled(given.numpy())


WAYS = {
    "no wait": _without_wait,
    "optimize": _optimized,
    "export": _exported,
    "save": _saved,
    "load": _loaded,
}


def measure(way: str) -> dict[str, float]:
    """Return the seconds of the first call and of the second one, in this process."""
    torch.manual_seed(0)
    model, x = resnet50(), torch.randn(1, 3, 224, 224)
    start_s, start_cpu_s = time.perf_counter(), _cpu_s()
    with torch.no_grad():
        compiled = compiled_by(way, model, x)
        compiled(x)
        first_s, cpu_s = time.perf_counter() - start_s, _cpu_s() - start_cpu_s
        start_s = time.perf_counter()
        compiled(x)
    return {"first_s": first_s, "cpu_s": cpu_s, "call_s": time.perf_counter() - start_s}


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_process(way: str, cache: str) -> dict[str, float]:
    """Measure in a process of its own, with a cache folder."""
    env = {**os.environ, "XDG_CACHE_HOME": cache}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile all that it imports
    run = subprocess.run([sys.executable, __file__, "--in", way], check=True, capture_output=True, text=True, env=env)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in", dest="inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure(options.inside)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name, _ in chain(*GROUPS)}
    for _ in range(options.rounds):
        for rows in GROUPS:
            with tempfile.TemporaryDirectory() as cache:
                for name, way in rows:
                    found[name].append(in_process(way, cache))
    print("| | first call (s) | of CPU (s) | a call (s) |\n|---|---|---|---|")
    for name, each in found.items():
        best = {key: min(one[key] for one in each) for key in each[0]}
        print(f"| {name} | {best['first_s']:.2f} | {best['cpu_s']:.2f} | {best['call_s']:.3f} |")


if __name__ == "__main__":
    main()
