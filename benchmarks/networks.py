"""Compare whole networks with PyTorch (and onnxruntime on a CPU) in one run: tune, check, time in turn, write a table.

Tuning goes on from the records that are there; `--trials 0` only compiles and times. On CUDA both sides are replayed
as graphs, fp32 with TF32 off; on a CPU both use the same threads. The figures are medians of rounds in turn; the ratio
is the faster peer's time over ours (above 1: we are faster).
"""

from __future__ import annotations

import argparse
import datetime
import inspect
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gpu import graphed
from onnx_export import to_onnx
from rounds import POOL_PAUSE_S, Timer, calls_by_clock, medians_in_turn
from tables import table_lines

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.target import Target
from loopwright.search.measure.backend_api import backend_path, load_backend
from loopwright.testing.pytorch import TorchNetwork

CALLS_A_GRAPH = 10

AT_LEAST_S = 0.05
"""Seconds of calls on a CPU that one timing is of."""
"""Returns the seconds of one run of a network."""


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds."""

    name: str
    ours_s: float
    default_s: float | None
    peers_s: dict[str, float]
    flops: int
    tasks: int
    trials: int
    tuning_s: float
    error: float

    @property
    def ratio(self) -> float:
        return min(self.peers_s.values()) / self.ours_s


def main() -> None:
    options = _options()
    import torch

    target = resolve_target(options.target)
    if target.kind == "llvm":
        torch.set_num_threads(target.cores)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    rows: list[Row] = []
    for name in options.network:
        try:
            rows.append(_compare(name, target, options, torch))
            print(_line(rows[-1], options.peers), flush=True)
        except Exception as error:  # one network must not cost the others their device time
            traceback.print_exc()
            print(f"| {name} | failed: {type(error).__name__}: {str(error)[:500]} |", flush=True)
        if options.output and rows:
            Path(options.output).write_text(_table(rows, target, options, torch.__version__))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="llvm", help="llvm, llvm cores=1, cuda, opencl")
    parser.add_argument("--network", nargs="+", default=["resnet-18", "mobilenet"], choices=list(lw.testing.NETWORKS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layout", default="NHWC", choices=["NCHW", "NHWC"], help="of ours; peers take what they like")
    parser.add_argument("--image", type=int, help="pixels a side, instead of the network's own")
    parser.add_argument("--width", type=float, help="factor of channels, to try things out")
    parser.add_argument("--records", default="benchmarks/records", help="folder of record files, one a network")
    parser.add_argument("--trials", type=int, help="of a whole network, with those on record (default: 64 a task)")
    parser.add_argument("--limit-s", type=float, help="seconds of tuning a network, at most")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--default", action="store_true", help="time the default schedules too")
    parser.add_argument("--peers", nargs="+", help="torch, ort (default: both on a CPU, torch on a GPU)")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    if options.peers is None:
        options.peers = ["torch", "ort"] if options.target.startswith("llvm") else ["torch"]
    return options


def _compare(name: str, target: Target, options: argparse.Namespace, torch: Any) -> Row:
    known = inspect.signature(lw.testing.NETWORKS[name]).parameters
    sizes = {k: getattr(options, k) for k in ("image", "width") if k in known and getattr(options, k) is not None}
    layout = "NCHW" if name == "dcgan" else options.layout
    net = lw.testing.network(name, batch=options.batch, layout=layout, **sizes)
    first = lw.testing.network(name, batch=options.batch, layout="NCHW", **sizes)
    tasks, weights = lw.extract_tasks(net, target)
    folder = Path(options.records)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{layout}-B{options.batch}-{target.kind}.jsonl"
    start_s = time.perf_counter()
    trials = _tune(tasks, weights, path, options)
    tuning_s = time.perf_counter() - start_s
    compiled = lw.compile(net, target, records=path if path.exists() else None)
    executor = compiled.executor()
    feeds = {
        n: np.random.default_rng(k).standard_normal(v.shape).astype(v.dtype)
        for k, (n, v) in enumerate(first.inputs.items())
    }
    peers = {kind: _PEERS[kind](first, net, feeds, target, torch) for kind in options.peers}
    executor.set_input(**{n: _in_layout(a, net.inputs[n].shape) for n, a in feeds.items()})
    executor.run()
    want = TorchNetwork(first).run(feeds)
    error = max(_error(executor.get_output(k), w) for k, w in enumerate(want))
    timers: dict[str, Timer] = {"ours": _ours(executor, target), **peers}
    if options.default:
        plain = lw.compile(net, target).executor()
        plain.benchmark(repeat=1, min_repeat_ms=1)
        timers["default"] = _ours(plain, target)
    times_s = medians_in_turn(timers, options.rounds, POOL_PAUSE_S if target.kind == "llvm" else 0.0)
    if options.profile:
        print(executor.profile())
    return Row(
        name,
        times_s["ours"],
        times_s.get("default"),
        {kind: times_s[kind] for kind in options.peers},
        compiled.plan.flops,
        len(tasks),
        trials,
        tuning_s,
        error,
    )


def _tune(tasks: Sequence[lw.SearchTask], weights: Sequence[int], path: Path, options: argparse.Namespace) -> int:
    """Tune from where the records end; returns the trials on record."""
    trials = 64 * len(tasks) if options.trials is None else options.trials
    if not trials:
        return 0
    scheduler = lw.TaskScheduler(tasks, weights, load_records=path)
    tuning = lw.TuningOptions(num_measure_trials=trials, time_limit_s=options.limit_s, batch_size=options.batch_size)
    return scheduler.tune(tuning).state.done


def _in_layout(array: Any, shape: tuple[int, ...]) -> Any:
    return array if array.shape == shape else np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _error(got: Any, want: Any) -> float:
    """The largest deviation, in units of the largest value; refuses what is not the same function."""
    same = got if got.shape == want.shape else np.moveaxis(got, -1, 1)
    error = float(np.abs(same - want).max() / max(np.abs(want).max(), 1e-30))
    if not error < 1e-3:
        raise ValueError(f"the output is off by {error:.1e} of the largest value")
    return error


def _ours(executor: Any, target: Target) -> Timer:
    if target.kind == "llvm":
        return calls_by_clock(executor.run, time.perf_counter, AT_LEAST_S)
    return lambda: float(executor.benchmark(repeat=1, min_repeat_ms=20).median)


def _torch_peer(first: lw.Network, net: lw.Network, feeds: dict[str, Any], target: Target, torch: Any) -> Timer:
    """PyTorch in the better of both layouts, as layer calls; on CUDA as a graph."""
    device = "cuda" if target.kind == "cuda" else "cpu"
    found = []
    for version in [first] if first is net else [first, net]:
        model = TorchNetwork(version, device)
        tensors = [model.tensor(_in_layout(feeds[n], v.shape)) for n, v in version.inputs.items()]
        with torch.inference_mode():
            call = partial(model, *tensors)
            found.append(graphed(torch, call, CALLS_A_GRAPH) if device == "cuda" else _inferred(torch, model, tensors))
    quick = [min(timer() for _ in range(3)) for timer in found]
    return found[quick.index(min(quick))]


def _inferred(torch: Any, model: TorchNetwork, tensors: list[Any]) -> Timer:
    def call() -> None:
        with torch.inference_mode():
            model(*tensors)

    return calls_by_clock(call, time.perf_counter, AT_LEAST_S)


def _ort_peer(first: lw.Network, net: lw.Network, feeds: dict[str, Any], target: Target, torch: Any) -> Timer:
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = target.cores
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    model = to_onnx(first).SerializeToString()
    session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    for got, want in zip(session.run(None, feeds), TorchNetwork(first).run(feeds), strict=True):
        _error(got, want)
    return calls_by_clock(lambda: session.run(None, feeds), time.perf_counter, AT_LEAST_S)


_PEERS: dict[str, Callable[..., Timer]] = {"torch": _torch_peer, "ort": _ort_peer}


def _line(row: Row, peers: Sequence[str]) -> str:
    default = "-" if row.default_s is None else f"{row.default_s * 1e3:.3f}"
    others = " | ".join(f"{row.peers_s[kind] * 1e3:.3f}" for kind in peers)
    return (
        f"| {row.name} | {row.ours_s * 1e3:.3f} | {default} | {others} | {row.ratio:.2f}x "
        f"| {row.flops / row.ours_s / 1e9:.0f} | {row.tasks} | {row.trials} | {row.tuning_s:.0f} | {row.error:.0e} |"
    )


def _table(rows: Sequence[Row], target: Target, options: argparse.Namespace, torch_version: str) -> str:
    device = load_backend(backend_path(target.kind)).device_name()
    names = {"torch": "PyTorch (ms)", "ort": "onnxruntime (ms)"}
    others = " | ".join(names[kind] for kind in options.peers)
    heading = (
        f"| network | ours (ms) | untuned (ms) | {others} | ratio | GFLOP/s | tasks | trials | tuning (s) | error |"
    )
    threads = f", {target.cores} threads" if target.kind == "llvm" else ", both replayed as graphs"
    lines = [
        f"# Networks on {device}",
        "",
        f"{datetime.date.today()}, batch {options.batch}, fp32 (TF32 off){threads}, loopwright {lw.__version__}, "
        f"PyTorch {torch_version}.",
        "",
        "Medians of rounds in turn; ratio = the faster peer's time / ours; error = largest deviation from PyTorch, in",
        "units of the largest value; trials are all on record, tuning is the time of this run.",
        "",
        *table_lines(heading, (_line(row, options.peers) for row in rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
