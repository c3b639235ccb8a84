"""Networks that nobody here wrote, untuned, beside PyTorch: are the results right, how much of them is ours, how fast.

    python benchmarks/models_in_the_wild.py tv_ hf_ --sizes real --peers inductor --output wild.jsonl

Each model (`wild_models.py`; names or beginnings of names choose some) runs in a process of its own, with an empty
cache and a limit of time, from random weights. Results are a line of JSON each, and a table at the end; a file that is
there is gone on with, and the last line of a model counts. `error` is the largest deviation from eager PyTorch in fp32
(TF32 off) over the largest value of that output, on inputs that the model was not compiled for; more than 1e-3 is
wrong, since networks of 50 layers on random weights leave 2e-4 between PyTorch and onnxruntime. With `--dtype` weights
and inputs of both sides are of a 16-bit type, and the deviation is still that from fp32. `FLOPs` is the share of matrix
products and convolutions in our kernels (`lw.torch.explain`); regions are parts of PyTorch's graphs. Programs of
torch.export and ONNX are ours as a whole, and `regions` are kernels. Milliseconds are medians of rounds in turn, on
CUDA devices between events; `first` is the seconds until the first result is there, while so many others compile as
`--jobs` says; nothing compiles while a model is timed. With `--cores` each compiles on so many of its own. With
`--at-once` all compile, as many at once as `--jobs`, and each is timed when it is ready, while others compile: on a CPU
on its own `--cores`, beside others that are timed; on a CUDA device one at a time, and, but for `--once`, again when
nothing compiles any more: until then each holds its memory, and figures are left where time ends. With `--unexplained`
regions and FLOPs are not counted, which takes another trace. The peer `replayed`, eager PyTorch in a CUDA graph, is
compared with a CUDA graph of ours, since a call's cost to the host is in neither. With `--steps` rows of the file have
the kernels that take longest.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rounds import PAUSE_S, POOL_PAUSE_S, Timer, in_turn, medians_in_turn
from wild_ways import PEERS, WAYS, Row, Tensors, target_of, threads_of

TOLERANCE = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
"""Of the largest value of an output, in each type; twice what eager PyTorch deviates by in that type is right, too."""
LEAST_CHANGE = 1e-3
"""Outputs that change less with the inputs, as a part of the largest value, say nothing about what computed them."""

COMPILED = "compiled"
"""The status of a row that is not timed yet."""


def main() -> int:
    options = _options()
    if options.worker:
        for row in measured(options.models[0], options):
            print(json.dumps(row), flush=True)
        return 0
    from wild_models import MODELS

    wanted = options.models or [""]
    chosen = list(dict.fromkeys(name for start in wanted for name in MODELS if name.startswith(start)))
    done = _read(options.output, options)
    left = [name for name in chosen if name not in done]
    together = max(1, len(left)) if options.at_once else options.jobs
    for start in range(0, len(left), together):  # nothing may start to compile while another is timed
        for row in _of_several(left[start : start + together], options):
            done[row["model"]] = row
            print(_line(row), flush=True)
            if options.output:
                with Path(options.output).open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(_table([done[name] for name in chosen], options))
    return int(any(done[name]["status"] != "right" for name in chosen))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names, or beginnings of names (default: all)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sizes", choices=["small", "real"], default="small", help="of images, texts and depth")
    parser.add_argument("--via", choices=list(WAYS), default="torch.compile")
    parser.add_argument("--dtype", choices=list(TOLERANCE), default="float32", help="of weights and inputs")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=[])
    parser.add_argument("--threads", type=int, help="of all, on a CPU (default: the CPUs that are allowed)")
    parser.add_argument("--cpu-time", action="store_true", help="time by the CPU's seconds, of one thread")
    parser.add_argument("--limit-s", type=float, default=120, help="until a model is compiled; it is ended then")
    parser.add_argument("--jobs", type=int, default=1, help="compile so many models at once, then time each alone")
    parser.add_argument("--cores", type=int, default=0, help="of each that compiles (default: all)")
    parser.add_argument("--at-once", action="store_true", help="compile all, time each when it is ready, and again")
    parser.add_argument("--once", action="store_true", help="with --at-once, on a CUDA device: time no model again")
    parser.add_argument("--unexplained", action="store_true", help="count neither regions nor FLOPs")
    parser.add_argument("--steps", type=int, default=0, help="so many of each model's longest kernels, in the file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", help="a file of JSON lines, which is gone on with")
    parser.add_argument("--worker", metavar="FILE", help=argparse.SUPPRESS)  # which is locked to time
    return parser.parse_args()


def _read(path: str | None, options: argparse.Namespace) -> dict[str, Row]:
    """The rows of a file that were measured in the way that is asked for, by model."""
    if not path or not Path(path).exists():
        return {}
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    wanted = _way(options)
    return {row["model"]: row for row in rows if {"dtype": "float32", **row}.items() >= wanted.items()}


def _way(options: argparse.Namespace) -> Row:
    """Columns that tell apart rows of one model."""
    return {"device": options.device, "sizes": options.sizes, "via": options.via, "dtype": options.dtype}


def _of_several(names: Sequence[str], options: argparse.Namespace) -> Iterator[Row]:
    """Rows of models in processes of their own, as they come: two of each that is timed `at_once` and again.

    A file is locked together by all who compile, and by one process alone that is timed when nothing compiles.
    """
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(options.jobs):
        slots.put(number)
    rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
    with tempfile.NamedTemporaryFile() as turn, ThreadPoolExecutor(len(names)) as pool:
        fcntl.flock(turn, fcntl.LOCK_SH)
        compiling, lock = [len(names)], threading.Lock()

        def follow(name: str) -> None:
            number, is_compiling = slots.get(), True
            for row in _in_a_process(name, options, turn.name, number):
                if row["status"] != COMPILED:
                    rows.put(row)
                if is_compiling:
                    is_compiling = False
                    slots.put(number)
                    with lock:
                        compiling[0] -= 1
                        if not compiling[0]:
                            fcntl.flock(turn, fcntl.LOCK_UN)
            rows.put(None)

        for name in names:
            pool.submit(follow, name)
        ended = 0
        while ended < len(names):
            row = rows.get()
            ended += row is None
            if row is not None:
                yield row
        Path(f"{turn.name}.timed").unlink(missing_ok=True)


def _in_a_process(name: str, options: argparse.Namespace, turn: str, number: int) -> Iterator[Row]:
    """Rows of a model in a process of its own, in a slot by `number`: when it is compiled, and when it has ended."""
    row = {"model": name, **_way(options)}
    is_late = threading.Event()
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as said:
        ours = {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
        command = _command(name, options, turn, number)
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env={**os.environ, **ours})

        def end() -> None:
            is_late.set()
            worker.kill()

        timer = threading.Timer(options.limit_s, end)
        timer.start()
        last = None
        for line in worker.stdout or ():
            if line.startswith("{"):
                timer.cancel()  # what waits for the others to be compiled is not late
                last = json.loads(line)
                yield {**row, **last}
        status = worker.wait()
        if last is None or (status and not last.get("quiet")):
            said.seek(0)
            words = said.read().strip().splitlines() or ["no word"]
            late = {"status": "too slow", "why": f"not done after {options.limit_s:.0f} s"}
            what = next((line for line in words if "what():" in line), words[-1])[:400]
            yield {**row, **(late if is_late.is_set() else {"status": "failed", "why": f"{status}: {what}"})}


def _command(name: str, options: argparse.Namespace, turn: str, number: int) -> list[str]:
    command = [sys.executable, __file__, name, "--worker", turn, "--device", options.device, "--sizes", options.sizes]
    command += ["--via", options.via, "--rounds", str(options.rounds), "--dtype", options.dtype]
    command += ["--steps", str(options.steps), "--peers", *options.peers]
    command += ["--threads", str(options.threads)] if options.threads else []
    flags = {"--cpu-time": options.cpu_time, "--unexplained": options.unexplained, "--at-once": options.at_once}
    flags["--once"] = options.once
    command += [flag for flag, is_set in flags.items() if is_set]
    if options.cores:
        all_cores = sorted(os.sched_getaffinity(0))
        own = {all_cores[(number * options.cores + k) % len(all_cores)] for k in range(options.cores)}
        command = ["taskset", "-c", ",".join(map(str, sorted(own))), *command]
    return command


# -- one model --------------------------------------------------------------------------------------------------------


def measured(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a model: when it is compiled and compared, with `at_once` with times; and when it is timed alone."""
    import torch

    turn = os.open(options.worker, os.O_RDONLY)  # closed, and so unlocked, by the end of the process
    fcntl.flock(turn, fcntl.LOCK_SH)
    torch.set_num_threads(threads_of(options))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch._dynamo.config.allow_rnn = True  # otherwise nn.LSTM and nn.GRU stay out of graphs
    with torch.no_grad():
        row, functions = _compiled(name, options)
        if not functions:
            yield row
        elif options.at_once:
            with Path(f"{options.worker}.timed").open("w") as one:
                if options.device == "cuda":  # where all have cores of their own, and one device
                    fcntl.flock(one, fcntl.LOCK_EX)
                timed = _timed(functions, options)
            yield {**row, **timed, "quiet": False}
        else:
            yield {**row, "status": COMPILED}
        if functions and not (options.at_once and (options.once or options.device == "cpu")):
            fcntl.flock(turn, fcntl.LOCK_UN)
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield {**row, **_timed(functions, options), "quiet": True}


def _compiled(name: str, options: argparse.Namespace) -> tuple[Row, dict[str, Callable[[], object]]]:
    """Compile and compare a model: its row, and what is to be timed."""
    import torch
    from torch_cuda import captured
    from wild_models import built, other_inputs

    model, inputs = built(name, options.sizes == "small")
    model, inputs = model.to(options.device), [x.to(options.device) for x in inputs]
    others = other_inputs(inputs)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        first, wanted = _flat(model(*inputs)), _flat(model(*others))
        change = _error(first, wanted)
        if change < LEAST_CHANGE:
            return {"status": "failed", "why": f"the outputs change by {change:.0e} with the inputs"}, {}
        dtype = getattr(torch, options.dtype)
        model, inputs, others = model.to(dtype), _cast(inputs, dtype), _cast(others, dtype)
        eager_error = _error(_flat(model(*others)), wanted)
        start_s = time.perf_counter()
        try:
            run, described = WAYS[options.via](model, inputs, target_of(options))
            run(*inputs)
        except Exception as error:  # of compilers that take all there is: a row of the table
            return {"status": "failed", "why": f"{type(error).__name__}: {error}"[:600]}, {}
        first_s = time.perf_counter() - start_s
        error = _error(_flat(run(*others)), wanted)
        right = error < max(TOLERANCE[options.dtype], 2 * eager_error)
        row = {"status": "right" if right else "wrong", "error": error, "eager_error": eager_error, "first_s": first_s}
        if not options.unexplained:
            row |= described()
        if options.steps:
            row["steps"] = _longest_steps(options.steps)
        functions = {"eager_ms": lambda: model(*inputs), "ours_ms": lambda: run(*inputs)}
        for peer in options.peers:
            try:
                functions[f"{peer}_ms"], row[f"{peer}_first_s"] = PEERS[peer](model, inputs, options)
                if peer == "replayed":
                    functions["ours_replayed_ms"] = captured(torch, functions["ours_ms"])
            except Exception as error:  # the model is still ours to time
                row[f"{peer}_failed"] = f"{type(error).__name__}: {error}"[:300]
    left = sorted({str(w.message)[:300] for w in said if "runs in PyTorch" in str(w.message)})
    return ({**row, "left": left} if left else row), functions


def _longest_steps(count: int) -> list[tuple[str, str, float]]:
    """Names, operators and microseconds of the longest steps of all regions that there are."""
    from loopwright.frontends.torch.region import Region

    regions = [each for each in gc.get_objects() if type(each) is Region]
    rows = [row for each in regions if each.compiled for row in each.compiled.executor().profile().rows]
    gc.collect()  # what executors hold must not be freed while a graph is captured
    longest = sorted(rows, key=lambda row: -row.time_s)[:count]
    return [(row.label, row.kernel.label, round(row.time_s * 1e6, 2)) for row in longest]


def _cast(tensors: Sequence[Any], dtype: Any) -> Tensors:
    return [x.to(dtype) if x.is_floating_point() else x for x in tensors]


def _timed(functions: Mapping[str, Callable[[], object]], options: argparse.Namespace) -> Row:
    """Milliseconds of functions in turn."""
    if options.device == "cuda":
        timers = {name: _by_events(call) for name, call in functions.items()}
        return _milliseconds(medians_in_turn(timers, options.rounds))
    for warm in functions.values():
        warm()
    clock = time.process_time if options.cpu_time else time.perf_counter
    pause_s = POOL_PAUSE_S if "onnxruntime" in options.peers else PAUSE_S
    return _milliseconds(in_turn(functions, options.rounds, clock, pause_s))


def _milliseconds(times_s: Mapping[str, float]) -> Row:
    return {name: time_s * 1e3 for name, time_s in times_s.items()}


def _by_events(call: Callable[[], object]) -> Timer:
    """A timer of a call on an idle device, between events, behind a call that is not timed."""
    import torch

    def timed() -> float:
        call()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    return timed


def _flat(results: Any) -> Tensors:
    """The tensors of a result, in order."""
    from torch.utils._pytree import tree_leaves

    return [each.detach().clone() for each in tree_leaves(results) if hasattr(each, "detach")]


def _error(found: Tensors, wanted: Tensors) -> float:
    """The largest deviation of any output."""
    return max(_deviation(a, b) for a, b in zip(found, wanted, strict=True))


def _deviation(found: Any, wanted: Any) -> float:
    """The largest difference, over the largest value; infinite where shapes differ, or numbers are none."""
    if found.shape != wanted.shape:
        return float("inf")
    if not wanted.numel():
        return 0.0
    worst = (found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp(min=1e-30)
    return float(worst) if worst == worst else float("inf")


# -- the table --------------------------------------------------------------------------------------------------------


def _line(row: Row) -> str:
    if row["status"] in ("failed", "too slow"):
        return f"| {row['model']} | {row['status']}: {row['why'].splitlines()[0][:200]} |"
    peers = [key.removesuffix("_first_s") for key in row if key.endswith("_first_s")]
    times = " | ".join(f"{row[f'{name}_ms']:.2f}" for name in ("eager", "ours", *peers))
    firsts = " | ".join(f"{row[key]:.1f}" for key in ("first_s", *(f"{peer}_first_s" for peer in peers)))
    ours = f"{row['flops']:.1%} | {row['regions']}" if "flops" in row else "|"
    ours_ms = {name: row.get(f"ours_{name}_ms", row["ours_ms"]) for name in ("eager", *peers)}
    ratios = " | ".join(f"{row[f'{name}_ms'] / ours:.2f}x" for name, ours in ours_ms.items())
    return f"| {row['model']} | {row['status']} | {row['error']:.0e} | {ours} | {times} | {ratios} | {firsts} |"


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    peers = [f"{peer} (ms)" for peer in options.peers]
    heads = ["model", "result", "error", "FLOPs", "regions", "eager (ms)", "ours, untuned (ms)", *peers]
    heads += [f"{name} / ours" for name in ("eager", *options.peers)]
    heads += ["first (s)", *(f"{peer}'s first (s)" for peer in options.peers)]
    right = sum(row["status"] == "right" for row in rows)
    lines = [
        f"{right} of {len(rows)} models right, by {options.via}, on {options.device}, {options.sizes} sizes",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *map(_line, rows),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
