"""Fourier transforms as products with tables: of real numbers, or of pairs of them that are complex ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .complex_operators import Arguments, Pairs
from .errors import UnsupportedNode
from .fx import FxNode, real_tensors

Tensor = Any
_MOST_ELEMENTS = 1 << 24
"""Elements of a table, at most: 4,096 real terms, or 2,048 complex ones (64 MiB of float32). Not measured: frames of
sounds have 200 to 2,048 terms."""

_MOST_QUICK_TERMS, _MOST_QUICK_OTHERS = 128, 32
"""Terms of a transform to or from real numbers along one axis, and of all others, up to which a product is faster than
PyTorch's transform on a CPU. Microseconds of CPU, eager and ours, of rfft with abs of 64 rows: 64 terms 43 and 21, 128
terms 57 and 36, 256 terms 89 and 97; of 2,048 rows: 128 terms 1,235 and 1,088, 256 terms 2,211 and 2,900; of rfft2 and
irfft2: 32 x 32 434 and 405, 64 x 64 1,456 and 4,109 (one core, Xeon, Emerald Rapids). Nobody measured CUDA devices."""


def is_quick(node: FxNode, given: Arguments) -> bool:
    """True of a Fourier transform that is faster as products than PyTorch has it."""
    wide = max((node, given["self"]), key=lambda each: each.meta["val"].numel()).meta["val"]
    axes = given["dim"]
    is_real = "onesided" in given or "last_dim_size" in given
    most = _MOST_QUICK_TERMS if is_real and len(axes) == 1 else _MOST_QUICK_OTHERS
    return wide.device.type == "cpu" and all(wide.shape[axis] <= most for axis in axes)


def to_spectrum(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    """Convert `_fft_r2c`: real numbers to pairs, along the last of its axes, then along the others."""
    x, normalization = given["self"], given["normalization"]
    *others, last = _axes(x, given["dim"])
    terms, bins = x.meta["val"].shape[last], node.meta["val"].shape[last]
    made = _along(pairs, x, last, lambda: _of_real(terms, bins, normalization), (1, 2))
    return _each(pairs, made, others, -1, normalization)


def transformed(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    """Convert `_fft_c2c`: pairs to pairs, one axis after the other."""
    axes, sign = _axes(node, given["dim"]), -1 if given["forward"] else 1
    return _each(pairs, pairs.of(given["self"]), axes, sign, given["normalization"])


def to_real_numbers(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    """Convert `_fft_c2r`, backward: pairs to real numbers along the last of its axes, after the others."""
    x, normalization = given["self"], given["normalization"]
    *others, last = _axes(x, given["dim"])
    terms, bins = node.meta["val"].shape[last], x.meta["val"].shape[last]
    made = _each(pairs, pairs.of(x), others, 1, normalization)
    return _along(pairs, made, last, lambda: _to_real(bins, terms, normalization), (2, 1))


def _axes(node: FxNode, axes: list[int]) -> list[int]:
    return [axis % node.meta["val"].ndim for axis in axes]


def _each(pairs: Pairs, x: FxNode, axes: list[int], sign: int, normalization: int) -> FxNode:
    """Transform pairs along axes."""
    for axis in axes:
        table = partial(_of_pairs, x.meta["val"].shape[axis], sign, normalization)
        x = _along(pairs, x, axis, table, (2, 2))
    return x


def _along(pairs: Pairs, x: FxNode, axis: int, tabulate: Callable[[], Tensor], parts: tuple[int, int]) -> FxNode:
    """Multiply an axis, with the parts behind it, by a table; `parts` are 1 for real numbers, given and made, or 2."""
    with real_tensors():
        table = tabulate()
    value, aten = x.meta["val"], pairs.aten
    given, made = parts
    rank = value.ndim - (given == 2)
    order = [*(d for d in range(rank) if d != axis), axis]
    rows = pairs.call(aten.permute.default, x, [*order, *[rank] * (given == 2)])
    flat = pairs.call(aten.reshape.default, rows, [-1, table.shape[0]])
    product = pairs.call(aten.mm.default, flat, pairs.constant(table, value))
    shape = [*(value.shape[d] for d in order[:-1]), table.shape[1] // made, *[2] * (made == 2)]
    back = [*(order.index(d) for d in range(rank)), *[rank] * (made == 2)]
    return pairs.call(aten.permute.default, pairs.call(aten.reshape.default, product, shape), back)


def _turns(given: int, made: int, period: int, sign: int, normalization: int) -> tuple[Tensor, Tensor]:
    """Tabulate the real and imaginary parts of exp(sign * 2 pi i j k / period) in double precision, (given, made).

    `normalization` is ATen's: 0 for none, 1 by the root of the period, 2 by the period.
    """
    import torch

    if given * made > _MOST_ELEMENTS:
        raise UnsupportedNode(f"a Fourier transform of {period:,} terms is not supported: its table is too large")
    places = torch.arange(given).unsqueeze(1) * torch.arange(made) % period
    angles = places.double() * (sign * 2 * torch.pi / period)
    scale = (1.0, period**-0.5, 1 / period)[normalization]
    return torch.cos(angles) * scale, torch.sin(angles) * scale


def _of_real(terms: int, bins: int, normalization: int) -> Tensor:
    """Tabulate a transform of real numbers: (terms, bins and parts)."""
    import torch

    return torch.stack(_turns(terms, bins, terms, -1, normalization), dim=-1).reshape(terms, 2 * bins)


def _of_pairs(terms: int, sign: int, normalization: int) -> Tensor:
    """Tabulate a transform of pairs: (terms and parts, terms and parts)."""
    import torch

    cos, sin = _turns(terms, terms, terms, sign, normalization)
    rows = [torch.stack(row, dim=-1) for row in ((cos, sin), (-sin, cos))]
    return torch.stack(rows, dim=1).reshape(2 * terms, 2 * terms)


def _to_real(bins: int, terms: int, normalization: int) -> Tensor:
    """Tabulate a transform to real numbers: (bins and parts, terms).

    Bins that are not there are conjugates of those that are, so that these count twice, but for the first one and, of
    an even number of terms, the last.
    """
    import torch

    cos, sin = _turns(bins, terms, terms, 1, normalization)
    count = torch.full((bins, 1), 2.0, dtype=cos.dtype)
    count[0] = 1
    if terms % 2 == 0:
        count[terms // 2 :] = 1
    return torch.stack((cos * count, -sin * count), dim=1).reshape(2 * bins, terms)
