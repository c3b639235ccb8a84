"""The convolutions of a network that are computed by Winograd's transforms, since they are faster so on record."""

from __future__ import annotations

from ..dialects.target import Target, parse_target
from ..search.records.match import same_device
from .chosen_schedules import KnownSchedules
from .network import Network
from .passes.winograd import take_tiles
from .tasks import GroupTask, group_tasks, winograd_tasks


def with_winograd(grouped: Network, target: Target, known: KnownSchedules) -> Network:
    """A network of groups with Winograd's transforms in those whose record by them is faster than the direct one.

    `grouped` is used up. A group is compared as a whole: both kernels compute the same of the same, from what the group
    reads to its epilogue, but for weights that are transformed ahead.
    """
    if not known.names("winograd"):
        return grouped  # without building computations that cannot be on record
    tile_sizes: dict[int, int | None] = {}
    taken = False
    for pair in list(group_tasks(grouped, target)):
        key = id(pair.task)
        if key not in tile_sizes:
            tile_sizes[key] = _faster(pair, target, known)
        size = tile_sizes[key]
        if size is not None:
            take_tiles(pair.group, size)
            taken = True
    return grouped.transform("lw-graph-fold-constants,dce") if taken else grouped


def _faster(pair: GroupTask, target: Target, known: KnownSchedules) -> int | None:
    """The extent of tiles by which a group is fastest on record; None for the direct way.

    The direct way stays without a record of its own, at equal times, and where they were measured on other devices.
    """
    direct = known.best(pair.task)
    if direct is None:
        return None
    device, best_s, chosen = parse_target(direct.record.target), direct.record.time_s, None
    for size, task in winograd_tasks(pair, target).items():
        found = known.best(task)
        if found is None or not same_device(found.record.target, device) or found.record.time_s >= best_s:
            continue
        best_s, chosen = found.record.time_s, size
    return chosen
