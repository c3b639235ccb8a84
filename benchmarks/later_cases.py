"""Operators that were listed after the rules and the models that ship: shapes that nobody had looked at.

They are a third set of cases beside the two of `operator_cases.py`: odd extents, one to hundreds of channels, windows
from 1 to 31, long, wide and tiny products, and rows of 3 to 200,000 elements along any axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from operator_cases import (
    Case,
    Operator,
    attention,
    conv,
    conv1d,
    conv3d,
    dense,
    functional,
    layer_norm,
    matmul,
    of_one,
    of_two,
    permuted,
    placeholder,
    rms_norm,
    scores,
    transposed,
    weighted,
)

from loopwright import te, topi
from loopwright.te import Tensor


def of_shapes(
    ours: Callable[..., Tensor], peer: Callable[..., Any], *shapes: tuple[int, ...], dtypes: Sequence[str] = ()
) -> Operator:
    """An operator of tensors of different shapes; `peer` takes torch and the operands."""
    kinds = [*dtypes, *["float32"] * (len(shapes) - len(dtypes))]

    def tensors() -> list[Tensor]:
        inputs = [te.placeholder(s, d, name=f"x{n}") for n, (s, d) in enumerate(zip(shapes, kinds, strict=True))]
        return [*inputs, ours(*inputs)]

    return Operator(tensors, lambda torch, arrays: lambda: peer(torch, *arrays))


def softmax_along(axis: int, *shape: int) -> Operator:
    """Softmax along any axis."""
    return of_one(lambda x: topi.nn.softmax(x, axis), lambda torch, x: torch.softmax(x, axis), *shape)


def reduced(name: str, axis: int | None, *shape: int) -> Operator:
    """A reduction along an axis, or of all; a peer's positions are of 64 bits."""

    def peer(torch: Any, x: Any) -> Any:
        run = getattr(torch, {"max": "amax"}.get(name, name))
        return run(x) if axis is None else run(x, axis)

    return of_one(lambda x: getattr(topi, name)(x, axis), peer, *shape)


def group_norm(groups: int, c: int, size: int) -> Operator:
    """Group normalisation of an image with scale and shift; of as many groups as channels, instance normalisation."""

    def tensors() -> list[Tensor]:
        data, gamma, beta = placeholder("data", 1, c, size, size), placeholder("gamma", c), placeholder("beta", c)
        rows = topi.reshape(data, (1, groups, c // groups * size * size))
        made = topi.reshape(topi.nn.layer_norm(rows), (1, c, size, size))
        each = (c, 1, 1)
        found = topi.add(topi.multiply(made, topi.reshape(gamma, each)), topi.reshape(beta, each))
        return [data, gamma, beta, found]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, gamma, beta = arrays
        return lambda: torch.nn.functional.group_norm(data, groups, gamma, beta)

    return Operator(tensors, peer)


def channel_norm(c: int, size: int) -> Operator:
    """Layer normalisation over the channels of an image, as ConvNeXt has it between its stages."""

    def tensors() -> list[Tensor]:
        data, gamma, beta = placeholder("data", 1, c, size, size), placeholder("gamma", c), placeholder("beta", c)
        return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, axis=1)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, gamma, beta = arrays
        run = torch.nn.functional.layer_norm
        return lambda: run(data.permute(0, 2, 3, 1), (c,), gamma, beta).permute(0, 3, 1, 2)

    return Operator(tensors, peer)


def taken(table: tuple[int, ...], *indices: int) -> Operator:
    """Rows of a table at given indices, which the peer gets within bounds."""

    def tensors() -> list[Tensor]:
        data, at = placeholder("table", *table), te.placeholder(indices, "int32", name="at")
        return [data, at, topi.take(data, at)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, at = arrays
        within = at.clamp(0, table[0] - 1)
        return lambda: torch.nn.functional.embedding(within, data)

    return Operator(tensors, peer)


def _normalised(x: Tensor) -> Tensor:
    squares = topi.sum(topi.square(x), -1, keepdims=True)
    return topi.multiply(x, topi.rsqrt(topi.maximum(squares, 1e-24)))


def _log_sum_exp(x: Tensor) -> Tensor:
    largest = topi.max(x, -1, keepdims=True)
    total = topi.sum(topi.exp(topi.subtract(x, largest)), -1)
    return topi.add(topi.log(total), topi.squeeze(largest, -1))


def _mish(x: Tensor) -> Tensor:
    return topi.multiply(x, topi.tanh(topi.nn.softplus(x)))


def _padded(x: Tensor) -> Tensor:
    return topi.nn.pad(x, (0, 0, 3, 3), (0, 0, 3, 3))


def _joined(*tensors: Tensor) -> Tensor:
    return topi.concatenate(tensors, -1)


LISTED: tuple[tuple[str, str, Operator], ...] = (
    ("conv", "yolo stem 3x416x416 3x3/2", conv(1, 3, 416, 32, 3, 2)),
    ("conv", "alexnet stem 11x11/4", conv(1, 3, 227, 96, 11, 4)),
    ("conv", "alexnet 96x27x27 5x5", conv(1, 96, 27, 256, 5)),
    ("conv", "squeezenet 48x27x27 to 192", conv(1, 48, 27, 192, 3)),
    ("conv", "vgg 512x14x14, batch 8", conv(8, 512, 14, 512, 3)),
    ("conv", "resnet 256x14x14, batch 32", conv(32, 256, 14, 256, 3)),
    ("conv", "lenet 6x14x14 5x5, batch 64", conv(64, 6, 14, 16, 5)),
    ("conv", "cifar 16x32x32, batch 64", conv(64, 16, 32, 16, 3)),
    ("conv", "inception 128x17x17 7x7", conv(1, 128, 17, 128, 7)),
    ("conv", "100x37x37 to 36, batch 2", conv(2, 100, 37, 36, 3)),
    ("conv", "hrnet 18x64x64 to 36 /2", conv(1, 18, 64, 36, 3, 2)),
    ("dilated", "deeplab 256x33x33 by 6", conv(1, 256, 33, 256, 3, dilation=6)),
    ("dilated", "drn 128x45x45 by 4", conv(1, 128, 45, 128, 3, dilation=4)),
    ("pointwise", "mobilenet 24x112x112 to 144", conv(1, 24, 112, 144, 1)),
    ("pointwise", "resnet 256x14x14 to 1024, batch 32", conv(32, 256, 14, 1024, 1)),
    ("pointwise", "head 1280 to 1001", conv(1, 1280, 1, 1001, 1)),
    ("pointwise", "100x64x64 to 36", conv(1, 100, 64, 36, 1)),
    ("pointwise", "classes 256x129x129 to 21", conv(1, 256, 129, 21, 1)),
    ("pointwise", "squeeze 192 to 48, batch 64", conv(64, 192, 1, 48, 1)),
    ("grouped", "shufflenet 240x28x28 1x1 by 3", conv(1, 240, 28, 240, 1, groups=3)),
    ("grouped", "resnext 1024x14x14 by 32", conv(1, 1024, 14, 1024, 3, groups=32)),
    ("grouped", "resnext 128x56x56 by 32, batch 16", conv(16, 128, 56, 128, 3, groups=32)),
    ("depthwise", "replknet 128x56x56 31x31", conv(1, 128, 56, 128, 31, groups=128)),
    ("depthwise", "slak 256x28x28 13x13", conv(1, 256, 28, 256, 13, groups=256)),
    ("depthwise", "efficientnet 672x14x14 5x5/2", conv(1, 672, 14, 672, 5, 2, groups=672)),
    ("depthwise", "mobilenet 32x112x112, batch 16", conv(16, 32, 112, 32, 3, groups=32)),
    ("depthwise", "convnext 768x7x7 7x7, batch 32", conv(32, 768, 7, 768, 7, groups=768)),
    ("transposed", "dcgan 100x1x1 to 512 4x4", transposed(100, 1, 512, 4, 1, 0)),
    ("transposed", "fcn 21x34x34 16x16/8", transposed(21, 34, 21, 16, 8, 4)),
    ("transposed", "unet 512x16x16 to 256 2x2/2", transposed(512, 16, 256, 2, 2, 0)),
    ("transposed", "pix2pix 128x64x64 to 64 4x4/2", transposed(128, 64, 64, 4, 2, 1)),
    ("conv1d", "encodec 32x24000 k7", conv1d(32, 24000, 32, 7, 1)),
    ("conv1d", "whisper 80x3000 to 512 k3", conv1d(80, 3000, 512, 3, 1)),
    ("conv1d", "tdnn 512x300 k5", conv1d(512, 300, 512, 5, 1)),
    ("conv3d", "c3d 3x16x112x112 to 64", conv3d(3, 16, 112, 64)),
    ("conv3d", "vnet 16x24x48x48", conv3d(16, 24, 48, 16)),
    ("dense", "bert 384x1024 to 4096, gelu", dense(384, 1024, 4096, "gelu")),
    ("dense", "t5 200x512 to 2048, relu", dense(200, 512, 2048, "relu")),
    ("dense", "swin 196x384 to 1536, gelu", dense(196, 384, 1536, "gelu")),
    ("dense", "mixer 768x196 to 384, gelu", dense(768, 196, 384, "gelu")),
    ("dense", "dlrm 2048x13 to 512, relu", dense(2048, 13, 512, "relu")),
    ("dense", "alexnet 64x9216 to 4096", dense(64, 9216, 4096)),
    ("dense", "head 32x1280 to 1001", dense(32, 1280, 1001)),
    ("few rows", "llama 1x4096 to 11008", dense(1, 4096, 11008)),
    ("few rows", "alexnet 1x9216 to 4096", dense(1, 9216, 4096)),
    ("few rows", "4x1024 to 1024", dense(4, 1024, 1024)),
    ("few rows", "12x2048 to 2048", dense(12, 2048, 2048)),
    ("few rows", "lstm 2x300 to 1200", dense(2, 300, 1200)),
    ("matmul", "tall 10000x32x256", matmul(10000, 32, 256)),
    ("matmul", "wide 32x10000x100", matmul(32, 10000, 100)),
    ("matmul", "gradient 64x64x50000", matmul(64, 64, 50000)),
    ("matmul", "128x128x8192", matmul(128, 128, 8192)),
    ("matmul", "low rank 3000x3000x30", matmul(3000, 3000, 30)),
    ("matmul", "2560x1000x4096", matmul(2560, 1000, 4096)),
    ("matmul", "primes 997x1009x1013", matmul(997, 1009, 1013)),
    ("matmul", "4096x512x1024", matmul(4096, 512, 1024)),
    ("batched", "window scores 512x49", scores(512, 49, 49, 32)),
    ("batched", "long scores 8x1024", scores(8, 1024, 1024, 64)),
    ("batched", "long values 8x1024", weighted(8, 1024, 1024, 64)),
    ("batched", "rotations 10000 of 3x3", weighted(10000, 3, 3, 3)),
    ("batched", "2048 of 7x7 by 7x64", weighted(2048, 7, 7, 64)),
    ("batched", "decode values 64x1x300", weighted(64, 1, 300, 80)),
    ("attention", "16x256", attention(16, 256, 256, 64)),
    ("attention", "clip text 8x77", attention(8, 77, 77, 64)),
    ("attention", "cross 8x1024 of 77", attention(8, 1024, 77, 40)),
    ("rows", "softmax 6144x512", softmax_along(-1, 6144, 512)),
    ("rows", "softmax 64x10", softmax_along(-1, 64, 10)),
    ("rows", "softmax 1x200000", softmax_along(-1, 1, 200000)),
    ("rows", "softmax of 21 classes 256x256", softmax_along(1, 1, 21, 256, 256)),
    ("rows", "softmax 1000x64 along the first", softmax_along(0, 1000, 64)),
    ("rows", "log-softmax 128x1001", of_one(topi.nn.log_softmax, functional("log_softmax", -1), 128, 1001)),
    ("rows", "layer norm 8192x1024", layer_norm(8192, 1024)),
    ("rows", "layer norm 16x5000", layer_norm(16, 5000)),
    ("rows", "rms norm 8192x128", rms_norm(8192, 128)),
    ("rows", "l2 norm 512x128", of_one(_normalised, functional("normalize"), 512, 128)),
    ("rows", "group norm 320x64x64 by 32", group_norm(32, 320, 64)),
    ("rows", "instance norm 64x128x128", group_norm(64, 64, 128)),
    ("rows", "channel norm 96x56x56", channel_norm(96, 56)),
    ("reduction", "sum 32x1000x64 over the middle", reduced("sum", 1, 32, 1000, 64)),
    ("reduction", "sum 200000x16 over rows", reduced("sum", 0, 200000, 16)),
    ("reduction", "max 10000x30", reduced("max", -1, 10000, 30)),
    ("reduction", "mean of 1000x1000", reduced("mean", None, 1000, 1000)),
    ("reduction", "argmax 64x50257", reduced("argmax", -1, 64, 50257)),
    ("reduction", "argmax of 21 classes 256x256", reduced("argmax", 1, 1, 21, 256, 256)),
    ("reduction", "log-sum-exp 1000x1000", of_one(_log_sum_exp, lambda torch, x: torch.logsumexp(x, -1), 1000, 1000)),
    (
        "scan",
        "cumulative sum 128x512",
        of_one(lambda x: topi.cumsum(x, -1), lambda torch, x: torch.cumsum(x, -1), 128, 512),
    ),
    (
        "pool",
        "max 5x5 256x20x20",
        of_one(lambda x: topi.nn.max_pool(x, 5, 1, 2), functional("max_pool2d", 5, 1, 2), 1, 256, 20, 20),
    ),
    (
        "pool",
        "average 2x2/2 512x28x28, batch 8",
        of_one(lambda x: topi.nn.avg_pool(x, 2, 2), functional("avg_pool2d", 2, 2), 8, 512, 28, 28),
    ),
    (
        "pool",
        "adaptive 256x13x13 to 6",
        of_one(lambda x: topi.nn.adaptive_avg_pool(x, 6), functional("adaptive_avg_pool2d", 6), 1, 256, 13, 13),
    ),
    (
        "pool",
        "global average 2048x7x7, batch 32",
        of_one(topi.nn.global_avg_pool, functional("adaptive_avg_pool2d", 1), 32, 2048, 7, 7),
    ),
    (
        "elements",
        "gelu by tanh 1024x4096",
        of_one(lambda x: topi.nn.gelu(x, "tanh"), functional("gelu", approximate="tanh"), 1024, 4096),
    ),
    ("elements", "mish 256x38x38", of_one(_mish, functional("mish"), 1, 256, 38, 38)),
    (
        "elements",
        "bias, gelu, residual 512x768",
        of_shapes(
            lambda x, b, r: topi.add(topi.nn.gelu(topi.add(x, b)), r),
            lambda torch, x, b, r: torch.nn.functional.gelu(x + b) + r,
            (512, 768),
            (768,),
            (512, 768),
        ),
    ),
    ("elements", "column plus row 1000x1000", of_shapes(topi.add, lambda torch, a, b: a + b, (1000, 1), (1, 1000))),
    (
        "elements",
        "gate 672x14x14 by channel",
        of_shapes(topi.multiply, lambda torch, a, b: a * b, (1, 672, 14, 14), (1, 672, 1, 1)),
    ),
    (
        "elements",
        "masked 12x512x512",
        of_shapes(
            lambda x, m: topi.where(topi.greater(m, 0.0), x, -1e9),
            lambda torch, x, m: torch.where(m > 0, x, -1e9),
            (12, 512, 512),
            (512, 512),
        ),
    ),
    ("elements", "add 1x10", of_two(topi.add, lambda torch, a, b: a + b, 1, 10)),
    ("moves", "transpose 1023x517", of_one(*permuted(1, 0), 1023, 517)),
    ("moves", "windows 8x7x8x7x96", of_one(*permuted(0, 2, 1, 3, 4), 8, 7, 8, 7, 96)),
    ("moves", "to channels first 8x224x224x3", of_one(*permuted(0, 3, 1, 2), 8, 224, 224, 3)),
    ("moves", "heads 32x197x12x64", of_one(*permuted(0, 2, 1, 3), 32, 197, 12, 64)),
    ("moves", "reversed 64x128x96", of_one(*permuted(2, 1, 0), 64, 128, 96)),
    (
        "moves",
        "concatenate 3 of 4096x65 in rows",
        of_shapes(_joined, lambda torch, *x: torch.cat(x, -1), *[(4096, 65)] * 3),
    ),
    ("moves", "pad 64x112x112 by 3", of_one(_padded, functional("pad", (3, 3, 3, 3)), 1, 64, 112, 112)),
    ("moves", "embedding 512 of 30522x768", taken((30522, 768), 512)),
    ("moves", "position bias 2401 of 169x12", taken((169, 12), 2401)),
    (
        "moves",
        "every second 64x128x128",
        of_one(
            lambda x: topi.strided_slice(x, (0, 0, 0, 0), (1, 64, 128, 128), (1, 1, 2, 2)),
            lambda torch, x: x[:, :, ::2, ::2].contiguous(),
            1,
            64,
            128,
            128,
        ),
    ),
    (
        "moves",
        "repeat heads 8x512x64 by 4",
        of_one(lambda x: topi.repeat(x, 4, 1), lambda torch, x: x.repeat_interleave(4, 1), 1, 8, 512, 64),
    ),
    (
        "moves",
        "resize 64x128x128 to 256",
        of_one(
            lambda x: topi.resize2d(x, (256, 256), method="nearest", coordinate_mode="asymmetric"),
            functional("interpolate", (256, 256)),
            1,
            64,
            128,
            128,
        ),
    ),
    (
        "moves",
        "resize 256x33x33 to 129, corners",
        of_one(
            lambda x: topi.resize2d(x, (129, 129), coordinate_mode="align_corners"),
            functional("interpolate", (129, 129), mode="bilinear", align_corners=True),
            1,
            256,
            33,
            33,
        ),
    ),
)

LATER: tuple[Case, ...] = tuple(Case(name, kind, "later", operator) for kind, name, operator in LISTED)
