"""The tasks of a network: its distinct kernels, each with the number of times that it appears."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ..backends.targets import resolve_target
from ..dialects.classic_words import knows_classic_words
from ..dialects.cpu_models import features_of_cpu
from ..dialects.element import FLOAT32_BYTES
from ..dialects.graph import ApplyOp, ConstantOp, GroupOp, YieldOp
from ..dialects.target import Target
from ..dialects.te import ComputeOp
from ..search.estimates.winograd_model import UNTUNED_TILE
from ..search.task import SearchTask
from ..search.workload import Workload
from ..te import Tensor, const
from ..te.expr import Expr
from ..topi import full
from .joined_outputs import joined_outputs
from .layout import in_layout
from .network import Network
from .operator import CHAINED, Kind, apply, is_in_parts, kind_of
from .passes.winograd import TILE_SIZES, by_tiles
from .pipeline import PREPARE
from .precision import in_precision
from .types import dtype_of, placeholder, shape_of

GROUPED = f"{PREPARE},lw-graph-place-slices,lw-graph-simplify,cse,dce,lw-graph-fuse,lw-graph-round-products"
"""From a network as it was built to groups, one a kernel."""
_FOR_GPUS = "lw-graph-split-products,lw-graph-sink-views,lw-graph-simplify,cse,dce,lw-graph-fold-constants,dce"

_FOR_CUDA = "lw-graph-fold-transposes,lw-graph-simplify,cse,dce,lw-graph-fold-constants,dce"
"""Not for OpenCL: on devices without fast shared memory nobody measured what a product loses that reads in strides."""


_INTEGERS = "lw-graph-simplify,cse,lw-graph-integer-products{{words={}}},dce"
_BYTE_UNITS = {"uint8": ("avx512vnni", "avxvnni", "amx-int8"), "int8": ("dotprod", "i8mm")}
"""Words that data of products are kept in -> the features of CPUs that have instructions for them."""
_FLAT = "lw-graph-flatten-softmax{{least_rows={}}},lw-graph-simplify,dce"
_UNITS_SINCE, _TILE = 80, 16
"""The compute capability from which on attention of 16-bit floats is one group, and what divides the elements of its
keys and values."""
_MOST_KEYS = 128
"""Keys of attention in float32 up to which it is one kernel on CUDA devices. On an H200, 12 heads of 128 queries and
keys of 64 elements take 6.3 us so, 3.3, 1.8 and 3.6 in three kernels; of 197, 15.8 at best of 56 candidates, and 5.8,
2.4 and 6.9."""
_BESIDE = 1 << 21
"""Elements of each of several chains up to which they are one kernel. A choice: 4 MB of 16-bit floats take an H200 a
microsecond, as a launch does."""


def grouping_for(target: Target) -> str:
    """Return the passes from a network as it was built to groups for a target.

    On CPUs attention is one group where its queries fill the lanes of a vector; with fewer its kernels stay apart. On
    CUDA devices with matrix units it is where it is of 16-bit floats, and tiles divide the elements of keys and values.
    """
    return f"{_INTEGERS.format(words_for(target))},{_groups(target)}"


def attention_tile(target: Target) -> int:
    """Return what divides the extents of attention of 16-bit floats that is one group on a target; 0 where none is."""
    return _TILE if target.kind == "cuda" and target.compute_capability >= _UNITS_SINCE else 0


def _groups(target: Target) -> str:
    if target.is_gpu:
        passes = f"{PREPARE},{_FOR_GPUS}"
        if target.kind == "cuda":
            passes += f",lw-graph-join-products{{cores={target.cores}}},lw-graph-move-norms,{_FOR_CUDA}"
        found = GROUPED.replace(PREPARE, passes)
        tile, chains = attention_tile(target), f"views=true beside={_BESIDE}"
        if target.kind == "cuda":
            chains = f"attention_keys={_MOST_KEYS} {chains}"
        if not tile:
            return found.replace("lw-graph-fuse", f"lw-graph-fuse{{{chains}}}")
        return found.replace("lw-graph-fuse", f"{_FLAT.format(1)},lw-graph-fuse{{attention_tile={tile} {chains}}}")
    lanes = target.vector_bytes // FLOAT32_BYTES
    found = GROUPED.replace("lw-graph-skip-padding", "lw-graph-direct-factors,lw-graph-skip-padding{by_taps=true}")
    if lanes < 2:
        return found.replace("lw-graph-fuse", "lw-graph-place-joins,lw-graph-fuse")
    fuse = f"lw-graph-fuse{{attention_rows={lanes} gathered={lanes}}}"
    found = found.replace("lw-graph-fuse", f"{_FLAT.format(lanes)},lw-graph-place-joins,{fuse}")
    if target.cores == 1:
        return found
    return f"{found},lw-graph-branches{{threads={target.cores} lanes={lanes} cache_bytes={target.l2_bytes}}}"


def words_for(target: Target) -> str:
    """Return the integers that data of quantised products are kept in, those that the target's units multiply.

    int16 where it has none for bytes: AVX2's `vpmaddwd` takes pairs of them without a step more.
    """
    if target.kind == "cuda":
        return "int8"
    if target.kind != "llvm":
        return "int16"
    features = features_of_cpu(target.model, target.arch, target.features)
    return next((words for words, units in _BYTE_UNITS.items() if features & {*units}), "int16")


@dataclass(frozen=True)
class GroupTask:
    """A group of a network, and the task that it is."""

    group: GroupOp
    task: SearchTask


@knows_classic_words
def extract_tasks(
    net: Network,
    target: str | Target = "llvm",
    include_simple_tasks: bool = False,
    layout: str | None = None,
    winograd: bool | Sequence[int] = False,
    precision: str | None = None,
) -> tuple[list[SearchTask], list[int]]:
    """Extract the distinct kernels of a network with something to search, and how often each appears in it.

    Kernels are distinct where their computations are (shapes are part of them); they are in the order of their first
    appearance. Those without a reduction are left out unless `include_simple_tasks`, and those of branches, short
    ones that a thread runs beside others. `layout` (NCHW, NHWC, auto) brings feature maps into a layout first,
    `precision` (float16, bfloat16, tf32, tf32x3) what is float32 into that type: `lw.compile` must be given the same.
    With `winograd`, kernels of convolutions that Winograd's transforms can compute are followed by those that do, for
    tiles of 2 and of 4 or of the extents given: other ways to compute the same, of which `lw.compile` takes the fastest
    on record. A record of the direct way alone keeps it from transforms that it would take untuned: `winograd=(2,)` has
    both (`lw.optimize` does that).
    """
    tile_sizes = tile_sizes_of(winograd)
    device = resolve_target(target)
    found: dict[str, SearchTask] = {}
    counts: dict[str, int] = {}
    ways: dict[str, list[str]] = {}
    typed = in_precision(in_layout(net, layout, device), precision)
    for pair in group_tasks(typed.transform(grouping_for(device)), device):
        if pair.group.branch is not None or (not include_simple_tasks and not has_reduction(pair.task)):
            continue
        key = pair.task.workload_key
        if key not in ways:
            same = [pair.task, *winograd_tasks(pair, device, tile_sizes).values()]
            found |= {task.workload_key: task for task in same}
            ways[key] = [task.workload_key for task in same]
        for way in ways[key]:
            counts[way] = counts.get(way, 0) + 1
    return list(found.values()), list(counts.values())


def tasks_to_tune(
    net: Network, target: str | Target, precision: str | None = None
) -> tuple[list[SearchTask], list[int]]:
    """Extract the kernels that a search of a whole network tunes, and how often each appears in it.

    Convolutions are among them directly and by the transforms that an untuned network may take (`untuned_tiles`), these
    first: a record of one way alone keeps `lw.compile` from the other. On an H200 a ResNet-18 by records of the direct
    ways alone took 186 us, untuned 169.
    """
    device = resolve_target(target)
    found = zip(*extract_tasks(net, device, winograd=untuned_tiles(device), precision=precision), strict=True)
    in_turn = sorted(found, key=lambda pair: pair[0].instead_of is None)
    return [task for task, _ in in_turn], [weight for _, weight in in_turn]


def untuned_tiles(target: Target) -> tuple[int, ...]:
    """Return the extents of Winograd's tiles that convolutions of a target may take without a record of either way."""
    return (UNTUNED_TILE,) if target.kind in ("llvm", "cuda") else ()


def tile_sizes_of(winograd: bool | Sequence[int]) -> tuple[int, ...]:
    """Return the extents of Winograd's tiles that are asked for: all, none, or those given; ValueError for others."""
    sizes = (TILE_SIZES if winograd else ()) if isinstance(winograd, bool) else tuple(winograd)
    if any(size not in TILE_SIZES for size in sizes):
        raise ValueError(f"winograd is True, False or extents of tiles among 2 and 4, got {winograd!r}")
    return sizes


def winograd_tasks(pair: GroupTask, target: Target, tile_sizes: Iterable[int] = TILE_SIZES) -> dict[int, SearchTask]:
    """Return the tasks by Winograd's transforms in the place of a group's, by the extent of tiles; none it has none."""
    found: dict[int, SearchTask] = {}
    for size in tile_sizes:
        copy = by_tiles(pair.group, size)
        if copy is not None:
            found[size] = group_task(copy, target, pair.task.compute_dag.hash)
    return found


def groups_of(grouped: Network) -> list[GroupOp]:
    """Return the groups of a network in order."""
    return [op for op in grouped.function.body.block.ops if isinstance(op, GroupOp)]


def group_tasks(grouped: Network, target: Target) -> Iterator[GroupTask]:
    """Return the groups of a network in order, each with its task; equal groups share one."""
    return with_tasks(groups_of(grouped), target)


def with_tasks(groups: Iterable[GroupOp], target: Target) -> Iterator[GroupTask]:
    """Return some groups, each with its task; equal groups share one."""
    known: dict[tuple[bool, str], SearchTask] = {}
    alike: dict[Hashable, SearchTask] = {}
    for op in groups:
        form = op.branch is None, _form(op)
        if form not in alike:
            task = group_task(op, target if op.branch is None else target.with_cores(1))
            alike[form] = known.setdefault((op.branch is None, task.workload_key), task)
        yield GroupTask(op, alike[form])


def _form(group: GroupOp) -> Hashable:
    """Return all that the task of a group is made of; equal for groups whose tasks are, so that one is made for all.

    To make one takes 10 ms, half of the 57 groups of a ResNet-50 are like another, and forms of all take 2 ms.
    """
    numbers: dict[SSAValue, object] = {v: number for number, v in enumerate(group.body.block.args)}
    rows: list[Hashable] = [group.label.data, tuple((v.type, isinstance(v.owner, ConstantOp)) for v in group.inputs)]
    for op in group.body.block.ops:
        found = tuple(numbers[v] for v in op.operands)
        numbers.update((v, (len(rows), place)) for place, v in enumerate(op.results))
        what: Hashable = op.name
        if isinstance(op, ApplyOp):
            what = (op.operator.data, op.options)
        elif isinstance(op, ConstantOp):
            what = str(op.number)  # as text 1, 1.0 and True differ
        rows.append((what, found, tuple(v.type for v in op.results)))
    return tuple(rows)


def group_task(group: GroupOp, target: Target, instead_of: str | None = None) -> SearchTask:
    """Return the task of a group: its label, the shapes of its inputs and outputs, and what it computes."""
    shapes = [list(shape_of(v)) for v in (*group.inputs, *group.outputs)]
    workload = Workload(group.label.data, lambda *_: group_tensors(group))
    return SearchTask(workload, shapes, target, instead_of=instead_of)


def has_reduction(task: SearchTask) -> bool:
    """True where there is a reduction in a task's computation."""
    return any(isinstance(op, ComputeOp) and op.reduce_axes for op in task.compute_dag.func.body.block.ops)


def group_tensors(group: GroupOp) -> list[Tensor]:
    """Return the inputs of a group as placeholders, constant where all its uses are, then its outputs."""
    values: dict[SSAValue, Tensor] = {}
    for position, (argument, given) in enumerate(zip(group.body.block.args, group.inputs, strict=True)):
        values[argument] = placeholder(argument, f"p{position}", isinstance(given.owner, ConstantOp))
    inputs = list(values.values())
    for op in group.body.block.ops:
        if isinstance(op, ApplyOp):
            made = apply(op.operator.data, _operands(op, values), op.options.values)
            values.update(zip(op.outputs, made, strict=True))
        elif isinstance(op, YieldOp):
            found = [values[v] for v in op.values]
            return [*inputs, *(joined_outputs(found) if _in_one_nest(group) else found)]
    raise AssertionError("a group ends with a yield")


def _in_one_nest(group: GroupOp) -> bool:
    """True for a group around a product in parts, and for chains beside each other: one loop nest gives all results."""
    ops = [op for op in group.body.block.ops if isinstance(op, ApplyOp)]
    if any(map(is_in_parts, ops)):
        return True
    ends = {v.owner for op in group.body.block.ops if isinstance(op, YieldOp) for v in op.values}
    return len(ends) > 1 and all(kind_of(op) in CHAINED for op in ops)


def _operands(op: ApplyOp, values: dict[SSAValue, Tensor]) -> list[Tensor | Expr]:
    """Te tensors for the inputs of an operator; a number stays one where the operator broadcasts it."""
    plain = kind_of(op) is Kind.ELEMENTWISE
    shapes = {shape_of(v) for v in op.inputs if v in values}
    types = {dtype_of(v) for v in op.inputs if v in values}
    found: list[Tensor | Expr] = []
    for value in op.inputs:
        if value in values:
            found.append(values[value])
            continue
        owner = value.owner
        assert isinstance(owner, ConstantOp) and owner.value is not None
        if plain and shape_of(op.outputs[0]) in shapes and dtype_of(value) in types:
            found.append(const(owner.value, dtype_of(value)))
        else:
            found.append(full(shape_of(value), owner.value, dtype_of(value)))
    return found
