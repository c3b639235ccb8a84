"""Time a network from input to output, beside onnxruntime on the same model where it is installed."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from ._network import add_compile_options, as_json, compiled_network
from ._report import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    parser.add_argument("--min-repeat-ms", type=float, default=500.0, help="length of a repeat (default: 500)")
    parser.add_argument("--repeat", type=int, default=3, help="repeats (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="leave onnxruntime out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    net = compiled_network(options)
    result = net.executor().benchmark(repeat=max(1, options.repeat), min_repeat_ms=options.min_repeat_ms)
    flops = sum(net.kernels[step.kernel].flops for step in net.plan.steps)
    peer_s = None if options.no_peer else _peer(options, _cores(net.plan.target))
    if options.json:
        report = {
            **as_json(net),
            "median_s": result.median,
            "mean_s": result.mean,
            "std_s": result.std,
            "times_s": result.times_s,
            "flop": flops,
            "gflops_per_s": flops / result.median / 1e9,
            "onnxruntime_s": peer_s,
        }
        print(json.dumps(report))
        return 0
    rows = [
        ("latency", f"{result} ({len(result.times_s)} repeats of {result.number} runs)"),
        ("speed", f"{flops / result.median / 1e9:.1f} GFLOP/s"),
    ]
    if peer_s is not None:
        rows.append(("peer", f"onnxruntime {peer_s * 1e3:.4f} ms; this takes {result.median / peer_s:.2f} of its time"))
    print(f"{net!r}\n{table(rows)}")
    return 0


def _cores(target: str) -> int | None:
    """The cores that a target uses; None for one that is no CPU."""
    from ..search.task import resolve_target

    found = resolve_target(target)
    return None if found.is_gpu else found.cores


def _peer(options: argparse.Namespace, cores: int | None) -> float | None:
    """The median seconds of onnxruntime on the same model and as many threads; None where it cannot be asked."""
    if Path(options.model).suffix != ".onnx" or cores is None:
        return None
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = cores
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    from ._network import _shapes

    feeds = _random_feeds(session, _shapes(options.input_shape))
    session.run(None, feeds)
    times_s: list[float] = []
    while len(times_s) < 3 or sum(times_s) < max(1, options.repeat) * options.min_repeat_ms / 1e3:
        start_s = time.perf_counter()
        session.run(None, feeds)
        times_s.append(time.perf_counter() - start_s)
    return sorted(times_s)[len(times_s) // 2]


def _random_feeds(session: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    types = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
    rng = np.random.default_rng(0)
    feeds = {}
    for info in session.get_inputs():
        shape = shapes.get(info.name, info.shape)
        if info.type in types:
            feeds[info.name] = rng.standard_normal(shape).astype(types[info.type])
        else:
            feeds[info.name] = rng.integers(0, 2, shape).astype(info.type.removeprefix("tensor(").removesuffix(")"))
    return feeds
