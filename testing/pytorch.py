"""Networks run operator by operator with PyTorch: another implementation, to check and measure against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from ..dialects.graph import ApplyOp, ConstantOp
from ..graph.network import Network
from ..graph.operator import operator

Array = npt.NDArray[Any]


def run_torch(net: Network, feeds: Mapping[str, Any]) -> list[Array]:
    """The outputs of a network, as it was built, for arrays by name."""
    return TorchNetwork(net).run(feeds)


class TorchNetwork:
    """A network, as it was built, with its constants as tensors on a PyTorch device.

    Convolutions and matrix products take the bias behind them, as PyTorch's layers do, and keep weights in the memory
    format of the layout; everything else is one call an operator.
    """

    def __init__(self, net: Network, device: str = "cpu") -> None:
        import torch

        self._torch = torch
        self.device = device
        self.net = net
        self._calls: list[tuple[Callable[..., Any], list[SSAValue], list[SSAValue], dict[str, Any]]] = []
        self._constants: dict[SSAValue, Any] = {}
        self._returned: list[SSAValue] = []
        functions = _functions(torch)
        skipped: set[ApplyOp] = set()
        for op in net.function.body.block.ops:
            if isinstance(op, ConstantOp):
                self._constants[op.result] = self.tensor(net.constant_values(op))
            elif isinstance(op, ReturnOp):
                self._returned = list(op.operands)
            elif isinstance(op, ApplyOp) and op not in skipped:
                bias = _bias_behind(op)
                name = op.operator.data
                if name not in functions:
                    raise ValueError(f"operator '{name}' has no PyTorch form here")
                options = {**operator(name).defaults, **op.options.values}
                options.pop("rounds", None)  # no option of PyTorch's: a switch of the process allows TF32
                inputs, results = [*op.inputs], list[SSAValue](op.outputs)
                if bias is not None:
                    skipped.add(bias)
                    inputs, results = [*inputs, bias.inputs[1]], list(bias.outputs)
                self._prepare(op, options)
                self._calls.append((functions[name], inputs, results, options))

    def tensor(self, array: Any) -> Any:
        """An array as a tensor on the device."""
        return self._torch.from_numpy(np.array(array)).to(self.device)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs for tensors in the order of the inputs."""
        values = dict(self._constants)
        values.update(zip(self.net.function.body.block.args, inputs, strict=True))
        for function, operands, results, options in self._calls:
            made = function(*(values[v] for v in operands), **options)
            values.update(zip(results, made if isinstance(made, tuple) else (made,), strict=True))
        return tuple(values[v] for v in self._returned)

    def run(self, feeds: Mapping[str, Any]) -> list[Array]:
        """The outputs for arrays by name."""
        with self._torch.inference_mode():
            outputs = self(*(self.tensor(feeds[name]) for name in self.net.input_names))
        return [output.cpu().numpy() for output in outputs]

    def _prepare(self, op: ApplyOp, options: Mapping[str, Any]) -> None:
        """Bring the weights of channels-last convolutions to PyTorch's order of axes, once."""
        name = op.operator.data
        if name not in ("conv2d", "conv3d", "conv2d_transpose") or not str(options["layout"]).endswith("C"):
            return
        torch, weight = self._torch, self._constants[op.inputs[1]]
        moved = weight.movedim((-2, -1) if name == "conv2d_transpose" else (-1, -2), (0, 1))
        form = torch.channels_last if moved.ndim == 4 else torch.channels_last_3d
        self._constants[op.inputs[1]] = moved.contiguous(memory_format=form)


def _bias_behind(op: ApplyOp) -> ApplyOp | None:
    """The bias that is added to a convolution or a matrix product, and to nothing else."""
    if op.operator.data not in ("conv2d", "conv3d", "dense") or not op.outputs[0].has_one_use():
        return None
    user = next(iter(op.outputs[0].uses)).operation
    return user if isinstance(user, ApplyOp) and user.operator.data == "bias_add" else None


def _first(x: Any, layout: str) -> Any:
    """Move channels to the front, where PyTorch has them."""
    return x.movedim(-1, 1) if layout.endswith("C") else x


def _back(x: Any, layout: str) -> Any:
    """Move channels back to where the layout has them."""
    return x.movedim(1, -1) if layout.endswith("C") else x


def _strided_slice(x: Any, *, begin: Any, end: Any, strides: Any, axes: Any) -> Any:
    """The part of a tensor from `begin` to `end` along some axes."""
    for number, axis in enumerate(range(len(begin)) if axes is None else axes):
        at = [slice(None)] * x.ndim
        at[axis] = slice(begin[number], end[number], strides[number] if strides is not None else 1)
        x = x[tuple(at)]
    return x


def _global_avg_pool(x: Any, *, layout: str) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if layout.endswith("C") else tuple(range(2, x.ndim))
    return x.mean(dim=axes, keepdim=True)


def _bias_add(x: Any, bias: Any, *, axis: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = -1
    return x + bias.reshape(shape)


def _windows(F: Any) -> dict[str, Callable[..., Any]]:
    """PyTorch's form of the operators that slide a window over an image, in either layout."""

    def conv(function: Any) -> Callable[..., Any]:
        def convolve(x: Any, w: Any, bias: Any = None, *, layout: str, **options: Any) -> Any:
            found = [options[name] for name in ("stride", "padding", "dilation", "groups")]
            return _back(function(_first(x, layout), w, bias, *found), layout)

        return convolve

    def conv2d_transpose(
        x: Any, w: Any, *, stride: Any, padding: Any, output_padding: Any, groups: int, layout: str
    ) -> Any:
        return _back(F.conv_transpose2d(_first(x, layout), w, None, stride, padding, output_padding, groups), layout)

    def max_pool(x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, layout: str) -> Any:
        return _back(F.max_pool2d(_first(x, layout), kernel, stride, padding, dilation, ceil_mode), layout)

    def avg_pool(
        x: Any, *, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, layout: str
    ) -> Any:
        return _back(F.avg_pool2d(_first(x, layout), kernel, stride, padding, ceil_mode, count_include_pad), layout)

    return {
        "conv2d": conv(F.conv2d),
        "conv3d": conv(F.conv3d),
        "conv2d_transpose": conv2d_transpose,
        "max_pool": max_pool,
        "avg_pool": avg_pool,
    }


def _functions(torch: Any) -> dict[str, Callable[..., Any]]:
    """PyTorch's form of each operator, with our options as keywords."""
    F = torch.nn.functional

    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, axis: int, epsilon: float) -> Any:
        normal = F.batch_norm(x.movedim(axis, 1), mean, variance, gamma, beta, False, 0.0, epsilon)
        return normal.movedim(1, axis)

    def layer_norm(x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> Any:
        assert axis == -1
        return F.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)

    def batch_matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
        return torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)

    return {
        **_windows(F),
        "global_avg_pool": _global_avg_pool,
        "batch_norm": batch_norm,
        "layer_norm": layer_norm,
        "bias_add": _bias_add,
        "dense": lambda x, w, bias=None: F.linear(x, w, bias),
        "batch_matmul": batch_matmul,
        "identity": lambda x: x,
        "sigmoid": torch.sigmoid,
        "where": torch.where,
        "strided_slice": _strided_slice,
        "split": lambda x, sections, axis: x.chunk(sections, axis),
        "stack": lambda *parts, axis: torch.stack(parts, dim=axis),
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
