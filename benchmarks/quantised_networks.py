"""Quantised networks on this CPU: ours beside onnxruntime's of the same QDQ model, and ours in float32.

Networks have random weights and are quantised by onnxruntime's quantiser, with weights of int8 for each channel and
data of uint8; nothing is tuned. Times are CPU milliseconds of one thread, medians of rounds in which all take turns, so
that other work on the machine counts little. `apart` is the largest difference from onnxruntime's results operator by
operator, as a share of the largest value.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import onnxruntime
from onnx import ModelProto
from quantised_models import as_written, bert, inputs_of, mobilenet_v2, quantised, quantised_in_each_run, resnet50
from rounds import in_turn
from without_tiles import without_tiles

import loopwright as lw
from loopwright.dialects.target import Target
from loopwright.graph.chosen_schedules import UntunedWarning

MODELS: dict[str, Callable[[], tuple[ModelProto, ModelProto]]] = {
    "resnet50": lambda: _both(resnet50()),
    "mobilenet_v2": lambda: _both(mobilenet_v2()),
    "bert, 2 layers": lambda: _both(bert(2)),
    "bert, 2 layers, quantised in each run": lambda: (bert(2), quantised_in_each_run(bert(2))),
}
"""Name -> the model in float32, and quantised."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--without-amx", action="store_true", help="refuse it to both sides, which take AVX512-VNNI")
    parser.add_argument("--processes", type=int, default=1, help="that compile our kernels")
    options = parser.parse_args()
    target = lw.resolve_target("llvm cores=1")
    if options.without_amx:
        target = without_tiles(target)
    warnings.simplefilter("ignore", UntunedWarning)
    print(f"onnxruntime {onnxruntime.__version__}, {target}, one thread, batch 1\n")
    heads = ("model", "int8 ms", "float32 ms", "onnxruntime int8 ms", "onnxruntime float32 ms")
    heads += ("float32 / int8", "onnxruntime int8 / ours", "apart", "onnxruntime's apart", "kernels", "compile s")
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), flush=True)
    for name in options.models or MODELS:
        print("| " + " | ".join((name, *_measured(MODELS[name], target, options))) + " |", flush=True)


def _both(plain: ModelProto) -> tuple[ModelProto, ModelProto]:
    return plain, quantised(plain)


def _measured(
    make: Callable[[], tuple[ModelProto, ModelProto]], target: Target, options: argparse.Namespace
) -> tuple[str, ...]:
    plain, bytes_ = make()
    feeds = inputs_of(plain)
    start_s = time.perf_counter()
    compiled = lw.compile(lw.from_onnx(bytes_), target, processes=options.processes)
    compile_s = time.perf_counter() - start_s
    ours = {"int8": compiled.executor()}
    ours["float32"] = lw.compile(lw.from_onnx(plain), target, processes=options.processes).executor()
    for executor in ours.values():
        executor.set_input("x", feeds["x"])
    peers = {f"peer {name}": _session(proto) for name, proto in (("int8", bytes_), ("float32", plain))}
    calls: dict[str, Callable[[], Any]] = {name: executor.run for name, executor in ours.items()}
    calls |= {name: lambda session=session: session.run(None, feeds) for name, session in peers.items()}
    times_s = in_turn(calls, options.rounds, time.thread_time, pause_s=0.0)
    (wanted,) = as_written(bytes_, feeds)
    largest = float(np.abs(wanted).max())
    apart = float(np.abs(ours["int8"].get_output(0) - wanted).max()) / largest
    peers_apart = float(np.abs(peers["peer int8"].run(None, feeds)[0] - wanted).max()) / largest
    return (
        *(f"{times_s[name] * 1e3:.1f}" for name in ("int8", "float32", "peer int8", "peer float32")),
        f"{times_s['float32'] / times_s['int8']:.2f}",
        f"{times_s['peer int8'] / times_s['int8']:.2f}",
        f"{apart:.1e}",
        f"{peers_apart:.1e}",
        f"{len(compiled.plan.steps)} ({len(compiled.kernels)} distinct)",
        f"{compile_s:.0f}",
    )


def _session(proto: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main()
