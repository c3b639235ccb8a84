"""One tuned config for all kernels of the same operator and shapes, whatever is fused behind it."""

from __future__ import annotations

import json
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
        self._known: dict[Target, list[dict[str, list[Record]]]] = {}

    def best(self, task: SearchTask) -> tuple[Record, str] | None:
        """The record of the fastest config for the same anchor on a task's model of device, and the task's schedule.

        The first of the histories with one decides; None where there is none, or the task refuses it.
        """
        anchor = anchor_hash(task.compute_dag)
        if anchor is None:
            return None
        if task.target not in self._known:
            self._known[task.target] = [_by_anchor(known.records, task.target) for known in self._sources]
        found = (record for known in self._known[task.target] for record in known.get(anchor, ()))
        adapted = ((record, _adapted(record, task)) for record in found)
        return next(((record, schedule) for record, schedule in adapted if schedule is not None), None)


def _by_anchor(records: Iterable[Record], target: Target) -> dict[str, list[Record]]:
    """Right records for a model of device by anchor: first those of this very target, then the fastest."""
    found: dict[str, list[Record]] = {}
    right = [r for r in records if r.ok and r.template and same_model(r.target, target)]
    for record in sorted(right, key=lambda r: (r.target != str(target), r.time_s)):
        if (anchor := _recorded_anchor(record)) is not None:
            found.setdefault(anchor, []).append(record)
    return found


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
