"""Normalisations and softmax."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ...topi.arguments import Ints
from ..operator import opaque, rows


def _softmax(data: Tensor, *, axis: int = -1) -> Tensor:
    return topi.nn.softmax(data, axis)


def _log_softmax(data: Tensor, *, axis: int = -1) -> Tensor:
    return topi.nn.log_softmax(data, axis)


def _layer_norm(
    data: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, *, axis: Ints = -1, epsilon: float = 1e-5
) -> Tensor:
    return topi.nn.layer_norm(data, gamma, beta, axis, epsilon)


def _rms_norm(data: Tensor, gamma: Tensor | None = None, *, axis: Ints = -1, epsilon: float = 1e-5) -> Tensor:
    return topi.nn.rms_norm(data, gamma, axis, epsilon)


def _batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Tensor:
    return topi.nn.batch_norm(data, gamma, beta, mean, variance, axis, epsilon)


def _lrn(
    data: Tensor, *, size: int = 5, axis: int = 1, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    return topi.nn.lrn(data, size, axis, alpha, beta, bias)


softmax = rows(_softmax)
log_softmax = rows(_log_softmax)
layer_norm = rows(_layer_norm, None)
rms_norm = rows(_rms_norm, None)
batch_norm = opaque(_batch_norm)
lrn = opaque(_lrn)
