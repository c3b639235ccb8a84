"""Networks run operator by operator with PyTorch: another implementation of all of them, to check ours against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from xdsl.dialects.func import ReturnOp

from loopwright.dialects.graph import ApplyOp, ConstantOp
from loopwright.graph.network import Network
from loopwright.graph.operator import operator


def run_torch(net: Network, feeds: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs of a network that was not transformed."""
    values: dict[Any, Any] = {}
    for name, argument in zip(net.input_names, net.function.body.block.args, strict=True):
        values[argument] = torch.from_numpy(np.asarray(feeds[name]))
    for op in net.function.body.block.ops:
        if isinstance(op, ReturnOp):
            return [values[v].numpy() for v in op.operands]
        if isinstance(op, ConstantOp):
            values[op.result] = torch.from_numpy(np.array(net.constant_values(op)))
        else:
            assert isinstance(op, ApplyOp)
            name = op.operator.data
            options = {**operator(name).defaults, **op.options.values}
            made = _OPERATORS[name](*(values[v] for v in op.inputs), **options)
            values.update(zip(op.outputs, made if isinstance(made, tuple) else (made,), strict=True))
    raise AssertionError("a network returns")


def _first(x: Any, layout: str) -> Any:
    """Channels first."""
    return x.movedim(-1, 1) if layout.endswith("C") else x


def _back(x: Any, layout: str) -> Any:
    return x.movedim(1, -1).contiguous() if layout.endswith("C") else x


def _conv(count: int) -> Callable[..., Any]:
    def convolve(x: Any, w: Any, *, stride: Any, padding: Any, dilation: Any, layout: str, groups: int = 1) -> Any:
        if layout.endswith("C"):
            w = w.movedim((-1, -2), (0, 1))
        function = F.conv2d if count == 2 else F.conv3d
        return _back(function(_first(x, layout), w, None, stride, padding, dilation, groups), layout)

    return convolve


def _conv2d_transpose(x: Any, w: Any, *, stride: Any, padding: Any, output_padding: Any, groups: int) -> Any:
    return F.conv_transpose2d(x, w, None, stride, padding, output_padding, groups)


def _max_pool(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, layout: str) -> Any:
    return _back(F.max_pool2d(_first(x, layout), kernel, stride, padding, dilation, ceil_mode), layout)


def _avg_pool(
    x: Any, *, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, layout: str
) -> Any:
    return _back(F.avg_pool2d(_first(x, layout), kernel, stride, padding, ceil_mode, count_include_pad), layout)


def _global_avg_pool(x: Any, *, layout: str) -> Any:
    first = _first(x, layout)
    return _back(first.mean(dim=tuple(range(2, first.ndim)), keepdim=True), layout)


def _batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, axis: int, epsilon: float) -> Any:
    moved = F.batch_norm(x.movedim(axis, 1), mean, variance, gamma, beta, False, 0.0, epsilon)
    return moved.movedim(1, axis).contiguous()


def _bias_add(x: Any, bias: Any, *, axis: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = -1
    return x + bias.reshape(shape)


def _layer_norm(x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> Any:
    assert axis == -1
    return F.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)


def _batch_matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    return torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "conv2d": _conv(2),
    "conv3d": _conv(3),
    "conv2d_transpose": _conv2d_transpose,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_avg_pool": _global_avg_pool,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "bias_add": _bias_add,
    "dense": lambda x, w: F.linear(x, w),
    "batch_matmul": _batch_matmul,
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "relu": F.relu,
    "relu6": F.relu6,
    "tanh": torch.tanh,
    "gelu": lambda x, approximate: F.gelu(x, approximate=approximate),
    "softmax": lambda x, axis: F.softmax(x, dim=axis),
    "flatten": lambda x: x.flatten(1),
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, axes: x.permute(axes),
    "concatenate": lambda *parts, axis: torch.cat(parts, dim=axis),
}
