"""Small programs in plain PyTorch, one for each converter of core ATen at least, with the inputs they are run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_places import READS, RESIZED, SAMPLED, WRITES


@dataclass(frozen=True)
class Program:
    """A function of tensors and the inputs it is run on."""

    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    rtol: float = 1e-5


class Wrapped(torch.nn.Module):
    """A function as a module, for torch.export."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def _floats(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _ints(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(1))


_X, _Y = _floats(2, 3, 4), _floats(2, 3, 4, seed=1)
_IMAGE = _floats(2, 4, 6, 7)
_POSITIVE = _X.abs() + 0.1
_UNIT = torch.tanh(_X) * 0.9
_N = _ints(9, 2, 3, 4) - 4
_B = _X > 0
_DIVIDED = torch.tensor([0.5, 1.5, -0.5, 1e10, -3.7, 2.0, -2.0, 2.0, -torch.inf, 1.0, 0.0])
_DIVISORS = torch.tensor([0.1, 0.3, 0.1, 0.3, 1.5, torch.inf, torch.inf, -torch.inf, 2.0, 0.0, 3.0])
_BYTES = torch.tensor([44, -1, 100], dtype=torch.int8)
_GAPS = torch.tensor([[1.0, torch.nan, 3.0, 2.0], [-1.0, 2.0, torch.nan, torch.nan]])
_ENDS = torch.tensor([-torch.inf, -1e10, -2.0, -0.0, 1.0, 3e38, torch.inf])

UNARY: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    name: (getattr(torch, name), _X)
    for name in (
        "relu",
        "sigmoid",
        "tanh",
        "exp",
        "exp2",
        "abs",
        "sin",
        "cos",
        "tan",
        "erf",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sign",
        "sinh",
        "cosh",
        "asinh",
        "atan",
    )
}
UNARY |= {
    name: (getattr(torch, name), _POSITIVE)
    for name in (
        "log",
        "log2",
        "log1p",
        "sqrt",
        "rsqrt",
        "reciprocal",
    )
}
UNARY |= {
    name: (getattr(torch, name), _UNIT)
    for name in (
        "asin",
        "acos",
        "atanh",
    )
}
UNARY |= {
    "acosh": (torch.acosh, _POSITIVE + 1),
    "neg": (torch.neg, _X),
    "neg of integers": (torch.neg, _N),
    "square": (torch.square, _X),
    "sigmoid of integers": (torch.sigmoid, _N),
    "silu": (F.silu, _X),
    "gelu": (F.gelu, _X),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), _X),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), _X),
    "elu": (lambda x: F.elu(x, 0.5), _X),
    "hardsigmoid": (F.hardsigmoid, _X * 3),
    "hardswish": (F.hardswish, _X * 3),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.25), _X),
    "softplus": (F.softplus, _X),
    "mish": (F.mish, _X),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), _X),
    "clamp from below": (lambda x: x.clamp(min=0.2), _X),
    "clamp of integers": (lambda x: x.clamp(-1, 2), _N),
    "pow 2": (lambda x: x**2, _X),
    "pow 3": (lambda x: x**3, _X),
    "pow 0.5": (lambda x: x**0.5, _POSITIVE),
    "pow 1.7": (lambda x: x**1.7, _POSITIVE),
    "isnan": (lambda x: torch.isnan(x / x.floor()), _X),
    "isinf": (lambda x: torch.isinf(x / x.floor()), _X),
    "logical_not": (torch.logical_not, _B),
    "logical_not of integers": (torch.logical_not, _N),
    "bitwise_not": (torch.bitwise_not, _N),
    "to integers": (lambda x: x.to(torch.int32), _X * 3),
    "to conditions": (lambda x: x.to(torch.bool), _N),
    "conditions to floats": (lambda x: x.to(torch.float32), _B),
    "mean": (lambda x: x.mean(dim=(0, 2), keepdim=True), _X),
    "mean of all": (torch.mean, _X),
    "sum": (lambda x: x.sum(dim=1), _X),
    "sum of integers": (torch.sum, _N.to(torch.int32)),
    "prod": (lambda x: x.prod(dim=1), _X),
    "amax": (lambda x: x.amax(dim=(1, 2)), _X),
    "amin": (lambda x: x.amin(dim=-1), _X),
    "any": (lambda x: x.any(dim=1), _B),
    "all of all": (torch.all, _B),
    "argmax": (lambda x: x.argmax(dim=1), _X),
    "argmin of all": (torch.argmin, _X),
    "max with places": (lambda x: x.max(dim=2, keepdim=True), _X),
    "var": (lambda x: x.var(dim=1), _X),
    "var without correction": (lambda x: x.var(dim=(0, 2), correction=0), _X),
    "std": (lambda x: x.std(dim=2), _X),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), _X),
    "normalize": (lambda x: F.normalize(x, dim=-1), _X),
    "logsumexp": (lambda x: x.logsumexp(dim=1), _X),
    "cumsum": (lambda x: x.cumsum(dim=1), _X),
    "softmax": (lambda x: x.softmax(dim=1), _X),
    "log_softmax": (lambda x: x.log_softmax(dim=-1), _X),
    "view": (lambda x: x.view(6, -1), _X),
    "permute": (lambda x: x.permute(2, 0, -2), _X),
    "transpose": (lambda x: x.transpose(1, -1), _X),
    "squeeze": (lambda x: x[:1].squeeze(0), _X),
    "unsqueeze": (lambda x: x.unsqueeze(1), _X),
    "expand": (lambda x: x[:, None].expand(-1, 5, -1, -1), _X),
    "slice": (lambda x: x[:, 1:, ::2], _X),
    "slice from the end": (lambda x: x[:, -2:], _X),
    "select": (lambda x: x[:, -1], _X),
    "chunk": (lambda x: x.chunk(2, dim=-1), _X),
    "split": (lambda x: x.split([1, 3], dim=2), _X),
    "cat with nothing": (lambda x: torch.cat([torch.tensor([]), x, x[:, :0]], dim=1), _X),
    "split of which one is read": (lambda x: x.split([1, 2, 1], dim=2)[1] + 1, _X),
    "chunk of which the last is read": (lambda x: x.chunk(3, dim=2)[-1] + 1, _floats(2, 3, 5)),
    "unbind": (lambda x: torch.stack(x.unbind(1)[::-1], 1), _X),
    "flip": (lambda x: x.flip(0, 2), _X),
    "roll": (lambda x: x.roll(1, 2), _X),
    "repeat": (lambda x: x.repeat(2, 1, 3, 1), _X),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), _X),
    "truth values padded with a half": (lambda x: F.pad(x, (1, 2), value=0.5), _B),
    "whole numbers padded with a half": (lambda x: F.pad(x, (1, 2), value=1.5), _N),
    "pad and cut": (lambda x: F.pad(x, (-1, 2)), _X),
    "padding alone is left": (lambda x: F.pad(x[:, :1], (-1, 1, 1, -1), value=0.5), _X),
    "reflected": (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), _IMAGE),
    "put a piece": (lambda x: torch.slice_scatter(x, x[:, 1:2] * 2, 1, 0, 1), _X),
    "put a row": (lambda x: torch.select_scatter(x, x[:, 1] * 2, 1, 2), _X),
    "index": (lambda x: x[:, torch.tensor([2, 0, -1])], _X),
    "index two axes": (lambda x: x[torch.tensor([[1], [0]]), torch.tensor([0, 2])], _X),
    "index_select": (lambda x: x.index_select(2, torch.tensor([3, 3, 0])), _X),
    "gather": (lambda x: x.gather(1, torch.ones(2, 1, 4, dtype=torch.int64)), _X),
    "zeros and ones": (lambda x: x * torch.ones_like(x) + torch.zeros(3, 4), _X),
    "full": (lambda x: x + torch.full((4,), 2.5), _X),
    "arange": (lambda x: x + torch.arange(1, 9, 2), _X),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), _IMAGE),
    "max_pool2d rounded up": (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), _IMAGE),
    "max_pool2d dilated": (lambda x: F.max_pool2d(x, 2, 1, dilation=2), _IMAGE),
    "max_pool3d": (lambda x: F.max_pool3d(x[None], 2), _IMAGE),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), _IMAGE),
    "avg_pool2d of data": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), _IMAGE),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), _X),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), _IMAGE),
    "adaptive to one": (lambda x: F.adaptive_avg_pool2d(x, 1), _IMAGE),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), _IMAGE),
    "bilinear by corners": (lambda x: F.interpolate(x, size=(9, 5), mode="bilinear", align_corners=True), _IMAGE),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), _IMAGE),
    "nearest to a size": (lambda x: F.interpolate(x, size=(9, 5)), _IMAGE),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), _IMAGE),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), _X),
    "layer_norm over two axes": (lambda x: F.layer_norm(x, (3, 4), torch.ones(3, 4) * 2, torch.ones(3, 4)), _X),
    "group_norm": (lambda x: F.group_norm(x, 2, torch.arange(4.0), torch.ones(4)), _IMAGE),
    "instance_norm": (F.instance_norm, _IMAGE),
    "rms_norm": (lambda x: F.rms_norm(x, (4,)), _X),
    "instance_norm of lines": (F.instance_norm, _floats(2, 4, 9)),
    "batch_norm of its own statistics": (lambda x: F.batch_norm(x, None, None, training=True), _IMAGE),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), _IMAGE),
    "var_mean": (lambda x: torch.var_mean(x, (0, 2)), _X),
    "std_mean": (lambda x: torch.std_mean(x, 1), _X),
    "max of all": (torch.max, _X),
    "max of conditions": (lambda x: x.max(), _B),
    "min of all": (torch.min, _X),
    "prod of all": (torch.prod, _X),
    "norm 1": (lambda x: x.norm(p=1, dim=1), _X),
    "norm 3": (lambda x: torch.linalg.vector_norm(x, 3, dim=1), _X),
    "norm 0": (lambda x: torch.linalg.vector_norm(x.relu(), 0, dim=1), _X),
    "largest norm": (lambda x: torch.linalg.vector_norm(x, torch.inf, dim=1), _X),
    "smallest norm": (lambda x: torch.linalg.vector_norm(x, -torch.inf, dim=1), _X),
    "cumprod": (lambda x: x.cumprod(1), _X),
    "cumsum of a long row": (lambda x: x.cumsum(1), _floats(2, 50)),
    "pow 4": (lambda x: x**4, _X),
    "pow 3 of integers": (lambda x: x**3, _N),
    "power of two": (lambda x: 2.0**x, _X),
    "power of a number": (lambda x: 0.3**x, _X),
    "expm1": (lambda x: torch.expm1(x * 0.001) * 1000, _X),
    "expm1 of large ones": (lambda x: torch.expm1(x * 5), _X),
    "expm1 of halves": (
        lambda x: torch.expm1(x).float(),
        torch.tensor([-torch.inf, -30, -9, 0.01, 11.0, torch.nan]).half(),
    ),
    "places of NaN": (lambda x: (x.argmax(), x.argmin(1), x.max(1)[1], x.min(0)[1]), _GAPS),
    "numbers that go around": (lambda x: (x == 300, x + 300, x < 300, x.to(torch.uint8) == -1), _BYTES),
    "functions at their ends": (
        lambda x: tuple(f(x) for f in (torch.expm1, torch.asinh, torch.acosh, torch.atanh)),
        _ENDS,
    ),
    "log10": (torch.log10, _POSITIVE),
    "erfc": (torch.erfc, _X),
    "round to decimals": (lambda x: torch.round(x, decimals=2), _X),
    "signbit": (torch.signbit, _X),
    "signbit of zeros": (lambda x: torch.signbit(x * 0.0), _X),
    "selu": (F.selu, _X),
    "celu": (lambda x: F.celu(x, 0.5), _X),
    "softsign": (F.softsign, _X),
    "logsigmoid": (F.logsigmoid, _X),
    "softshrink": (F.softshrink, _X),
    "hardshrink": (F.hardshrink, _X),
    "threshold": (lambda x: F.threshold(x, 0.1, 2.0), _X),
    "glu": (lambda x: F.glu(x, 2), _X),
    "shifts": (lambda x: (x.abs() << 2) + (x >> 1), _N),
    "logic of numbers": (lambda x: torch.logical_and(x, x > 1), _N),
    "nan_to_num": (lambda x: torch.nan_to_num(x / x.relu(), 1.0, 2.0, 3.0), _X),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), _X),
    "rot90": (lambda x: torch.rot90(x, 1, (1, 2)), _X),
}
UNARY |= {
    "fake quantisation": (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -20, 17), _X),
    "fake quantisation by tensors": (
        lambda x: torch.fake_quantize_per_tensor_affine(
            x, torch.tensor([0.05]), torch.tensor([3], dtype=torch.int32), 0, 255
        ),
        _X,
    ),
    "fake quantisation of channels": (
        lambda x: torch.fake_quantize_per_channel_affine(
            x, torch.tensor([0.05, 0.1, 0.2]), torch.tensor([0, 3, -2], dtype=torch.int32), 1, -8, 7
        ),
        _X,
    ),
    "bilinear form": (lambda x: F.bilinear(x, x[..., :3], torch.arange(24.0).view(2, 4, 3), torch.ones(2)), _X),
}
UNARY |= READS | WRITES | RESIZED

BINARY: dict[str, tuple[Callable[[Tensor, Tensor], Any], Tensor, Tensor]] = {
    "add": (torch.add, _X, _Y),
    "add scaled": (lambda x, y: torch.add(x, y, alpha=2), _X, _Y[0]),
    "add integers to floats": (torch.add, _X, _N),
    "add conditions": (torch.add, _B, _Y > 0),
    "sub": (lambda x, y: x - y, _X, _Y[:, :1]),
    "rsub": (lambda x, y: 2 - x + y, _X, _Y),
    "mul": (torch.mul, _X, _Y),
    "mul conditions": (torch.mul, _B, _Y > 0),
    "div": (torch.div, _X, _POSITIVE),
    "div of integers": (torch.div, _N, _N.abs() + 1),
    "div to the floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), _N, _N.abs() + 2),
    "div to zero": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), _X * 5, _POSITIVE),
    "floor_divide": (lambda x, y: x // y, _N, _N.abs() + 2),
    "remainder": (torch.remainder, _X, _POSITIVE),
    "remainder of integers": (torch.remainder, _N, _N.abs() + 2),
    "fmod": (torch.fmod, _X, _POSITIVE),
    "remainders beside the divisor": (
        lambda x, y: (torch.fmod(x, y), torch.remainder(x, y), torch.floor_divide(x, y)),
        _DIVIDED,
        _DIVISORS,
    ),
    "remainders of halves": (lambda x, y: (x % y, x // y), _DIVIDED[4:].half(), _DIVISORS[4:].half()),
    "remainders in double precision": (lambda x, y: (x % y, x // y), _X.double(), _POSITIVE.double()),
    "div of floats to the floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), _DIVIDED, _DIVISORS),
    "maximum": (torch.maximum, _X, _Y),
    "minimum": (torch.minimum, _X, _Y),
    "pow": (torch.pow, _POSITIVE, _Y),
    "eq": (torch.eq, _N, _N.flip(0)),
    "lt": (torch.lt, _X, _Y),
    "ge of integers and floats": (torch.ge, _N, _Y),
    "compare with numbers": (lambda x, y: (x > 0) | (y <= 1) | (x != 2), _N, _N.flip(0)),
    "logical_and": (torch.logical_and, _B, _Y > 0),
    "logical_xor": (torch.logical_xor, _B, _Y > 0),
    "bitwise_and": (torch.bitwise_and, _N, _N.flip(0)),
    "bitwise_or of conditions": (torch.bitwise_or, _B, _Y > 0),
    "where": (lambda x, y: torch.where(x > 0, x, y), _X, _Y),
    "where a number": (lambda x, y: torch.where(y > 0, x, 0.0), _X, _Y),
    "masked_fill": (lambda x, y: x.masked_fill(y, -1e9), _X, _B),
    "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), _X, _Y),
    "masked_scatter of rows": (lambda x, y: x.masked_scatter((x[..., :1] > 0).expand_as(x), y), _X, _Y),
    "masked_scatter of rows of a source that is not of rows": (
        lambda x, y: x.masked_scatter((x[..., :1] > 0).expand_as(x), y.flatten()[:-1]),
        _X,
        _Y,
    ),
    "masked_scatter of a wider mask": (lambda x, y: x[0, :, :1].masked_scatter(x > 0, y), _X, _Y),
    "cat": (lambda x, y: torch.cat([x, y], dim=-1), _X, _Y),
    "stack": (lambda x, y: torch.stack([x, y], dim=1), _X, _Y),
    "copy": (lambda x, y: x.clone().copy_(y), _X, _Y[0]),
    "mm": (torch.mm, _X[0], _Y[0].T.contiguous()),
    "mm with a transpose": (lambda x, y: x @ y.T, _X[0], _Y[0]),
    "bmm": (torch.bmm, _X, _Y.mT.contiguous()),
    "bmm with a transpose": (lambda x, y: x @ y.mT, _X, _Y),
    "addmm": (lambda x, y: torch.addmm(x, x, y, beta=0.5, alpha=2), _X[0, :, :3], _Y[0, :, :3]),
    "linear": (lambda x, y: F.linear(x, y, torch.arange(3.0)), _X, _Y[0]),
    "embedding": (lambda x, y: F.embedding(x, y), _ints(5, 2, 3), _floats(5, 8)),
    "batch_norm": (
        lambda x, y: F.batch_norm(x, y[0].abs(), y[1].abs(), y[2], y[3]),
        _IMAGE,
        _floats(4, 4),
    ),
    "prelu": (lambda x, y: F.prelu(x, y), _IMAGE, _floats(4).abs()),
    "attention": (lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None]), _X, _Y),
    "causal attention": (
        lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None], is_causal=True),
        _X,
        _Y,
    ),
    "conv1d": (lambda x, y: F.conv1d(x, y, stride=2, padding=1), _floats(2, 4, 9), _floats(6, 4, 3)),
    "conv2d": (lambda x, y: F.conv2d(x, y, torch.arange(6.0), padding=(1, 0)), _IMAGE, _floats(6, 4, 3, 3)),
    "conv2d in groups": (lambda x, y: F.conv2d(x, y, groups=2, dilation=2), _IMAGE, _floats(6, 2, 3, 3)),
    "conv2d by channels": (lambda x, y: F.conv2d(x, y, groups=4, stride=2, padding=1), _IMAGE, _floats(4, 1, 3, 3)),
    "conv3d": (lambda x, y: F.conv3d(x, y), _floats(1, 2, 4, 5, 6), _floats(3, 2, 2, 3, 3)),
    "conv_transpose2d": (
        lambda x, y: F.conv_transpose2d(x, y, stride=2, padding=1, output_padding=1),
        _IMAGE,
        _floats(4, 3, 3, 3),
    ),
    "conv_transpose1d": (lambda x, y: F.conv_transpose1d(x, y, stride=2), _floats(2, 4, 5), _floats(4, 3, 3)),
    "conv_transpose2d in groups": (
        lambda x, y: F.conv_transpose2d(x, y, stride=2, groups=2, dilation=2, output_padding=1),
        _IMAGE,
        _floats(4, 3, 3, 3),
    ),
    "conv_transpose3d": (
        lambda x, y: F.conv_transpose3d(x, y, stride=2, groups=2, dilation=(2, 1, 1)),
        _floats(1, 4, 2, 3, 3),
        _floats(4, 1, 3, 2, 2),
    ),
    "conv3d by channels": (
        lambda x, y: F.conv3d(x, y, groups=4, dilation=(1, 2, 1)),
        _floats(1, 4, 4, 6, 5),
        _floats(4, 1, 3, 3, 3),
    ),
    "conv2d of one image": (lambda x, y: F.conv2d(x[0], y, padding="same"), _IMAGE, _floats(3, 4, 4, 3)),
    "clamp between tensors": (lambda x, y: x.clamp(y - 0.5, y + 0.5), _X, _Y),
    "atan2": (torch.atan2, _X, _Y),
    "atan2 along the axes": (
        torch.atan2,
        torch.tensor([0.0, 1.0, 0.0, -1.0, 0.0]),
        torch.tensor([1.0, 0.0, -1.0, 0.0, 0.0]),
    ),
    "atan2 of endless sides": (
        torch.atan2,
        torch.tensor([torch.inf, torch.inf, -torch.inf, -torch.inf, torch.inf, 1.0, torch.nan]),
        torch.tensor([torch.inf, -torch.inf, torch.inf, -torch.inf, 2.0, -torch.inf, torch.inf]),
    ),
    "atan2 of zeros with signs": (torch.atan2, torch.tensor([-0.0, -0.0, 0.0]), torch.tensor([-1.0, -0.0, -0.0])),
    "hypot": (torch.hypot, _X, _Y),
    "fmax": (lambda x, y: (torch.fmax(x, y), torch.fmin(x, y), torch.fmax(y, x)), _GAPS, _GAPS.flip(1)),
    "fmin of integers": (torch.fmin, _N, -_N),
    "hypot of endless sides": (torch.hypot, torch.tensor([torch.inf, torch.nan]), torch.tensor([1.0, -torch.inf])),
    "copysign": (torch.copysign, _X, _Y),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, dim=1), _X, _Y),
    "cdist": (torch.cdist, _X, _Y),
    "cdist 1": (lambda x, y: torch.cdist(x, y, p=1), _X, _Y),
    "addmv": (lambda x, y: torch.addmv(x[:, 0], x, y[0], alpha=2), _X[0], _Y[0]),
    "addbmm": (lambda x, y: torch.addbmm(x[0, :, :3], x, y.mT, beta=0.5), _X, _Y),
    "baddbmm scaled": (lambda x, y: torch.baddbmm(x[:, :, :3], x, y.mT, beta=0.5, alpha=2), _X, _Y),
    "attention with a mask": (
        lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None], attn_mask=x[:, :, :3]),
        _X,
        _Y,
    ),
    "attention where": (
        lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None], attn_mask=x[:, :, :3] > -0.5),
        _X,
        _Y,
    ),
    "attention of groups": (
        lambda x, y: F.scaled_dot_product_attention(x, y, y, enable_gqa=True, is_causal=True, scale=0.3),
        _floats(2, 4, 5, 8),
        _floats(2, 2, 5, 8, seed=1),
    ),
}
BINARY |= SAMPLED

PROGRAMS: dict[str, Program] = {name: Program(function, (x,)) for name, (function, x) in UNARY.items()}
PROGRAMS |= {name: Program(function, (x, y)) for name, (function, x, y) in BINARY.items()}
