"""The convolutions of a network that are computed by Winograd's transforms, on record or untuned."""

from __future__ import annotations

from math import prod

from ..dialects.graph import GroupOp
from ..dialects.minimal_filtering import BY_OUTPUT
from ..dialects.target import Target, parse_target
from ..search.estimates.cpu_winograd_model import CpuWinogradModel
from ..search.estimates.winograd_model import UNTUNED_TILE, WinogradModel
from ..search.records.match import same_device
from .chosen_schedules import KnownSchedules
from .network import Network
from .passes.winograd import convolution_of, dilation_of, is_channels_last, take_tiles, taps_along_planes
from .tasks import GroupTask, groups_of, untuned_tiles, winograd_tasks, with_tasks
from .types import dtype_of, shape_of


def with_winograd(grouped: Network, target: Target, known: KnownSchedules) -> Network:
    """A network of groups with Winograd's transforms in those that they are known or expected to be faster in.

    That is where their record is faster than the direct one, and without a record of the direct way, where untuned
    kernels gain (`gains_untuned`). `grouped` is used up. A group is compared as a whole: both kernels compute
    the same of the same, from what the group reads to its epilogue, but for weights that are transformed ahead.
    """
    recorded = known.names("winograd")
    groups = [g for g in groups_of(grouped) if gains_untuned(g, target) or (recorded and convolution_of(g) is not None)]
    tile_sizes: dict[int, int | None] = {}
    taken = False
    for pair in list(with_tasks(groups, target)):
        key = id(pair.task)
        if key not in tile_sizes:
            tile_sizes[key] = _faster(pair, target, known)
        size = tile_sizes[key]
        if size is not None:
            take_tiles(pair.group, size)
            taken = True
    return grouped.transform("lw-graph-fold-constants,dce") if taken else grouped


def gains_untuned(group: GroupOp, target: Target) -> bool:
    """True for a group whose convolution is expected to be faster by transforms, both ways untuned.

    That is where the multiply-adds that are saved are worth it; on CPUs channels are last: nobody has measured others.
    On an H200 18 dilated convolutions that gain by this take 1 / 1.00 to 1 / 2.88 of the direct time, 1 / 1.80 in the
    geometric mean.
    """
    found = convolution_of(group) if untuned_tiles(target) else None
    if found is None or dtype_of(found.inputs[0]) != "float32":
        return False
    given, made, last = shape_of(found.inputs[0]), shape_of(found.outputs[0]), is_channels_last(found)
    channels, filters = (given[-1], made[-1]) if last else (given[1], made[1])
    *planes, rows, columns = made[1:-1] if last else made[2:]
    on_cpu = target.kind == "llvm"
    if on_cpu and (planes or not last):
        return False
    model = (CpuWinogradModel if on_cpu else WinogradModel)(
        target,
        BY_OUTPUT[UNTUNED_TILE],
        made[0],
        (rows, columns),
        channels,
        filters,
        ahead=True,
        dilation=dilation_of(found)[-2:],
        planes=prod(planes),
        depth=taps_along_planes(found),
    )
    return model.gains


def _faster(pair: GroupTask, target: Target, known: KnownSchedules) -> int | None:
    """The extent of tiles by which a group is fastest on record; None for the direct way.

    The direct way stays at equal times, and where they were measured on other devices; without a record of its own it
    stays but for what gains untuned.
    """
    direct = known.best(pair.task)
    if direct is None:
        return UNTUNED_TILE if gains_untuned(pair.group, target) else None
    device, best_s, chosen = parse_target(direct.record.target), direct.record.time_s, None
    for size, task in winograd_tasks(pair, target).items():
        found = known.best(task)
        if found is None or not same_device(found.record.target, device) or found.record.time_s >= best_s:
            continue
        best_s, chosen = found.record.time_s, size
    return chosen
