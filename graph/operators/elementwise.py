"""Operators that work element by element on one tensor."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ..operator import elementwise


def _clip(data: Tensor, *, low: float = float("-inf"), high: float = float("inf")) -> Tensor:
    return topi.clip(data, low, high)


def _cast(data: Tensor, *, dtype: str) -> Tensor:
    return topi.cast(data, dtype)


def _leaky_relu(data: Tensor, *, alpha: float = 0.01) -> Tensor:
    return topi.nn.leaky_relu(data, alpha)


def _gelu(data: Tensor, *, approximate: str = "none") -> Tensor:
    return topi.nn.gelu(data, approximate)


def _hard_sigmoid(data: Tensor, *, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    return topi.nn.hard_sigmoid(data, alpha, beta)


def _elu(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    return topi.nn.elu(data, alpha)


identity = elementwise(topi.identity)
negative = elementwise(topi.negative)
exp = elementwise(topi.exp)
exp2 = elementwise(topi.exp2)
log = elementwise(topi.log)
log2 = elementwise(topi.log2)
sqrt = elementwise(topi.sqrt)
rsqrt = elementwise(topi.rsqrt)
sin = elementwise(topi.sin)
cos = elementwise(topi.cos)
tan = elementwise(topi.tan)
tanh = elementwise(topi.tanh)
sigmoid = elementwise(topi.sigmoid)
erf = elementwise(topi.erf)
abs = elementwise(topi.abs)
floor = elementwise(topi.floor)
ceil = elementwise(topi.ceil)
round = elementwise(topi.round)
trunc = elementwise(topi.trunc)
sign = elementwise(topi.sign)
square = elementwise(topi.square)
reciprocal = elementwise(topi.reciprocal)
logical_not = elementwise(topi.logical_not)
clip = elementwise(_clip)
cast = elementwise(_cast)
relu = elementwise(topi.nn.relu)
relu6 = elementwise(topi.nn.relu6)
leaky_relu = elementwise(_leaky_relu)
gelu = elementwise(_gelu)
silu = elementwise(topi.nn.silu)
hard_sigmoid = elementwise(_hard_sigmoid)
hard_swish = elementwise(topi.nn.hard_swish)
elu = elementwise(_elu)
softplus = elementwise(topi.nn.softplus)
