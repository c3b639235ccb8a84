"""Networks exported by torch.export, untuned and after a search, beside PyTorch on a CUDA device.

    python benchmarks/exported_networks.py hf_bert_base tv_vit_b_16 --limit-s 120

Models are those of `wild_models.py`, of published sizes, with random weights, in fp32 with TF32 off, or as
`--precision` says (PyTorch's model is then cast to it), with `--batch` images. Untuned is `lw.compile` with no trial,
tuned `lw.optimize` with `--limit-s` seconds for one search without records. All are replayed as CUDA graphs and timed
in turn, medians of the rounds; PyTorch's figure is the faster of its two layouts. `error` is the distance from
PyTorch's output in fp32 on the CPU, over its largest value.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gpu import graphed
from wild_models import built

import loopwright as lw

CALLS_A_GRAPH = 10
DEFAULT = ["hf_bert_base", "tv_vit_b_16", "tv_convnext_tiny", "tv_efficientnet_b0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, help="names of `wild_models.py`")
    parser.add_argument("--limit-s", type=float, default=120.0, help="of each search; 0 for none")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "float16", "bfloat16"))
    parser.add_argument("--batch", type=int, default=1, help="of networks of images")
    parser.add_argument("--small", action="store_true", help="of small sizes, to try this out")
    parser.add_argument("--profile", action="store_true", help="print the time of each kernel")
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    heads = ("network", "untuned (ms)", "tuned (ms)", "untuned / tuned", "PyTorch (ms)", "PyTorch / tuned")
    print(f"| {' | '.join((*heads, 'trials', 'search (s)', 'error'))} |\n|{'---|' * 9}", flush=True)
    for name in options.models:
        try:
            print(_row(torch, name, options), flush=True)
        except Exception as error:  # one network must not cost the others their device time
            print(f"| {name} | {type(error).__name__}: {str(error)[:500]} |", flush=True)


def _row(torch: Any, name: str, options: argparse.Namespace) -> str:
    model, inputs = built(name, options.small)
    if options.batch > 1:
        inputs = tuple(torch.randn(options.batch, *each.shape[1:]) for each in inputs)
    net = lw.from_exported(torch.export.export(model, inputs))
    precision = None if options.precision == "float32" else options.precision
    compiled = [lw.compile(net, "cuda", precision=precision)]
    start_s, trials = time.perf_counter(), 0
    if options.limit_s:
        with tempfile.TemporaryDirectory() as folder:
            records = Path(folder) / "records.jsonl"
            compiled.append(
                lw.optimize(
                    net, "cuda", precision=precision, time_limit_s=options.limit_s, records=records, progress=False
                )
            )
            trials = len(records.read_text().splitlines())
    search_s = time.perf_counter() - start_s
    executors = [each.executor() for each in compiled]
    feeds = dict(zip(executors[0].input_names, (each.numpy() for each in inputs), strict=True))
    for executor in executors:
        executor.set_input(**feeds)
        executor.run()
    with torch.inference_mode():
        want = model(*inputs).numpy()
        timers: list[Callable[[], float]] = [_ours(executor) for executor in executors]
        peers = _peers(torch, model, inputs, options.precision)
        times_s = [[timer() for timer in (*timers, *peers)] for _ in range(options.rounds)]
    medians = [statistics.median(column) for column in zip(*times_s, strict=True)]
    untuned, tuned, peer = medians[0], medians[len(timers) - 1], min(medians[len(timers) :])
    error = float(np.abs(executors[-1].get_output(0) - want).max() / np.abs(want).max())
    if options.profile:
        print(executors[-1].profile())
    return (
        f"| {name} | {untuned * 1e3:.3f} | {tuned * 1e3:.3f} | {untuned / tuned:.2f}x | {peer * 1e3:.3f} "
        f"| {peer / tuned:.2f}x | {trials} | {search_s:.0f} | {error:.0e} |"
    )


def _ours(executor: Any) -> Callable[[], float]:
    return lambda: float(executor.benchmark(repeat=1, min_repeat_ms=20).median)


def _peers(torch: Any, model: Any, inputs: Sequence[Any], precision: str) -> list[Callable[[], float]]:
    """PyTorch in both layouts, where the inputs are images."""
    found = []
    cast = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(precision, torch.float32)
    model = model.to(cast)
    inputs = [each.to(cast) if each.is_floating_point() else each for each in inputs]
    for layout in (torch.contiguous_format, torch.channels_last)[: 1 + (inputs[0].ndim == 4)]:
        there = model.cuda().to(memory_format=layout)
        given = [each.cuda().to(memory_format=layout) if each.ndim == 4 else each.cuda() for each in inputs]
        found.append(graphed(torch, lambda there=there, given=given: there(*given), CALLS_A_GRAPH))
    return found


if __name__ == "__main__":
    main()
