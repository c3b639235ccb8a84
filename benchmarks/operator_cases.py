"""Operators as networks have them: shapes of real models, each beside PyTorch's call on the same arrays.

Cases come in pairs of one kind. The first of a pair may be looked at by whoever works on rules, on thresholds and on
the models that ship; the second is held out: it is measured, and nothing is fitted to it. Batch 1 where none is named,
fp32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright import te, topi
from loopwright.te import Tensor

Peer = Callable[[Any, Sequence[Any]], Callable[[], Any]]
"""`peer(torch, arrays)` returns the call that PyTorch would make on these operands."""


@dataclass(frozen=True)
class Operator:
    """A workload without its name: what it computes, by us and by PyTorch."""

    tensors: Callable[[], list[Tensor]]
    peer: Peer


@dataclass(frozen=True)
class Case:
    """A workload of the table; `kind` names its family, `half` is "shown", "held-out", "later" or "drawn"."""

    name: str
    kind: str
    half: str
    operator: Operator


def placeholder(name: str, *shape: int) -> Tensor:
    """Return an operand in fp32."""
    return te.placeholder(shape, name=name)


# -- convolutions -----------------------------------------------------------------------------------------------------


def conv(n: int, c: int, size: int, out: int, k: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Operator:
    """2-D convolution, NCHW, square, "same" padding, with bias and relu."""
    pad = dilation * (k // 2)

    def tensors() -> list[Tensor]:
        data, kernel, bias = (
            placeholder("data", n, c, size, size),
            placeholder("kernel", out, c // groups, k, k),
            placeholder("bias", out),
        )
        found = topi.nn.conv2d_nchw(data, kernel, stride, pad, dilation, groups)
        return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(found, bias))]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, kernel, bias = arrays
        run = torch.nn.functional.conv2d
        return lambda: torch.relu_(run(data, kernel, bias, stride, pad, dilation, groups))

    return Operator(tensors, peer)


def transposed(c: int, size: int, out: int, k: int, stride: int, pad: int) -> Operator:
    """Transposed 2-D convolution, NCHW, with relu."""

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", 1, c, size, size), placeholder("kernel", c, out, k, k)
        return [data, kernel, topi.nn.relu(topi.nn.conv2d_transpose_nchw(data, kernel, stride, pad))]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, kernel = arrays
        run = torch.nn.functional.conv_transpose2d
        return lambda: torch.relu_(run(data, kernel, None, stride, pad))

    return Operator(tensors, peer)


def conv1d(c: int, length: int, out: int, k: int, stride: int) -> Operator:
    """1-D convolution, NCW, without padding."""

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", 1, c, length), placeholder("kernel", out, c, k)
        return [data, kernel, topi.nn.conv1d_ncw(data, kernel, stride)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.nn.functional.conv1d(*arrays, None, stride))


def conv3d(c: int, depth: int, size: int, out: int) -> Operator:
    """3x3x3 convolution, NCDHW, "same" padding."""

    def tensors() -> list[Tensor]:
        data, kernel = placeholder("data", 1, c, depth, size, size), placeholder("kernel", out, c, 3, 3, 3)
        return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, 1)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.nn.functional.conv3d(*arrays, None, 1, 1))


# -- products ---------------------------------------------------------------------------------------------------------


def dense(rows: int, k: int, out: int, activation: str = "") -> Operator:
    """Rows times a weight of PyTorch's order (out, k), with bias and an activation."""

    def tensors() -> list[Tensor]:
        data, weight, bias = placeholder("data", rows, k), placeholder("weight", out, k), placeholder("bias", out)
        found = topi.dense(data, weight, bias)
        return [data, weight, bias, getattr(topi.nn, activation)(found) if activation else found]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        run = torch.nn.functional.linear
        then = getattr(torch.nn.functional, activation) if activation else None
        return (lambda: then(run(*arrays))) if then else (lambda: run(*arrays))

    return Operator(tensors, peer)


def matmul(m: int, n: int, k: int) -> Operator:
    """Plain product of row-major matrices."""

    def tensors() -> list[Tensor]:
        a, b = placeholder("a", m, k), placeholder("b", k, n)
        return [a, b, topi.matmul(a, b)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.matmul(*arrays))


def scores(heads: int, rows: int, columns: int, size: int) -> Operator:
    """Q K' of each head."""

    def tensors() -> list[Tensor]:
        q, k = placeholder("q", heads, rows, size), placeholder("k", heads, columns, size)
        return [q, k, topi.batch_matmul(q, k, transpose_b=True)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.matmul(arrays[0], arrays[1].mT))


def weighted(heads: int, rows: int, columns: int, size: int) -> Operator:
    """P V of each head."""

    def tensors() -> list[Tensor]:
        p, v = placeholder("p", heads, rows, columns), placeholder("v", heads, columns, size)
        return [p, v, topi.batch_matmul(p, v)]

    return Operator(tensors, lambda torch, arrays: lambda: torch.matmul(*arrays))


def attention(heads: int, rows: int, columns: int, size: int) -> Operator:
    """softmax(Q K' / sqrt(d)) V of each head, as one workload."""

    def tensors() -> list[Tensor]:
        q, k, v = (
            placeholder("q", heads, rows, size),
            placeholder("k", heads, columns, size),
            placeholder("v", heads, columns, size),
        )
        scaled = topi.multiply(topi.batch_matmul(q, k, transpose_b=True), 1 / math.sqrt(size))
        return [q, k, v, topi.batch_matmul(topi.nn.softmax(scaled), v)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        q, k, v = (x.unsqueeze(0) for x in arrays)
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return Operator(tensors, peer)


# -- rows, pools, elements, moves -------------------------------------------------------------------------------------


def of_one(ours: Callable[[Tensor], Tensor], peer: Callable[[Any, Any], Any], *shape: int) -> Operator:
    """An operator of one tensor."""

    def tensors() -> list[Tensor]:
        data = placeholder("data", *shape)
        return [data, ours(data)]

    return Operator(tensors, lambda torch, arrays: lambda: peer(torch, arrays[0]))


def of_two(ours: Callable[[Tensor, Tensor], Tensor], peer: Callable[[Any, Any, Any], Any], *shape: int) -> Operator:
    """An operator of two tensors of one shape."""

    def tensors() -> list[Tensor]:
        left, right = placeholder("left", *shape), placeholder("right", *shape)
        return [left, right, ours(left, right)]

    return Operator(tensors, lambda torch, arrays: lambda: peer(torch, *arrays))


def layer_norm(rows: int, width: int) -> Operator:
    """Layer normalisation with scale and shift."""

    def tensors() -> list[Tensor]:
        data, gamma, beta = placeholder("data", rows, width), placeholder("gamma", width), placeholder("beta", width)
        return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        data, gamma, beta = arrays
        return lambda: torch.nn.functional.layer_norm(data, (width,), gamma, beta)

    return Operator(tensors, peer)


def rms_norm(rows: int, width: int) -> Operator:
    """Root-mean-square normalisation with scale."""

    def tensors() -> list[Tensor]:
        data, gamma = placeholder("data", rows, width), placeholder("gamma", width)
        return [data, gamma, topi.nn.rms_norm(data, gamma)]

    def peer(torch: Any, arrays: Sequence[Any]) -> Callable[[], Any]:
        return lambda: torch.nn.functional.rms_norm(arrays[0], (width,), arrays[1], 1e-5)

    return Operator(tensors, peer)


def functional(name: str, *args: Any, **options: Any) -> Callable[[Any, Any], Any]:
    """Return the call of PyTorch's function of one tensor, with these options."""
    return lambda torch, data: getattr(torch.nn.functional, name)(data, *args, **options)


def permuted(*axes: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Any, Any], Any]]:
    """Return the copy with its axes in another order, ours and PyTorch's."""
    return lambda x: topi.transpose(x, axes), lambda torch, x: x.permute(axes).contiguous()


def _pixel_shuffle(x: Tensor) -> Tensor:
    n, c, h, w = map(int, x.shape)
    apart = topi.reshape(x, (n, c // 4, 2, 2, h, w))
    return topi.reshape(topi.transpose(apart, (0, 1, 4, 2, 5, 3)), (n, c // 4, 2 * h, 2 * w))


def _concatenated(left: Tensor, right: Tensor) -> Tensor:
    return topi.concatenate([left, right], 1)


PAIRS: tuple[tuple[str, tuple[str, Operator], tuple[str, Operator]], ...] = (
    ("conv", ("resnet 256x14x14 3x3", conv(1, 256, 14, 256, 3)), ("resnet 128x28x28 3x3", conv(1, 128, 28, 128, 3))),
    ("conv", ("resnet stem 7x7/2", conv(1, 3, 224, 64, 7, 2)), ("inception stem 3x3/2", conv(1, 3, 299, 32, 3, 2))),
    ("conv", ("vgg 256x56x56 3x3", conv(1, 256, 56, 256, 3)), ("unet 64x128x128 3x3", conv(1, 64, 128, 64, 3))),
    ("conv", ("yolo 64x80x80 3x3/2", conv(1, 64, 80, 128, 3, 2)), ("fpn 256x50x50 3x3", conv(1, 256, 50, 256, 3))),
    (
        "conv",
        ("densenet 128x14x14 to 32", conv(1, 128, 14, 32, 3)),
        ("ssd 256x10x10 3x3/2", conv(1, 256, 10, 512, 3, 2)),
    ),
    ("conv", ("srcnn 3x96x96 9x9", conv(1, 3, 96, 64, 9)), ("espcn 1x224x224 5x5", conv(1, 1, 224, 64, 5))),
    (
        "conv",
        ("resnet 512x7x7, batch 8", conv(8, 512, 7, 512, 3)),
        ("resnet 64x56x56, batch 16", conv(16, 64, 56, 64, 3)),
    ),
    (
        "dilated",
        ("deeplab 2048x14x14 by 12", conv(1, 2048, 14, 256, 3, dilation=12)),
        ("fcn 512x28x28 by 2", conv(1, 512, 28, 512, 3, dilation=2)),
    ),
    (
        "pointwise",
        ("resnet 256x56x56 to 512 /2", conv(1, 256, 56, 512, 1, 2)),
        ("resnet 1024x14x14 to 2048 /2", conv(1, 1024, 14, 2048, 1, 2)),
    ),
    (
        "pointwise",
        ("mobilenet 96x14x14 to 576", conv(1, 96, 14, 576, 1)),
        ("mobilenet 960x7x7 to 160", conv(1, 960, 7, 160, 1)),
    ),
    (
        "pointwise",
        ("efficientnet 40x28x28 to 240", conv(1, 40, 28, 240, 1)),
        ("densenet 448x14x14 to 128", conv(1, 448, 14, 128, 1)),
    ),
    ("pointwise", ("squeeze 240 to 10", conv(1, 240, 1, 10, 1)), ("excite 28 to 672", conv(1, 28, 1, 672, 1))),
    (
        "grouped",
        ("resnext 256x28x28 by 32", conv(1, 256, 28, 256, 3, groups=32)),
        ("regnet 320x14x14 by 20", conv(1, 320, 14, 320, 3, groups=20)),
    ),
    (
        "depthwise",
        ("mobilenet 144x56x56 3x3", conv(1, 144, 56, 144, 3, groups=144)),
        ("efficientnet 240x28x28 5x5", conv(1, 240, 28, 240, 5, groups=240)),
    ),
    (
        "depthwise",
        ("mobilenet 96x112x112 3x3/2", conv(1, 96, 112, 96, 3, 2, groups=96)),
        ("convnext 96x56x56 7x7", conv(1, 96, 56, 96, 7, groups=96)),
    ),
    (
        "transposed",
        ("dcgan 256x16x16 4x4/2", transposed(256, 16, 128, 4, 2, 1)),
        ("unet 128x64x64 2x2/2", transposed(128, 64, 64, 2, 2, 0)),
    ),
    (
        "conv1d",
        ("m5 1x16000 k80/4", conv1d(1, 16000, 64, 80, 4)),
        ("wav2vec 512x3199 k3/2", conv1d(512, 3199, 512, 3, 2)),
    ),
    ("conv3d", ("r3d 64x8x56x56", conv3d(64, 8, 56, 64)), ("unet3d 32x32x32x32", conv3d(32, 32, 32, 64))),
    (
        "dense",
        ("bert 128x768 to 3072, gelu", dense(128, 768, 3072, "gelu")),
        ("vit 197x768 to 3072, gelu", dense(197, 768, 3072, "gelu")),
    ),
    ("dense", ("bert 128x768 to 768", dense(128, 768, 768)), ("vit 197x3072 to 768", dense(197, 3072, 768))),
    (
        "dense",
        ("swin 3136x96 to 288", dense(3136, 96, 288)),
        ("convnext 784x192 to 768, gelu", dense(784, 192, 768, "gelu")),
    ),
    (
        "dense",
        ("llama 64x2048 to 5632, silu", dense(64, 2048, 5632, "silu")),
        ("llama 512x4096 to 4096", dense(512, 4096, 4096)),
    ),
    ("few rows", ("llama 1x4096 to 4096", dense(1, 4096, 4096)), ("gpt2 1x768 to 50257", dense(1, 768, 50257))),
    ("few rows", ("head 1x1280 to 1000", dense(1, 1280, 1000)), ("head 16x2048 to 1000", dense(16, 2048, 1000))),
    ("few rows", ("lstm 1x512 to 2048", dense(1, 512, 2048)), ("gru 8x256 to 768", dense(8, 256, 768))),
    ("matmul", ("1000x1512x2056", matmul(1000, 1512, 2056)), ("777x1025x513", matmul(777, 1025, 513))),
    ("matmul", ("2048 cubed", matmul(2048, 2048, 2048)), ("1536x1536x1536", matmul(1536, 1536, 1536))),
    ("batched", ("bert scores 12x128", scores(12, 128, 128, 64)), ("vit scores 12x197", scores(12, 197, 197, 64))),
    ("batched", ("bert values 12x128", weighted(12, 128, 128, 64)), ("swin values 192x49", weighted(192, 49, 49, 32))),
    ("attention", ("bert 12x128", attention(12, 128, 128, 64)), ("gpt2 decode 12x1 of 512", attention(12, 1, 512, 64))),
    (
        "rows",
        ("softmax bert 1536x128", of_one(topi.nn.softmax, functional("softmax", -1), 1536, 128)),
        ("softmax vit 2364x197", of_one(topi.nn.softmax, functional("softmax", -1), 2364, 197)),
    ),
    (
        "rows",
        ("softmax 1x50257", of_one(topi.nn.softmax, functional("softmax", -1), 1, 50257)),
        ("log-softmax 512x32000", of_one(topi.nn.log_softmax, functional("log_softmax", -1), 512, 32000)),
    ),
    ("rows", ("layer norm 128x768", layer_norm(128, 768)), ("layer norm 3136x96", layer_norm(3136, 96))),
    ("rows", ("rms norm 512x2048", rms_norm(512, 2048)), ("rms norm 64x4096", rms_norm(64, 4096))),
    (
        "reduction",
        ("sum 8192x1024 over rows", of_one(lambda x: topi.sum(x, 0), lambda torch, x: x.sum(0), 8192, 1024)),
        ("mean 197x768 over rows", of_one(lambda x: topi.mean(x, 0), lambda torch, x: x.mean(0), 197, 768)),
    ),
    (
        "pool",
        (
            "max 3x3/2 64x112x112",
            of_one(lambda x: topi.nn.max_pool(x, 3, 2, 1), functional("max_pool2d", 3, 2, 1), 1, 64, 112, 112),
        ),
        (
            "average 3x3 288x35x35",
            of_one(
                lambda x: topi.nn.avg_pool(x, 3, 1, 1, count_include_pad=True),
                functional("avg_pool2d", 3, 1, 1),
                1,
                288,
                35,
                35,
            ),
        ),
    ),
    (
        "pool",
        (
            "global average 2048x7x7",
            of_one(topi.nn.global_avg_pool, functional("adaptive_avg_pool2d", 1), 1, 2048, 7, 7),
        ),
        (
            "global average 240x28x28",
            of_one(topi.nn.global_avg_pool, functional("adaptive_avg_pool2d", 1), 1, 240, 28, 28),
        ),
    ),
    (
        "elements",
        ("gelu 197x3072", of_one(topi.nn.gelu, functional("gelu"), 197, 3072)),
        ("hard swish 240x28x28", of_one(topi.nn.hard_swish, functional("hardswish"), 1, 240, 28, 28)),
    ),
    (
        "elements",
        (
            "add, relu 256x56x56",
            of_two(lambda a, b: topi.nn.relu(topi.add(a, b)), lambda torch, a, b: torch.relu_(a + b), 1, 256, 56, 56),
        ),
        (
            "silu times gate 512x5632",
            of_two(
                lambda a, b: topi.multiply(topi.nn.silu(a), b),
                lambda torch, a, b: torch.nn.functional.silu(a) * b,
                512,
                5632,
            ),
        ),
    ),
    (
        "moves",
        ("transpose 4096x1000", of_one(*permuted(1, 0), 4096, 1000)),
        ("heads 128x12x64", of_one(*permuted(0, 2, 1, 3), 1, 128, 12, 64)),
    ),
    (
        "moves",
        ("to channels last 64x56x56", of_one(*permuted(0, 2, 3, 1), 1, 64, 56, 56)),
        ("pixel shuffle 256x56x56", of_one(_pixel_shuffle, functional("pixel_shuffle", 2), 1, 256, 56, 56)),
    ),
    (
        "moves",
        ("concatenate 2 of 116x28x28", of_two(_concatenated, lambda torch, a, b: torch.cat([a, b], 1), 1, 116, 28, 28)),
        ("concatenate 2 of 512x64x64", of_two(_concatenated, lambda torch, a, b: torch.cat([a, b], 1), 1, 512, 64, 64)),
    ),
    (
        "moves",
        (
            "resize 21x28x28 to 224",
            of_one(
                lambda x: topi.resize2d(x, (224, 224)),
                functional("interpolate", (224, 224), mode="bilinear"),
                1,
                21,
                28,
                28,
            ),
        ),
        (
            "resize 256x20x20 to 40",
            of_one(
                lambda x: topi.resize2d(x, (40, 40), method="nearest", coordinate_mode="asymmetric"),
                functional("interpolate", (40, 40)),
                1,
                256,
                20,
                20,
            ),
        ),
    ),
)

CASES: tuple[Case, ...] = tuple(
    Case(name, kind, half, operator)
    for kind, shown, hidden in PAIRS
    for half, (name, operator) in (("shown", shown), ("held-out", hidden))
)
