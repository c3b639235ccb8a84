"""One tuned config for all kernels of the same operator and shapes, whatever is fused behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import Parser

from ...backends.context import create_context
from ...dialects.target import Target
from ...dialects.te import ComputeOp
from ...te import create_module
from ..records.file import Record
from ..records.index import History
from ..records.match import same_model
from ..task import SearchTask
from ..workload import ComputeDAG
from .bound import BoundTemplate
from .knobs.knob import ConfigError
from .operator import only_reduction
from .registry import find_template, operators

_REDUCED = re.compile(r"\[([^\]]*\breduce [^\]]*)\]")
"""The axes of a reduction in te-level IR."""


def anchor_hash(dag: ComputeDAG) -> str | None:
    """The hash of a computation's only reduction with all that it reads; None where there is another number of them.

    Inputs count by their order in it and their types, not by name.
    """
    reduction = only_reduction(dag.func.body.block.ops)
    if reduction is None:
        return None
    needed = _read_by(reduction)
    read = [value for op in _within(op for op in dag.func.body.block.ops if op in needed) for value in op.operands]
    inputs = [value for value in dict.fromkeys(read) if value in dag.func.body.block.args]
    block = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for op in dag.func.body.block.ops:
        if op in needed:
            block.add_op(op.clone(values))
    outputs = [values[output] for output in reduction.outputs]
    block.add_op(ReturnOp(*outputs))
    kind = FunctionType.from_lists([value.type for value in inputs], [value.type for value in outputs])
    return sha256(str(FuncOp("anchor", kind, Region(block))).encode()).hexdigest()


def _read_by(reduction: Operation) -> set[Operation]:
    """A stage with those that it reads, directly or not."""
    needed, waiting = {reduction}, [reduction]
    while waiting:
        for op in _within({waiting.pop()}):
            for value in op.operands:
                if isinstance(value.owner, ComputeOp) and value.owner not in needed:
                    needed.add(value.owner)
                    waiting.append(value.owner)
    return needed


def _within(stages: Iterable[Operation]) -> Iterable[Operation]:
    return (op for stage in stages for op in stage.walk())


class RecordedAnchors:
    """The records of templates in some histories by their anchors; those of a model of device when it is asked for."""

    def __init__(self, sources: Iterable[History]) -> None:
        self._sources = tuple(sources)
        self._known: dict[Target, list[tuple[str | None, Record]]] = {}

    def best(self, task: SearchTask) -> tuple[Record, str] | None:
        """The record of the fastest config for the same anchor on a task's model of device, and the task's schedule.

        The first of the histories with one decides; None where there is none, or the task refuses it.
        """
        if task.target not in self._known:
            self._known[task.target] = [
                (_loops_of(record), record) for known in self._sources for record in _right(known.records, task.target)
            ]
        own = _reduced_loops(task.compute_dag.text)
        near = [record for loops, record in self._known[task.target] if None in (own, loops) or own == loops]
        anchor = anchor_hash(task.compute_dag) if near else None
        if anchor is None:
            return None
        found = (record for record in near if _recorded_anchor(record) == anchor)
        adapted = ((record, _adapted(record, task)) for record in found)
        return next(((record, schedule) for record, schedule in adapted if schedule is not None), None)


def _right(records: Iterable[Record], target: Target) -> list[Record]:
    """Right records of templates for a model of device: first those of this very target, then the fastest."""
    right = [r for r in records if r.ok and r.template and same_model(r.target, target)]
    return sorted(right, key=lambda r: (r.target != str(target), r.time_s))


def _loops_of(record: Record) -> str | None:
    """The loops of the reduction of a record of a network's kernel, which is there as text; None where it is not."""
    match record.template.get("args"):
        case [str() as text]:
            return _reduced_loops(text)
    return None


def _reduced_loops(text: str) -> str | None:
    """The axes of the only reduction in te-level IR, as they are printed; None where that is not to be seen.

    Equal anchors have equal ones. To parse the 32 recorded kernels for an H200 takes 0.3 s of CPU time (AMD EPYC), and
    hardly any of them has the axes of a kernel that is asked for.
    """
    found = _REDUCED.findall(text)
    return found[0] if len(found) == 1 else None


def _adapted(record: Record, task: SearchTask) -> str | None:
    """The schedule of a record's config for another kernel; None where that cannot be."""
    values = record.template.get("config")
    try:
        template = find_template(str(record.template["name"]), task.target)
        bound = BoundTemplate(template, (task.compute_dag.text,), task.target, task.workload_key)
        if not isinstance(values, Mapping) or bound.why_impossible(values) is not None:
            return None
        return bound.schedule(values)
    except ConfigError:
        return None


def _recorded_anchor(record: Record) -> str | None:
    """The anchor of what a record of a template is of: a network's kernel, or a shipped operator at shapes."""
    return _anchor_of(str(record.template.get("name")), json.dumps(record.template.get("args")))


@lru_cache(maxsize=4096)
def _anchor_of(name: str, arguments: str) -> str | None:
    args = json.loads(arguments)
    if not isinstance(args, list):
        return None
    if len(args) == 1 and isinstance(args[0], str):
        return anchor_hash(ComputeDAG.from_module(Parser(create_context(), args[0]).parse_module()))
    operator = operators().get(name.rpartition("_")[0])
    return None if operator is None else anchor_hash(ComputeDAG.from_module(create_module(operator.tensors(*args))))
