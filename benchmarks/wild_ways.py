"""Ways in which a model of PyTorch's becomes ours, and the peers that it is timed beside."""

from __future__ import annotations

import argparse
import copy
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from in_onnxruntime import session_of

Tensors = list[Any]
Row = dict[str, Any]
Made = tuple[Callable[..., Any], Callable[[], Row]]
"""A function of tensors, and what describes it."""
Peer = tuple[Callable[[], object], float]
"""A call, and the seconds that the first one took."""


def threads_of(options: argparse.Namespace) -> int:
    """Number of threads of both sides on a CPU."""
    return options.threads or len(os.sched_getaffinity(0))


def target_of(options: argparse.Namespace) -> str:
    """Text of the target that is ours."""
    if options.device == "cuda":
        return "cuda"
    return f"llvm cores={options.threads}" if options.threads else "llvm"


def _inductor(model: Any, inputs: Sequence[Any], options: argparse.Namespace) -> Peer:
    """Compile a model by PyTorch's own backend of `torch.compile`."""
    import torch

    run = torch.compile(model, backend="inductor")
    return lambda: run(*inputs), _first_s(run, inputs, 1)


def _inductor_replayed(model: Any, inputs: Sequence[Any], options: argparse.Namespace) -> Peer:
    """Compile a model by PyTorch's own backend, with CUDA graphs: the second call captures them."""
    import torch

    run = torch.compile(model, mode="reduce-overhead")
    return lambda: run(*inputs), _first_s(run, inputs, 3)


def _first_s(run: Callable[..., object], inputs: Sequence[Any], calls: int) -> float:
    """Seconds of the first calls of what PyTorch's own backend compiles, whose processes end then."""
    from torch._inductor.async_compile import shutdown_compile_workers

    start_s = time.perf_counter()
    for _ in range(calls):
        run(*inputs)
    taken_s = time.perf_counter() - start_s
    shutdown_compile_workers()
    return taken_s


def _onnxruntime(model: Any, inputs: Sequence[Any], options: argparse.Namespace) -> Peer:
    """Export a model for onnxruntime, on a CPU; the seconds are with those of the export."""
    start_s = time.perf_counter()
    call = session_of(model, inputs, threads_of(options))
    call()
    return call, time.perf_counter() - start_s


def _replayed(model: Any, inputs: Sequence[Any], options: argparse.Namespace) -> Peer:
    """Capture eager PyTorch in a CUDA graph; convolutions of images in the layout that PyTorch computes fastest."""
    import torch
    from torch_cuda import captured

    start_s = time.perf_counter()
    if any(isinstance(module, torch.nn.Conv2d) for module in model.modules()):
        model = copy.deepcopy(model).to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.ndim == 4 else x for x in inputs]
    replay = captured(torch, lambda: model(*inputs))
    replay()

    def call(held: object = (model, inputs)) -> object:
        """Replay a graph, which itself does not keep the copies that it reads."""
        return replay()

    return call, time.perf_counter() - start_s


PEERS: dict[str, Callable[[Any, Sequence[Any], argparse.Namespace], Peer]] = {
    "inductor": _inductor,
    "inductor_replayed": _inductor_replayed,
    "onnxruntime": _onnxruntime,
    "replayed": _replayed,
}


def _by_compile(model: Any, inputs: Sequence[Any], target: str) -> Made:
    import torch

    import loopwright as lw

    def described() -> Row:
        found = lw.torch.explain(model, *inputs)
        return {
            "flops": found.flops_share,
            "regions": sum(len(graph.regions) for graph in found.graphs),
            "breaks": sum(found.breaks.values()),
            "stays": {f"{name}: {why}": n for (name, why), n in found.stays.items()},
        }

    return torch.compile(model, backend=lw.torch.backend, options={"target": target}), described


def _by_export(model: Any, inputs: Sequence[Any], target: str) -> Made:
    import torch

    import loopwright as lw

    return _network(lw.from_exported(torch.export.export(model, tuple(inputs))), target)


def _by_onnx(model: Any, inputs: Sequence[Any], target: str) -> Made:
    import torch

    import loopwright as lw

    try:
        program = torch.onnx.export(model, tuple(inputs), dynamo=True, verbose=False)
    except torch.onnx.errors.OnnxExporterError:  # of an operator without a form in ONNX, but with one in core ATen
        exported = torch.export.export(model, tuple(inputs)).run_decompositions()
        program = torch.onnx.export(exported, tuple(inputs), dynamo=True, verbose=False)
    return _network(lw.from_onnx(program.model_proto), target)


def _network(net: Any, target: str) -> Made:
    """A network as a function of tensors, by way of arrays."""
    import torch

    import loopwright as lw

    compiled = lw.compile(net, target)
    executor = compiled.executor()
    device = "cuda" if target.startswith("cuda") else "cpu"

    def run(*tensors: Any) -> Tensors:
        for k, tensor in enumerate(tensors):
            executor.set_input(k, tensor.cpu().numpy())
        executor.run()
        return [torch.from_numpy(executor.get_output(k)).to(device) for k in range(len(executor.output_names))]

    return run, lambda: {"flops": 1.0, "regions": len(compiled.plan.steps)}


def _by_peer(peer: str, model: Any, inputs: Sequence[Any], _: str) -> Made:
    """A peer in the place of ours, in processes of its own: those of PyTorch's that take other inputs."""
    import torch

    mode = "reduce-overhead" if peer == "inductor_replayed" else None
    run = torch.compile(model, mode=mode)
    for _ in range(3 if mode else 1):
        run(*inputs)
    return run, dict


WAYS = {
    "torch.compile": _by_compile,
    "export": _by_export,
    "onnx": _by_onnx,
    "inductor": partial(_by_peer, "inductor"),
    "inductor_replayed": partial(_by_peer, "inductor_replayed"),
}
