"""A random ONNX graph through loopwright beside onnxruntime; where they differ, the smallest part of it that does.

`python tests/support/onnx_trials.py llvm SEED` shows one trial again.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from c_programs import exported_outputs
from onnx import ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator
from random_onnx import Sample, Tensor, differences, random_graph

import loopwright as lw
from loopwright import onnx_backend

Feeds = dict[str, Any]
LAYOUTS = ("auto", "NHWC", "NCHW", None)
POCL = "Portable Computing Language"
_MOST_TEXT = 1500
_REDUCE_S = 40.0
"""So long may the search for a smaller graph take."""


@dataclass(frozen=True)
class Outcome:
    """The end of a trial: `right`, `wrong`, `traceback`, `refused`, or `onnxruntime`, which the standard refutes."""

    kind: str
    text: str = ""
    example: str = ""


def try_graph(kind: str, seed: int, least: int = 10, most: int = 20) -> Outcome:
    """One graph: `kind` is llvm (imported and compiled), library (exported), backend (of ONNX), opencl or cuda."""
    sample = random_graph(seed, least, most)
    call = _caller(kind, seed)
    ended = attempt(call, sample.model, sample.feeds, sample.wanted)
    if ended.kind in ("right", "refused"):
        return ended
    model, ended = smallest(call, sample, ended)
    text = onnx.printer.to_text(model)
    shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
    return Outcome(ended.kind, ended.text, f"{kind} {seed} ({_described(kind, seed)}): {ended.text}\n{shown}")


def _described(kind: str, seed: int) -> str:
    return f"layout {LAYOUTS[seed % 4]}, {1 + seed // 4 % 2} threads" if kind in ("llvm", "library") else kind


def _caller(kind: str, seed: int) -> Callable[[ModelProto, Feeds], Sequence[Any]]:
    device = _opencl_device() if kind == "opencl" else 0
    target = kind if kind in ("opencl", "cuda") else f"llvm cores={1 + seed // 4 % 2}"

    def compiled(model: ModelProto, feeds: Feeds) -> Sequence[Any]:
        net = lw.from_onnx(model, layout=LAYOUTS[seed % len(LAYOUTS)])
        run = lw.compile(net, target, processes=1).executor(device)
        if run.input_names != [info.name for info in model.graph.input]:
            raise AssertionError(f"inputs are {run.input_names}")
        run.run(**feeds)
        return [run.get_output(info.name) for info in model.graph.output]

    def prepared(model: ModelProto, feeds: Feeds) -> Sequence[Any]:
        return onnx_backend.prepare(model, target="llvm cores=2", processes=1).run(feeds)

    def exported(model: ModelProto, feeds: Feeds) -> Sequence[Any]:
        made = lw.compile(lw.from_onnx(model, layout=LAYOUTS[seed % len(LAYOUTS)]), target, processes=1)
        with tempfile.TemporaryDirectory() as folder:
            found = exported_outputs(made, [feeds[port.name] for port in made.plan.inputs], Path(folder))
        by_name = dict(zip([port.name for port in made.plan.outputs], found, strict=True))
        return [by_name[info.name] for info in model.graph.output]

    return {"backend": prepared, "library": exported}.get(kind, compiled)


def _opencl_device() -> int:
    """The number of PoCL's device, if there is one, else of the first."""
    from loopwright.backends.opencl.platform import devices

    names = [device.platform.name for device in devices()]
    return names.index(POCL) if POCL in names else 0


def attempt(
    call: Callable[[ModelProto, Feeds], Sequence[Any]], model: ModelProto, feeds: Feeds, wanted: dict[str, Tensor]
) -> Outcome:
    """Make one call and return its outcome."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = call(model, feeds)
    except lw.OnnxImportError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # whatever it is, it is no sentence
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        return Outcome("traceback", f"{type(error).__name__} at {place}: {str(error)[:400]}")
    wrong = differences(wanted, got)
    if not wrong:
        return Outcome("right")
    name, text = next(iter(wrong.items()))
    if _standard_agrees(model, feeds, wanted, got):
        return Outcome("onnxruntime", f"{name}: {text}")
    return Outcome("wrong", f"{name}: {text}")


def _standard_agrees(model: ModelProto, feeds: Feeds, wanted: dict[str, Tensor], got: Sequence[Any]) -> bool:
    """True where ONNX's reference implementation gives what was got; it is no witness for nodes that it folded."""
    known = {tensor.name for tensor in model.graph.initializer}
    if any(known.issuperset(filter(None, node.input)) for node in model.graph.node):
        return False
    try:
        found = [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds)]
    except Exception:  # it does not know everything, and says so in many ways
        return False
    asked = {
        name: Tensor(name, value, t.other - t.value + value if "float" in t.dtype else value)
        for (name, t), value in zip(wanted.items(), found, strict=True)
        if value.shape == t.shape and value.dtype == t.value.dtype
    }
    return len(asked) == len(wanted) and not differences(asked, got)


def smallest(
    call: Callable[[ModelProto, Feeds], Sequence[Any]], sample: Sample, ended: Outcome
) -> tuple[ModelProto, Outcome]:
    """A part of a graph that ends alike: one output, as early as it may be, and nodes whose results become inputs."""
    graph, deadline_s = sample.graph, time.monotonic() + _REDUCE_S
    kept, outputs, model = list(graph.nodes), list(sample.wanted), sample.model

    def same(nodes: list[NodeProto], names: list[str]) -> bool:
        nonlocal kept, outputs, model, ended
        if not nodes or time.monotonic() > deadline_s:
            return False
        part = graph.model(names, nodes)
        found = attempt(call, part, graph.feeds(part), {n: graph.tensors[n] for n in names})
        if found.kind == ended.kind:
            kept, outputs, model, ended = nodes, names, part, found
        return found.kind == ended.kind

    names = list(outputs)
    if not any(len(names) > 1 and same(_behind(kept, [name]), [name]) for name in names) and ended.kind == "wrong":
        before, ended = ended, Outcome("onnxruntime")  # which the standard contradicts where it knows all nodes
        if not any(same(_behind(kept, [name]), [name]) for name in names):
            ended = before
    for _ in range(2):
        for node in list(kept):
            if node in kept and not set(node.output) & set(outputs):
                same(_behind([n for n in kept if n is not node], outputs), outputs)
    early = [name for node in kept for name in node.output if name in graph.tensors and name not in outputs]
    any(same(_behind(kept, [name]), [name]) for name in early)
    return _at_odds(call, sample, kept) or (model, ended) if ended.kind == "wrong" else (model, ended)


def _at_odds(
    call: Callable[[ModelProto, Feeds], Sequence[Any]], sample: Sample, nodes: Sequence[NodeProto]
) -> tuple[ModelProto, Outcome] | None:
    """The node for which the standard contradicts onnxruntime, where each of the others is right by itself.

    The reference implementation may know this node, though not the ones beside it.
    """
    graph, found = sample.graph, None
    for node in nodes:
        names = [name for name in node.output if name in graph.tensors]
        part = graph.model(names, [node])
        ended = attempt(call, part, graph.feeds(part), {n: graph.tensors[n] for n in names})
        if ended.kind == "onnxruntime":
            found = part, ended
        elif ended.kind != "right":
            return None
    return found


def _behind(nodes: list[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    """The nodes that outputs depend on."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            found.append(node)
            wanted |= set(node.input)
    return found[::-1]


if __name__ == "__main__":
    ended = try_graph(sys.argv[1], int(sys.argv[2]))
    print(ended.kind, ended.text, ended.example, sep="\n")
