"""From a network to one executable: kernels by the best schedules there are, constants packed, memory planned."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from ..backends.arrays import aligned_copy
from ..backends.host_memory import host_memory_bytes
from ..backends.llvm.host import as_compiled
from ..backends.signature import Argument
from ..backends.targets import resolve_target
from ..dialects.classic_words import knows_classic_words
from ..dialects.graph import ApplyOp, ConstantOp
from ..dialects.target import KINDS, Target
from ..passes.collector import sparing_old_objects
from ..search.measure.backend_api import backend_path, load_backend
from ..search.measure.check import check_executable
from ..search.records.file import Record
from ..search.task import SearchTask
from .build_ahead import processes_ahead
from .builders import Job, build_all
from .chosen_schedules import KnownSchedules, chosen_schedules
from .chosen_winograd import with_winograd
from .export import CpuNetwork
from .layout import in_layout
from .network import Network
from .operator import Kind, kind_of
from .passes._rewrite import below_views
from .passes.branches import branches_of
from .precision import with_kept
from .runtime.check_plan import check_plan, elements
from .runtime.memory import Live, arrange, beside
from .runtime.network import CompiledNetwork
from .runtime.package import Package
from .runtime.plan import ConstantInfo, KernelInfo, Place, Plan, PlanError, Port, Step
from .runtime.signature import Signature, signature_of
from .tasks import GroupTask, group_tasks, grouping_for
from .types import dtype_of, shape_of

Array = npt.NDArray[Any]


@knows_classic_words
@sparing_old_objects
def compile(
    net: Network,
    target: str | Target = "llvm",
    records: str | os.PathLike[str] | Iterable[Record] | None = None,
    pipeline: str | None = None,
    processes: int | None = None,
    layout: str | None = None,
    check: bool = False,
    winograd: bool = True,
    copy_constants: bool = True,
    precision: str | None = None,
) -> CompiledNetwork:
    """Compile a network for a target.

    Each kernel takes its best schedule in `records`, a file or records, else in the histories applied around the call
    (`lw.apply_history_best`), else among the pre-tuned ones, else the default one; how many take that is said once
    (UntunedWarning). `pipeline` are the passes that bring the network into groups, by default those for the target.
    `processes` compile at once, one a core unless told otherwise. `layout` (NCHW, NHWC, auto) brings feature maps into
    a layout first, inputs and outputs excepted: give the same to `lw.extract_tasks`, since kernels of another layout
    have other records. With `check` each kernel runs once on random inputs, and WrongKernelError names the first that
    does not give what the interpreter makes of its operators. Convolutions whose kernels are faster on record by
    Winograd's transforms are computed by them, unless `winograd` is False; with tiles of 4 their rounding errors are
    about five times as large. Untuned ones of many channels are computed so on CPUs and CUDA devices, with tiles of 2,
    which are more exact.
    Without `copy_constants`, constants that no schedule packs stay the arrays that the network was given.
    `precision` (float16, bfloat16) computes what is float32 in that type: sums stay float32, inputs and outputs keep
    their types, and `kept_fp32` of the compiled network names what else stays; with tf32 and tf32x3, factors of
    products are rounded, and nothing else. Give `lw.extract_tasks` the same.
    """
    device = resolve_target(target)
    if not device.is_ours:
        raise ValueError(
            f"networks are compiled for {', '.join(KINDS)}, not for '{device}': build their tasks one by one"
        )
    backend = backend_path(device.kind)
    versions = load_backend(backend).versions()
    known = KnownSchedules(records, versions, device)
    typed, kept = with_kept(in_layout(net, layout, device), precision)
    with processes_ahead(backend, typed, device, processes) as started:
        grouped = typed.transform(pipeline or grouping_for(device))
        if winograd:
            grouped = with_winograd(grouped, device, known)
        if device.kind == "llvm":
            _require_memory(grouped)
        pairs = list(group_tasks(grouped, device))
        tasks = list({id(pair.task): pair.task for pair in pairs}.values())
        schedules = chosen_schedules(net.name, tasks, known)
        jobs = [
            Job(task.name, task.compute_dag.text_for(task.target), schedule)
            for task, schedule in zip(tasks, schedules, strict=True)
        ]
        built = build_all(backend, jobs, processes, started)
    if check:
        for task, made in zip(tasks, built, strict=True):
            check_executable(task.name, load_backend(backend).load(made.artifact), task.reference, made.schedule)
            task.forget_reference()
    numbers = {id(task): number for number, task in enumerate(tasks)}
    kernels = [
        KernelInfo(task.name, task.workload_key, task.flops, made.schedule, given is not None, _bytes_moved(task))
        for task, given, made in zip(tasks, schedules, built, strict=True)
    ]
    signatures = [signature_of(device.kind, made.artifact) for made in built]
    memory = _Memory(grouped, pairs, numbers, signatures, copy_constants)
    made_for = as_compiled(device) if device.kind == "llvm" else device
    plan = replace(memory.plan(str(made_for), kernels, versions), kept_fp32=kept)
    _verify(plan, signatures, memory.constants)
    package = Package(plan, tuple(made.artifact for made in built), tuple(memory.constants))
    return (
        CpuNetwork(package, device, [job.workload for job in jobs])
        if device.kind == "llvm"
        else CompiledNetwork(package)
    )


def _require_memory(net: Network) -> None:
    """ValueError where inputs, constants, and what a step reads and writes do not fit into memory at once."""
    most, block = host_memory_bytes(), net.function.body.block
    held = {*block.args, *(value for op in block.ops if isinstance(op, ConstantOp) for value in op.results)}
    held_bytes = sum(map(_nbytes, held))
    for op in block.ops:
        nbytes = held_bytes + sum(_nbytes(value) for value in {*op.operands, *op.results} - held)
        if nbytes > most:
            names = ", ".join(value.name_hint or "a tensor" for value in op.results) or "the outputs"
            raise ValueError(
                f"network '{net.name}': computing {names} takes {nbytes:,} bytes, this machine has {most:,}"
            )


def _nbytes(value: SSAValue) -> int:
    return prod(shape_of(value)) * np.dtype(dtype_of(value)).itemsize


def _verify(plan: Plan, signatures: Sequence[Signature], constants: Sequence[Array]) -> None:
    """AssertionError where a plan of ours would be refused when it is loaded: running it would do harm."""
    try:
        held = [elements(array.dtype.name, array.shape, f"constant {n}") for n, array in enumerate(constants)]
        check_plan(plan, signatures, held)
    except PlanError as error:
        raise AssertionError(f"the plan of network {plan.name} is wrong: {error}") from error


def _bytes_moved(task: SearchTask) -> int:
    kinds = (*task.compute_dag.func.function_type.inputs, *task.compute_dag.func.function_type.outputs)
    return sum(prod(shape_of(kind)) * np.dtype(dtype_of(kind)).itemsize for kind in kinds)


def _joined_values(net: Network) -> Iterator[tuple[SSAValue, tuple[SSAValue, int]]]:
    """Iterate over the values that are written as parts of another: with that one, and their first byte in it."""
    for op in net.function.body.block.ops:
        if isinstance(op, ApplyOp) and kind_of(op) is Kind.JOIN:
            start = 0
            for value in op.inputs:
                yield below_views(value), (op.outputs[0], start)
                start += _nbytes(value)


class _Where(NamedTuple):
    """The number of a constant, or of a stretch of the arena and, of what is a part of it, its first byte there."""

    is_constant: bool
    number: int
    part: int | None = None


@dataclass
class _Memory:
    """Decides where every tensor of a grouped network lies, and packs its constants."""

    net: Network
    pairs: list[GroupTask]
    numbers: Mapping[int, int]
    signatures: list[Signature]
    copies: bool = True
    constants: list[Array] = field(default_factory=list)
    infos: list[ConstantInfo] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}
        self._stretches: dict[SSAValue, int] = {}
        self._live: list[Live] = []
        self._within = dict(_joined_values(self.net))

    def plan(self, target: str, kernels: list[KernelInfo], versions: Mapping[str, str]) -> Plan:
        last = len(self.pairs)
        for argument in self.net.function.body.block.args:
            self._reserve(argument, -1, last)
        drafts: list[tuple[int, str, list[_Where], list[int]]] = []
        for number, pair in enumerate(self.pairs):
            drafts.append(self._step(number, pair))
        outputs = [self._where(value.ssa, None, last) for value in self.net.outputs.values()]
        branches = branches_of([pair.group for pair in self.pairs])
        offsets, arena_bytes = arrange([beside(live, branches) for live in self._live])

        def place(where: _Where) -> Place:
            if where.is_constant:
                return Place("constant", where.number)
            start = offsets[where.number]
            return Place("arena", start) if where.part is None else Place("part", start + where.part)

        steps = [
            Step(kernel, label, tuple(map(place, places)), tuple(place(_Where(False, w)) for w in spaces))
            for kernel, label, places, spaces in drafts
        ]
        inputs = [
            Port(n, v.dtype, v.shape, place(_Where(False, self._stretches[v.ssa]))) for n, v in self.net.inputs.items()
        ]
        found = [
            Port(n, v.dtype, v.shape, place(where))
            for (n, v), where in zip(self.net.outputs.items(), outputs, strict=True)
        ]
        return Plan(
            name=self.net.name,
            target=target,
            inputs=tuple(inputs),
            outputs=tuple(found),
            steps=tuple(steps),
            kernels=tuple(kernels),
            constants=tuple(self.infos),
            arena_bytes=arena_bytes,
            tensor_bytes=sum(live.nbytes for live in self._live),
            versions={name: version for name, version in versions.items() if not name.startswith("lw-")},
            branches=branches,
        )

    def _step(self, number: int, pair: GroupTask) -> tuple[int, str, list[_Where], list[int]]:
        group, kernel = pair.group, self.numbers[id(pair.task)]
        signature = self.signatures[kernel]
        places = [
            self._where(value, argument, number)
            for value, argument in zip(group.inputs, signature.arguments, strict=False)
        ]
        for value in group.outputs:
            whole, part = self._whole(value)
            if whole not in self._stretches:
                self._reserve(whole, number, number)
            places.append(_Where(False, self._stretches[whole], part))
        spaces = []
        for size in signature.workspaces:
            self._live.append(Live(size, number, number))
            spaces.append(len(self._live) - 1)
        return kernel, group.outputs[0].name_hint or group.label.data, places, spaces

    def _reserve(self, value: SSAValue, first: int, last: int) -> None:
        nbytes = _nbytes(value)
        self._stretches[value] = len(self._live)
        self._live.append(Live(nbytes, first, last))

    def _use(self, value: SSAValue, step: int) -> None:
        index = self._stretches[value]
        live = self._live[index]
        self._live[index] = Live(live.nbytes, live.first, max(live.last, step))

    def _where(self, value: SSAValue, argument: Argument | None, step: int) -> _Where:
        """Return where a step reads a value: in the memory of the one that it is a view or a part of, if it is one."""
        part: int | None = None
        while isinstance(owner := value.owner, ApplyOp) and kind_of(owner) is not Kind.JOIN:
            if kind_of(owner) is Kind.PART:
                start = owner.options.values["start"]
                assert isinstance(start, int)
                part = (part or 0) + start * np.dtype(dtype_of(value)).itemsize
            value = owner.inputs[0]
        if isinstance(owner, ConstantOp):
            assert part is None, "parts of constants are constants"
            return _Where(True, self._constant(owner, argument))
        value, inside = self._whole(value)
        self._use(value, step)
        return _Where(False, self._stretches[value], part if inside is None else inside + (part or 0))

    def _whole(self, value: SSAValue) -> tuple[SSAValue, int | None]:
        """Return the tensor in whose memory a value is joined to others, and its first byte there; else itself."""
        part: int | None = None
        while value in self._within:
            value, start = self._within[value]
            part = start + (part or 0)
        return value, part

    def _constant(self, op: ConstantOp, argument: Argument | None) -> int:
        """Return the number of a constant in the packing that an argument wants; each packing is made once."""
        packing = argument.packing if argument is not None else None
        layout = "" if packing is None else f"{packing.layout} {dict(packing.extents)}"
        key = (op.label.data, layout)
        if key not in self._known:
            array = self.net.constant_values(op)
            packed = array if packing is None else packing.pack(array)
            self._known[key] = len(self.constants)
            how = ((), ()) if packing is None else (tuple(packing.extents), packing.layout)
            self.infos.append(ConstantInfo(op.label.data, array.dtype.name, array.shape, *how))
            self.constants.append(aligned_copy(np.asarray(packed)) if self.copies else np.asarray(packed, order="C"))
        return self._known[key]
