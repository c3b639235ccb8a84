"""Copies of windows of images found to be walks of the copy engine: pixels are digits of one iterator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialects.index import ZERO, Div, IndexExpr, Mod, axis, constant
from ...dialects.loop import BlockOp, LoadOp, buffer_shape
from ...dialects.pixel_walk import Walk


@dataclass(frozen=True)
class FoundWalk:
    """A walk, and over a block's iterators the place it begins at, image and channel included, and its taps.

    The `ends` are predicates beside those of the array that zeros past the last image stand for.
    """

    walk: Walk
    place: tuple[IndexExpr, ...]
    taps: tuple[IndexExpr, ...]
    ends: tuple[IndexExpr, ...] = ()


@dataclass(frozen=True)
class _Digit:
    """A digit of an iterator in an index, `(p floordiv step) mod count * times`, and the `rest` of the index.

    A `count` of 0 is of one without mod; where the iterator is not in the index, `times` is 0.
    """

    step: int
    count: int
    times: int
    rest: IndexExpr


def find_walk(block: BlockOp, pixel: str) -> FoundWalk | None:
    """Find the walk through images in which a copy goes as an iterator counts pixels; None where there is none.

    `images[p floordiv 784, p floordiv 28 mod 28 + ry - 1, p mod 28 + rx - 1, c]` walks from -1 to 26 in two dimensions.
    Of a single image `images[0, p floordiv 28 + ry - 1, ..]` where (27 - p floordiv 28 >= 0) does the same.
    """
    (load,) = block.loads
    *indices, channel = load.indices.data
    digits = [digit for index in indices if (digit := _digit(index, pixel)) is not None]
    digits, ends = _past_one_image(load, digits, pixel) if len(digits) == len(indices) else (digits, ())
    counts = _counts(digits, next(a.extent for a in block.axes if a.name == pixel))
    if load.positions or len(digits) < len(indices) or counts is None or pixel in channel.axes():
        return None
    within = {a.name: (0, a.extent - 1) for a in block.axes}
    inner = digits[1:]
    steps = tuple(max(1, digit.times) for digit in inner)
    first = tuple(digit.rest.bounds(within)[0] for digit in inner)
    last = tuple(low + (n - 1) * step for low, n, step in zip(first, counts, steps, strict=True))
    image = digits[0].rest + (axis(pixel) // digits[0].step if digits[0].times else 0)
    place = [_value(d, pixel) + low for d, low in zip(inner, first, strict=True)]
    taps = tuple(digit.rest - low for digit, low in zip(inner, first, strict=True))
    walk = Walk(first, last, steps)
    if any(tap.bounds(within)[1] > walk.most_tap() for tap in taps):
        return None
    return FoundWalk(walk, (image, *place, channel), taps, ends)


def _past_one_image(load: LoadOp, digits: Sequence[_Digit], pixel: str) -> tuple[list[_Digit], tuple[IndexExpr, ...]]:
    """The digits with one of images, where pixels go on past a single one, and the predicate of its end."""
    image, *inner = digits
    outer = next((d for d in inner if d.times), None)
    if outer is None or outer.count or image.times or buffer_shape(load.buffer)[0] != 1:
        return list(digits), ()
    row = axis(pixel) // outer.step
    for end in load.conditions:
        count = (end + row).const + 1
        if end + row == constant(count - 1) and count > 0:
            first = _Digit(outer.step * count, 0, 1, image.rest)
            return [first, *(replace(d, count=count) if d is outer else d for d in inner)], (end,)
    return list(digits), ()


def _value(digit: _Digit, pixel: str) -> IndexExpr:
    """The digit of a pixel as it moves an index."""
    if not digit.times:
        return ZERO
    whole = axis(pixel) // digit.step
    return (whole % digit.count if digit.count else whole) * digit.times


def _digit(index: IndexExpr, name: str) -> _Digit | None:
    """Read an index as a digit of an iterator and the rest; None where it is none."""
    terms = [(atom, c) for atom, c in index.terms if name in IndexExpr(((atom, 1),), 0).axes()]
    if not terms:
        return _Digit(1, 0, 0, index)
    (atom, times), *others = terms
    whole, step, count = IndexExpr(((atom, 1),), 0), 1, 0
    if isinstance(atom, Mod):
        whole, count = atom.expr, atom.divisor
    if len(whole.terms) == 1 and isinstance(found := whole.terms[0][0], Div) and whole == IndexExpr(((found, 1),), 0):
        whole, step = found.expr, found.divisor
    if others or times < 1 or whole != axis(name):
        return None
    return _Digit(step, count, times, index - IndexExpr(((atom, times),), 0))


def _counts(digits: Sequence[_Digit], extent: int) -> tuple[int, ...] | None:
    """Positions along each dimension behind the first, which counts the rest; None where these are no whole digits."""
    if len(digits) < 2:
        return None
    image, *inner = digits
    counts, step = list[int](), 1
    for digit in reversed(inner):
        count = digit.count or extent // step if digit.times else 1
        if digit.times and (digit.step != step or (not digit.count and count * step != extent)):
            return None
        counts.insert(0, count)
        step *= count
    is_rest = image.step == step and not image.count and image.times == 1 if image.times else step >= extent
    return tuple(counts) if is_rest else None
