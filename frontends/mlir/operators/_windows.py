"""Reductions of windows on tensors of a network, shared by dialects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block

from ....dialects.numpy_types import working_type
from ....graph.network import Value
from ....graph.operators.formula import number
from ..bodies import custom_combiner
from ..node import Builder, Node, known_values
from ._padded_read import PaddedRead
from ._reductions import neutral


@dataclass(frozen=True)
class Windows:
    """Windows over all axes of a tensor; `gaps` are the base dilation, `padding` is before and after each axis."""

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    gaps: Sequence[int]
    padding: Sequence[tuple[int, int]]

    @property
    def extents(self) -> list[int]:
        """The elements from the first to the last of a window, along each axis."""
        return [(n - 1) * d + 1 for n, d in zip(self.sizes, self.dilations, strict=True)]

    @property
    def reduced(self) -> list[int]:
        """The axes along which a window has several elements."""
        return [d for d, n in enumerate(self.sizes) if n > 1]

    def shape(self, data: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along each axis of data."""
        spread = [(n - 1) * g + 1 for n, g in zip(data, self.gaps, strict=True)]
        ways = zip(spread, self.padding, self.extents, self.strides, strict=True)
        return tuple((n + sum(p) - e) // s + 1 for n, p, e, s in ways)

    def places(self, read: PaddedRead, data: Sequence[int]) -> list[str]:
        """Return tokens of the place of element `k0, k1, ..` of window `i0, i1, ..`."""
        shape, found = self.shape(data), []
        for d, (stride, extent) in enumerate(zip(self.strides, self.extents, strict=True)):
            place = read.line(f"multiply i{d} {stride}:int32") if stride != 1 else f"i{d}"
            if d in self.reduced:
                step = read.line(f"multiply k{self.reduced.index(d)} {self.dilations[d]}:int32")
                place = read.line(f"add {place} {step}")
            highest = (shape[d] - 1) * stride + extent - 1
            found.append(read.place(place, data[d], self.gaps[d], self.padding[d][0], highest))
        return found


def window_reduced(build: Builder, combiner: str, x: Value, windows: Windows) -> Value:
    """Reduce windows by a named combiner. Padding does not count."""
    if combiner == "max" and x.dtype != "bool" and (pooled := _pooled(build, x, windows)):
        return pooled
    kind = "int8" if x.dtype == "bool" else working_type(x.dtype) if combiner in ("add", "mul") else x.dtype
    read = PaddedRead()
    places = windows.places(read, x.shape)
    outside = number(neutral(combiner, kind), kind)
    element = read.element(places, outside, kind if kind != x.dtype else None)
    shape = windows.shape(x.shape)
    if not windows.reduced:
        return build.cast(build.apply("map_formula", x, shape=shape, lines=tuple(read.lines)), x.dtype)
    made: Value = build.apply(
        "reduce_formula",
        x,
        shape=shape,
        reduced=tuple(windows.sizes[d] for d in windows.reduced),
        lines=tuple(read.lines),
        values=(element,),
        combiner=(combiner,),
    )
    return build.cast(made, x.dtype)


def windows_joined(
    node: Node, block: Block, data: Sequence[Value], starts: Sequence[Value], windows: Windows
) -> list[Value]:
    """Reduce windows of several tensors by the lines of a region; starts are constants, which padding is, too."""
    lines, results = custom_combiner(block, node.program)
    identity = [number(known_values(s, "what it starts from").flat[0].item(), s.dtype) for s in starts]
    read = PaddedRead()
    places = windows.places(read, data[0].shape)
    elements = [read.element(places, outside, tensor=k) for k, outside in enumerate(identity)]
    made = node.build.apply(
        "reduce_formula",
        *data,
        shape=windows.shape(data[0].shape),
        reduced=tuple(windows.sizes[d] for d in windows.reduced) or (1,),
        lines=tuple(read.lines),
        values=tuple(elements),
        combiner=tuple(lines),
        joined=tuple(results),
        identity=tuple(identity),
    )
    return [made] if isinstance(made, Value) else list(made)


def _pooled(build: Builder, x: Value, windows: Windows) -> Value | None:
    """Return what max pooling over all axes but two gives, which are the first, and the second or the last."""
    rank, pads = len(x.shape), [tuple(p) for p in windows.padding]
    still = [d for d in range(rank) if windows.sizes[d] == windows.strides[d] == 1 and pads[d] == (0, 0)]
    if rank not in (3, 4, 5) or set(windows.gaps) != {1} or 0 not in still or min(min(p) for p in pads) < 0:
        return None
    letters = "DHW"[5 - rank :]
    for layout, spatial in ((f"N{letters}C", range(1, rank - 1)), (f"NC{letters}", range(2, rank))):
        if all(d in still for d in range(rank) if d not in spatial):
            sides = [pads[d][0] for d in spatial] + [pads[d][1] for d in spatial]
            options = {"kernel": [windows.sizes[d] for d in spatial], "stride": [windows.strides[d] for d in spatial]}
            options["dilation"] = [windows.dilations[d] for d in spatial]
            try:
                made: Value = build.apply("max_pool", x, padding=sides, layout=layout, **options)
            except ValueError:  # padding wider than the window: some windows see nothing
                return None
            return made
    return None
