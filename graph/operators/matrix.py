"""Matrix products."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ..operator import anchor
from ._sums import rounded_once


def _dense(data: Tensor, weight: Tensor) -> Tensor:
    return rounded_once(topi.nn.dense)(data, weight)


def _matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return rounded_once(topi.matmul)(a, b, transpose_a, transpose_b)


def _batch_matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return rounded_once(topi.batch_matmul)(a, b, transpose_a, transpose_b)


dense = anchor(_dense)
matmul = anchor(_matmul)
batch_matmul = anchor(_batch_matmul)
