"""The pass that computes no products of convolutions with the zeros around their data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.element import FLOAT32_BYTES
from ...dialects.graph import ApplyOp
from ...topi.arguments import padding_of, spread
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, is_constant, option, replace, with_options

MOST_LEFT = 2 / 3
"""Multiply-adds beside data up to which taps are computed one by one, as a part of all. Winograd's transforms leave
1 / 2.25 of all, and take about 1 / 1.6 of the time."""
PER_BYTE = 16
"""Multiply-adds that a core, or a device, makes while it moves a byte to memory or from there, at most: those of two
vectors of 16 floats a cycle and two bytes."""
_WITH_TAPS = ("conv1d", "conv2d", "conv3d", "depthwise_conv2d")


@dataclass(frozen=True)
class SkipPadding(ModulePass):
    """`conv(x, w)` -> `conv(x[...], w[...])` without the taps of the window that read padding everywhere.

    With `by_taps` also `conv(x, w)` -> `sum of pad(conv(x[tap], w[tap]))`, a product of matrices for each tap, for
    dilated convolutions of stride 1 whose taps are beside the data for much of the results, as their window is as large
    as the image. Where the weights are constant, and the multiply-adds saved are worth the bytes moved more.
    Weights that are infinite or no numbers are not multiplied with zeros then.
    """

    name: ClassVar[str] = "lw-graph-skip-padding"
    by_taps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found, axes in _convolutions(op):
            if any(axis.taps != (0, axis.window) for axis in axes):
                replace(found, [_without_taps(found, axes)])
        for found, axes in _convolutions(op) if self.by_taps else ():
            if _gains(found, axes):
                replace(found, [_sum_of_taps(found, axes)])


def _convolutions(op: ModuleOp) -> list[tuple[ApplyOp, list[_Axis]]]:
    """Return the convolutions of a module that have zeros around their data, if anything, and the axes of each.

    Those that read zeros alone stay, as nothing is left of their data without them.
    """
    padded = [each for each in applied(op) if each.operator.data in _WITH_TAPS and not option(each, "pad_value")]
    found = [(each, _axes_of(each)) for each in padded]
    return [(each, axes) for each, axes in found if all(axis.reads_data for axis in axes)]


class _Axis(NamedTuple):
    """A window of taps that are `dilation` apart, along one axis of padded data."""

    extent: int
    window: int
    results: int
    stride: int
    dilation: int
    before: int

    def first(self, tap: int) -> int:
        """The place in the data that a tap reads for the first result; below 0 in the padding."""
        return tap * self.dilation - self.before

    def inside(self, tap: int) -> range:
        """The results for which a tap reads data."""
        first = self.first(tap)
        start = max(0, -(first // self.stride))
        return range(start, max(start, min(self.results, (self.extent - 1 - first) // self.stride + 1)))

    @property
    def reads_data(self) -> bool:
        """True where a tap reads data for a result."""
        return any(self.inside(tap) for tap in range(self.window))

    @property
    def taps(self) -> tuple[int, int]:
        """The first tap that reads data, and the one behind the last."""
        found = [tap for tap in range(self.window) if self.inside(tap)]
        return found[0], found[-1] + 1


def _axes_of(op: ApplyOp) -> list[_Axis]:
    name, data, weight = op.operator.data, shape_of(op.inputs[0]), shape_of(op.inputs[1])
    count, first = len(data) - 2, _first(op)
    window = weight[:count] if first == 1 else weight[2:]
    extents, results = data[first : first + count], shape_of(op.outputs[0])[first : first + count]
    dilations = spread(name, "dilation", option(op, "dilation"), count)
    strides = spread(name, "stride", option(op, "stride"), count)
    whole = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    before, _ = padding_of(name, option(op, "padding"), extents, whole, strides)
    return [_Axis(*each) for each in zip(extents, window, results, strides, dilations, before, strict=True)]


def _first(op: ApplyOp) -> int:
    """The first axis of a convolution's data that its window moves along."""
    return 1 if str(option(op, "layout")).endswith("C") else 2


def _without_taps(op: ApplyOp, axes: Sequence[_Axis]) -> SSAValue:
    """Add a convolution by the taps that read data."""
    first, before, after, ranges = _first(op), [], [], []
    for axis in axes:
        start, end = axis.taps
        low = axis.first(start)
        high = axis.first(end - 1) + (axis.results - 1) * axis.stride + 1
        before.append(max(0, -low))
        after.append(max(0, high - axis.extent))
        ranges.append((max(0, low), min(axis.extent, high)))
    place = Before(op)
    data = _cut(place, op.inputs[0], first, ranges)
    weight = _cut(place, op.inputs[1], 0 if first == 1 else 2, [axis.taps for axis in axes])
    options: dict[str, Any] = dict(with_options(op, padding=(*before, *after)))
    return place.apply(op.operator.data, data, weight, label=op.outputs[0].name_hint, **options)


def _cut(place: Before, value: SSAValue, first: int, ranges: Sequence[tuple[int, int]]) -> SSAValue:
    """Return the elements of ranges of the axes from `first` on; the value itself where that is all of it.

    The axis ahead is cut last, whose ranges are stretches of memory where it is the outermost.
    """
    shape = shape_of(value)
    for axis, (start, end) in reversed([*enumerate(ranges, first)]):
        if (start, end) != (0, shape[axis]):
            value = place.apply("strided_slice", value, begin=[start], end=[end], strides=[1], axes=[axis])
    return value


def _gains(op: ApplyOp, axes: Sequence[_Axis]) -> bool:
    """True where taps of a dilated window, one by one, save multiply-adds worth the slices, and results in parts.

    Taps side by side read what is in the first-level cache already: a window of 3x3x3 over 512 channels of 2x7x7 leaves
    0.55 of its multiply-adds so, and took 1.06 times as long on one core of a Zen 5, 1.15 times on two.
    """
    if all(axis.dilation == 1 for axis in axes):
        return False
    if op.operator.data == "depthwise_conv2d" or option(op, "groups") != 1 or option(op, "rounds"):
        return False
    if any(axis.stride != 1 for axis in axes) or not is_constant(op.inputs[1]) or dtype_of(op.inputs[0]) != "float32":
        return False
    first, given, made = _first(op), shape_of(op.inputs[0]), shape_of(op.outputs[0])
    channels, filters = (shape[-1] if first == 1 else shape[1] for shape in (given, made))
    left = given[0] * sum(prod(map(len, inside)) for _, inside in _taps(axes))
    everything = given[0] * prod(axis.results * axis.window for axis in axes)
    moved = 2 * (left * filters + prod(given) * _parts_cut(axes[1:]))
    saved = (everything - left) * channels * filters
    return left <= MOST_LEFT * everything and saved >= PER_BYTE * FLOAT32_BYTES * moved


def _parts_cut(axes: Sequence[_Axis]) -> float:
    """Return the elements of data that are cut out for all taps along some axes, as a part of all data."""
    return sum(
        prod(len(own) / axis.extent for own, axis in zip(inside, axes, strict=True))
        for _, inside in _taps(axes)
        if any(len(own) < axis.extent for own, axis in zip(inside, axes, strict=True))
    )


def _taps(axes: Sequence[_Axis]) -> Iterator[tuple[tuple[int, ...], tuple[range, ...]]]:
    """All taps of a window, and along each axis the results for which one reads data."""
    for taps in product(*(range(axis.window) for axis in axes)):
        yield taps, tuple(axis.inside(tap) for axis, tap in zip(axes, taps, strict=True))


def _sum_of_taps(op: ApplyOp, axes: Sequence[_Axis]) -> SSAValue:
    """Add a product for each tap, and the sum of all, each where it has data. One that has it everywhere is last.

    What is behind joins the kernel of that one.
    """
    place = Before(op)
    parts: list[SSAValue] = []
    whole: list[SSAValue] = []
    for taps, inside in _taps(axes):
        if not all(inside):
            continue
        part = _of_a_tap(op, place, axes, taps, inside)
        is_whole = all(len(r) == axis.results for r, axis in zip(inside, axes, strict=True))
        (whole if is_whole else parts).append(part)
    total: SSAValue | None = None
    for part in (*parts, *whole):
        total = part if total is None else place.apply("add", total, part)
    assert total is not None
    return total


def _of_a_tap(
    op: ApplyOp, place: Before, axes: Sequence[_Axis], taps: Sequence[int], inside: Sequence[range]
) -> SSAValue:
    first, rank = _first(op), len(shape_of(op.inputs[0]))
    starts = [axis.first(tap) for axis, tap in zip(axes, taps, strict=True)]
    ranges = [(start + r.start, start + r.stop) for start, r in zip(starts, inside, strict=True)]
    data = _cut(place, op.inputs[0], first, ranges)
    weight = _cut(place, op.inputs[1], 0 if first == 1 else 2, [(tap, tap + 1) for tap in taps])
    options: dict[str, Any] = dict(with_options(op, padding=None, dilation=None))
    made = place.apply(op.operator.data, data, weight, **options)
    before, after = [0] * rank, [0] * rank
    for axis, (r, own) in enumerate(zip(inside, axes, strict=True), first):
        before[axis], after[axis] = r.start, own.results - r.stop
    return place.apply("pad", made, before=before, after=after) if any(before) or any(after) else made
