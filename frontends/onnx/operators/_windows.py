"""Sliding windows as ONNX gives them: paddings, explicit or automatic, of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UnsupportedNode
from ..node import Node


@dataclass(frozen=True)
class Window:
    """A window along each spatial axis; `before` and `after` are what is padded."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def padding(self) -> int | tuple[int, ...]:
        """Return all befores, then all afters; one number where they are alike."""
        return short((*self.before, *self.after))

    @property
    def extents(self) -> tuple[int, ...]:
        """From the first element of the window to the last."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def short(values: tuple[int, ...]) -> int | tuple[int, ...]:
    """The number that all values are, else the values."""
    return values[0] if len(set(values)) == 1 else values


def window(node: Node, spatial: Sequence[int], kernel: Sequence[int]) -> Window:
    """The window of a convolution or pool over data of these spatial extents."""
    count = len(spatial)
    if len(kernel) != count:
        raise UnsupportedNode(f"a kernel of {len(kernel)} axes does not fit data of {count} spatial axes")
    strides = tuple(node.ints("strides") or [1] * count)
    dilations = tuple(node.ints("dilations") or [1] * count)
    plain = Window(tuple(kernel), strides, dilations, (0,) * count, (0,) * count)
    automatic = node.get("auto_pad", "NOTSET")
    if automatic == "VALID":
        return plain
    if automatic == "NOTSET":
        pads = node.ints("pads") or [0] * 2 * count
        return Window(plain.kernel, strides, dilations, tuple(pads[:count]), tuple(pads[count:]))
    totals = [max((-(-n // s) - 1) * s + w - n, 0) for n, s, w in zip(spatial, strides, plain.extents, strict=True)]
    before, after = halves(totals, automatic)
    return Window(plain.kernel, strides, dilations, before, after)


def halves(totals: Sequence[int], automatic: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Halve paddings, the odd one after (SAME_UPPER) or before (SAME_LOWER)."""
    if automatic not in ("SAME_UPPER", "SAME_LOWER"):
        raise UnsupportedNode(f"auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {automatic}")
    small = tuple(t // 2 for t in totals)
    large = tuple(t - s for t, s in zip(totals, small, strict=True))
    return (small, large) if automatic == "SAME_UPPER" else (large, small)
