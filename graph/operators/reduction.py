"""Reductions along axes."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ...topi.arguments import Ints
from ..operator import reduction
from ._sums import rounded_once


def _sum(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return rounded_once(topi.sum, "dtype")(data, axis, keepdims)


def _prod(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.prod(data, axis, keepdims)


def _max(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.max(data, axis, keepdims)


def _min(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.min(data, axis, keepdims)


def _mean(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.mean(data, axis, keepdims)


def _argmax(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.argmax(data, axis, keepdims)


def _argmin(data: Tensor, *, axis: Ints | None = None, keepdims: bool = False) -> Tensor:
    return topi.argmin(data, axis, keepdims)


sum = reduction(_sum)
prod = reduction(_prod)
max = reduction(_max)
min = reduction(_min)
mean = reduction(_mean)
argmax = reduction(_argmax)
argmin = reduction(_argmin)
