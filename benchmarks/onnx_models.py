"""The image networks of the onnx package with random weights: compiled untuned, and compared with onnxruntime.

The error is the largest difference of the outputs before the softmax, over the largest output. With `--records FOLDER`
kernels take their best schedules from `FOLDER/<model>.jsonl`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import onnx
import onnxruntime
from onnx_models import LIGHT, with_random_weights, without_softmax
from rounds import in_turn

import loopwright as lw
from loopwright.graph.chosen_schedules import UntunedWarning


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names, such as resnet50 (default: all)")
    parser.add_argument("--records", type=Path, help="folder with tuned schedules")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UntunedWarning)
    threads = len(os.sched_getaffinity(0))
    names = options.models or sorted(p.stem.removeprefix("light_") for p in LIGHT.glob("*.onnx"))
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, {threads} threads, batch 1")
    heads = ("model", "nodes", "kernels", "import s", "compile s", "error", "ours ms", "ort ms", "ours/ort")
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    wrong = 0
    for name in names:
        cells, error = measure(name, options, threads)
        wrong += not error < 1e-3
        print("| " + " | ".join(cells) + " |", flush=True)
    return 1 if wrong else 0


def measure(name: str, options: argparse.Namespace, threads: int) -> tuple[list[str], float]:
    proto = without_softmax(with_random_weights(onnx.load(LIGHT / f"light_{name}.onnx")))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = threads, 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    feeds = {i.name: np.random.default_rng(1).uniform(0, 1, i.shape).astype(np.float32) for i in session.get_inputs()}
    wanted = session.run(None, feeds)
    start_s = time.perf_counter()
    net = lw.from_onnx(proto)
    imported_s = time.perf_counter()
    records = options.records / f"{name}.jsonl" if options.records else None
    compiled = lw.compile(net, "llvm", records)
    compiled_s = time.perf_counter()
    executor = compiled.executor()
    for key, array in feeds.items():
        executor.set_input(key, array)
    executor.run()
    error = max(
        float(np.abs(executor.get_output(k) - array).max() / np.abs(array).max()) for k, array in enumerate(wanted)
    )
    times_s = in_turn({"ours": executor.run, "ort": lambda: session.run(None, feeds)}, options.rounds)
    ours_s, ort_s = times_s["ours"], times_s["ort"]
    cells = [
        name,
        str(len(proto.graph.node)),
        f"{len(compiled.plan.steps)} ({len(compiled.kernels)} distinct)",
        f"{imported_s - start_s:.1f}",
        f"{compiled_s - imported_s:.1f}",
        f"{error:.1e}",
        f"{ours_s * 1e3:.1f}",
        f"{ort_s * 1e3:.1f}",
        f"{ours_s / ort_s:.2f}",
    ]
    return cells, error


if __name__ == "__main__":
    sys.exit(main())
