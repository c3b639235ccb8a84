"""Seconds of the CPU that compiling a network takes, stage by stage, with no device and nothing kept from before.

    python benchmarks/network_stages.py convnext_tiny densenet121 --target "cuda model=h200"

Models are torchvision's, with random weights, exported by torch.export. One process compiles each with an empty cache
folder. A stage's seconds are those that are not of another stage within it. `import` is `lw.from_exported`, most of it
PyTorch's decompositions; `most` is the longest of a stage's calls.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
import torchvision  # type: ignore[import-untyped]

import loopwright as lw

DEFAULT = ["efficientnet_v2_s", "convnext_tiny", "swin_t", "densenet121", "maxvit_t"]
STAGES = {
    "graph passes": [("graph.network", "Network.transform"), ("graph.compiler", "with_winograd")],
    "tasks": [("graph.compiler", "group_tasks")],
    "choosing": [("search.task", "SearchTask._likeliest")],
    "steps": [("backends.scheduled", "apply_schedule")],
    "lowering": [("backends.scheduled", "lower_in_place")],
    "source": [("backends.cuda.compile", "print_cuda"), ("backends.llvm.emit", "emit")],
    "NVRTC": [("backends.cuda.compile", "compile_cubin")],
    "constants, memory": [("graph.compiler", "_Memory.plan")],
}
"""Functions by stage, each with its module."""


@dataclass
class Clock:
    """Seconds of stages, exclusive of each other."""

    calls_s: dict[str, list[float]] = field(default_factory=dict)
    within_s: list[float] = field(default_factory=lambda: [0.0])

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds what it takes to a stage."""

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            start_s = time.process_time()
            self.within_s.append(0.0)
            try:
                return function(*args, **named)
            finally:
                took_s = time.process_time() - start_s
                self.calls_s.setdefault(stage, []).append(took_s - self.within_s.pop())
                self.within_s[-1] += took_s

        return call

    def watch(self) -> None:
        """Put what times a stage in the place of its functions, wherever they were imported to."""
        for stage, functions in STAGES.items():
            for module, path in functions:
                owner = importlib.import_module(f"loopwright.{module}")
                *above, name = path.split(".")
                for part in above:
                    owner = getattr(owner, part)
                known = getattr(owner, name)
                timed = self.timed(stage, known)
                setattr(owner, name, timed)
                for other in [each for key, each in sys.modules.items() if key.startswith("loopwright")]:
                    if vars(other).get(name) is known:
                        setattr(other, name, timed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, help="names of torchvision's models")
    parser.add_argument("--target", default="cuda model=h200")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = Clock()
    clock.watch()
    stages = ["import", *STAGES, "other"]
    print(f"| network | kernels | all (s) | {' | '.join(stages)} |\n|{'---|' * (len(stages) + 3)}", flush=True)
    for name in options.models:
        print(_row(name, options.target, clock, stages), flush=True)


def _row(name: str, target: str, clock: Clock, stages: list[str]) -> str:
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    program = torch.export.export(model, (torch.randn(1, 3, 224, 224),))
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        start_s = time.process_time()
        net = lw.from_exported(program)
        imported_s = time.process_time() - start_s
        clock.calls_s.clear()
        start_s = time.process_time()
        compiled = lw.compile(net, target, processes=1)
        all_s = time.process_time() - start_s
    found = {"import": [imported_s], **clock.calls_s}
    found["other"] = [all_s - sum(map(sum, clock.calls_s.values()))]
    cells = [_cell(found.get(stage, [])) for stage in stages]
    return f"| {name} | {len(compiled.package.plan.kernels)} | {all_s + imported_s:.1f} | {' | '.join(cells)} |"


def _cell(calls_s: list[float]) -> str:
    """The sum of a stage's calls, and the longest of several."""
    return f"{sum(calls_s):.2f}" + (f", most {max(calls_s):.2f}" if len(calls_s) > 2 else "")


if __name__ == "__main__":
    main()
