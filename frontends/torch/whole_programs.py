"""Operators that torch.compile leaves to PyTorch, in terms of others: programs of torch.export are imported whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log, pi
from typing import Any

from ..approximations import (
    DIGAMMA_SERIES,
    DIGAMMA_STEPS,
    ERF_INV_CENTRE,
    ERF_INV_TAIL,
    LANCZOS,
    LANCZOS_FIRST,
)

Tensor = Any


def forms() -> Mapping[Any, Callable[..., Any]]:
    """Return the decompositions by operator; NotImplemented is what they give for types that they do not serve."""
    import torch

    aten = torch.ops.aten
    return {
        aten.median.dim: _median,
        aten.median.default: lambda data: _median(data.reshape(-1), 0)[0],
        aten.kthvalue.default: _kth_value,
        aten.cummax.default: _running_extreme("gt"),
        aten.cummin.default: _running_extreme("lt"),
        aten.logcumsumexp.default: _log_of_sums,
        aten.histc.default: histogram,
        aten.lgamma.default: _log_gamma,
        aten.digamma.default: _digamma,
        aten.erfinv.default: _inverse_of_erf,
    }


# -- sorted, and step by step -----------------------------------------------------------------------------------------


_LONGEST_ROW = 4096
"""Elements of a row that is sorted, each of which looks at all of its row. A choice: 2^24 steps are some 10 ms."""


def _may_be_sorted(data: Tensor, dim: int) -> bool:
    return bool(data.ndim and data.numel() and data.shape[dim] <= _LONGEST_ROW)


def _median(data: Tensor, dim: int, keepdim: bool = False) -> Any:
    """The lower of the two in the middle of each row, or NaN where there is one, and its place."""
    import torch

    if not _may_be_sorted(data, dim):
        return NotImplemented
    found = _of_sorted(data, (data.shape[dim] - 1) // 2, dim)
    if data.is_floating_point():
        last = _of_sorted(data, data.shape[dim] - 1, dim)
        found = tuple(torch.where(torch.isnan(last[0]), a, b) for a, b in zip(last, found, strict=True))
    return found if keepdim else tuple(each.squeeze(dim) for each in found)


def _kth_value(data: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not _may_be_sorted(data, dim):
        return NotImplemented
    found = _of_sorted(data, k - 1, dim)
    return found if keepdim else tuple(each.squeeze(dim) for each in found)


def _of_sorted(data: Tensor, place: int, dim: int) -> tuple[Tensor, ...]:
    """One value of each row in order, and where it stood."""
    import torch

    return tuple(each.narrow(dim, place, 1) for each in torch.sort(data, dim=dim, stable=True))


def _running_extreme(than: str) -> Callable[..., Any]:
    """The largest, or least, so far along an axis, and its last place; NaN from the first one on."""

    def extremes(data: Tensor, dim: int) -> Any:
        import torch

        if not data.ndim or not data.numel():
            return NotImplemented
        extent = data.shape[dim]
        shape = [extent if d == dim % data.ndim else 1 for d in range(data.ndim)]
        places = torch.arange(extent, device=data.device).reshape(shape).expand(data.shape)

        def kept(before: Sequence[Tensor], after: Sequence[Tensor]) -> list[Tensor]:
            stays = getattr(torch, than)(before[0], after[0])
            if data.is_floating_point():
                stays = stays | (torch.isnan(before[0]) & ~torch.isnan(after[0]))
            return [torch.where(stays, a, b) for a, b in zip(before, after, strict=True)]

        return tuple(_running([data, places], kept, dim))

    return extremes


def _log_of_sums(data: Tensor, dim: int) -> Any:
    import torch

    if not data.ndim or not data.numel():
        return NotImplemented
    (made,) = _running([data], lambda before, after: [torch.logaddexp(before[0], after[0])], dim)
    return made


_MOST_COMPARED = 1 << 26
"""Elements times bins of a histogram, as each bin looks at each element. A choice: some 10 ms on a core."""


def histogram(data: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """The number of elements in each of equal parts of a range, as `torch.histc` counts them."""
    import torch

    if not data.numel() or data.numel() * bins > _MOST_COMPARED:
        return NotImplemented
    x = (data if data.is_floating_point() else data.float()).reshape(1, -1)
    low, high = (x.amin(), x.amax()) if min == max else (torch.full_like(x[0, 0], end) for end in (min, max))
    is_one = low == high
    low, high = torch.where(is_one, low - 1, low), torch.where(is_one, high + 1, high)
    places = ((x - low) / (high - low) * bins).floor().clamp(max=bins - 1)
    numbers = torch.arange(bins, device=x.device, dtype=x.dtype).reshape(-1, 1)
    return ((places == numbers) & (x >= low) & (x <= high)).sum(1).to(data.dtype)


def _running(
    parts: list[Tensor], combine: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]], dim: int
) -> list[Tensor]:
    """All combined so far along an axis, by steps of doubled length (Hillis and Steele, 1986)."""
    import torch

    extent, step = parts[0].shape[dim], 1
    while step < extent:
        before = [part.narrow(dim, 0, extent - step) for part in parts]
        after = combine(before, [part.narrow(dim, step, extent - step) for part in parts])
        parts = [torch.cat([part.narrow(dim, 0, step), new], dim) for part, new in zip(parts, after, strict=True)]
        step *= 2
    return parts


# -- functions of float32, and of narrower types ----------------------------------------------------------------------


def _is_wide(x: Tensor) -> bool:
    """True for numbers of more digits than the approximations give, and for integers."""
    import torch

    return x.dtype not in (torch.float32, torch.float16, torch.bfloat16)


def _log_gamma(x: Tensor) -> Any:
    import torch

    if _is_wide(x):
        return NotImplemented
    given = x.float()
    is_low = given < 0.5
    z = torch.where(is_low, -given, given - 1)  # lgamma(x) + lgamma(1 - x) = log(pi / sin(pi x))
    series = sum((c / (z + (k + 1)) for k, c in enumerate(LANCZOS)), torch.full_like(z, LANCZOS_FIRST))
    t = z + (len(LANCZOS) - 0.5)
    made = 0.5 * log(2 * pi) + (z + 0.5) * torch.log(t) - t + torch.log(series)
    turned = log(pi) - torch.log(torch.abs(torch.sin(pi * (given - torch.floor(given))))) - made
    made = torch.where(torch.isinf(given), given.abs(), torch.where(is_low, turned, made))
    return made.to(x.dtype)


def _digamma(x: Tensor) -> Any:
    import torch

    if _is_wide(x):
        return NotImplemented
    given = x.float()
    is_low = given < 0.5
    y = torch.where(is_low, 1 - given, given)  # digamma(1 - x) - digamma(x) = pi / tan(pi x)
    below = sum((1 / (y + k) for k in range(DIGAMMA_STEPS)), torch.zeros_like(y))
    up = y + DIGAMMA_STEPS
    square = 1 / (up * up)
    made = torch.log(up) - 0.5 / up - square * _polynomial(DIGAMMA_SERIES[::-1], square) - below
    part = pi * (given - torch.floor(given))
    turned = made - torch.cos(part) / torch.sin(part) * pi
    is_pole = (given < 0) & (given == torch.floor(given))
    made = torch.where(is_pole, torch.full_like(made, float("nan")), torch.where(is_low, turned, made))
    return made.to(x.dtype)


def _inverse_of_erf(x: Tensor) -> Any:
    import torch

    if _is_wide(x):
        return NotImplemented
    given = x.float()
    w = -torch.log((1 - given) * (1 + given))
    near, far = _polynomial(ERF_INV_CENTRE, w - 2.5), _polynomial(ERF_INV_TAIL, torch.sqrt(w) - 3)
    made = torch.where(w < 5, near, far) * given
    return torch.where(given.abs() == 1, given * float("inf"), made).to(x.dtype)


def _polynomial(coefficients: Sequence[float], x: Tensor) -> Tensor:
    made: Tensor = coefficients[0]
    for c in coefficients[1:]:
        made = made * x + c
    return made
