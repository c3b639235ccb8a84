"""Time a network from input to output, beside onnxruntime on the same model where it is installed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable
from ._inputs import drawn, from_zero, positive, read_arrays
from ._network import add_compile_options, add_trust_option, as_json, compiled_network, executor_of
from ._peer import Comparison, compare
from ._report import table

if TYPE_CHECKING:
    from ..graph.runtime.executor import Executor
    from ..graph.runtime.network import CompiledNetwork


_PEER_MS = 500.0
"""Length of a round beside the peer, unless told otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    add_trust_option(parser)
    parser.add_argument("--number", type=positive, help="runs in a repeat, and no more unless --min-repeat-ms is given")
    parser.add_argument("--min-repeat-ms", type=from_zero, help="length of a repeat (default: 500)")
    parser.add_argument("--repeat", type=positive, default=3, help="repeats, and rounds beside the peer (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="leave onnxruntime out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    net = compiled_network(options)
    executor = executor_of(net)
    result = executor.benchmark(number=options.number, repeat=options.repeat, min_repeat_ms=options.min_repeat_ms)
    flops = sum(net.kernels[step.kernel].flops for step in net.plan.steps)
    beside = None if options.no_peer else _beside(options, net, executor)
    if options.json:
        report = {
            **as_json(net),
            "median_s": result.median,
            "mean_s": result.mean,
            "std_s": result.std,
            "times_s": result.times_s,
            "flop": flops,
            "gflops_per_s": flops / result.median / 1e9,
            "onnxruntime_s": beside and beside.peer_s,
            "beside_onnxruntime_s": beside and beside.ours_s,
            "onnxruntime_error": beside and (beside.refused or None),
        }
        print(json.dumps(report))
        return 0
    rows = [
        ("latency", f"{result} ({len(result.times_s)} repeats of {result.number} runs)"),
        ("speed", f"{flops / result.median / 1e9:.1f} GFLOP/s"),
    ]
    if beside is not None:
        rows.append(("peer", str(beside)))
    print(f"{printable(repr(net))}\n{table(rows)}")
    return 0


def _beside(options: argparse.Namespace, net: CompiledNetwork, executor: Executor) -> Comparison | None:
    """onnxruntime on the same model and inputs; None where it cannot be asked."""
    if Path(options.model).suffix != ".onnx":
        return None
    cores = _cores(net.plan.target)
    if cores is None:
        return None
    feeds = drawn(net.plan.inputs, seed=0)
    executor.set_input(**feeds)
    feeds |= read_arrays(options.constant, "--constant")
    return compare(executor.run, options.model, feeds, cores, options.repeat, options.min_repeat_ms or _PEER_MS)


def _cores(target: str) -> int | None:
    """Return the cores that a target uses; None for one that is no CPU."""
    from ..backends.targets import resolve_target

    found = resolve_target(target)
    return None if found.is_gpu else found.cores
