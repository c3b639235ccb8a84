"""The key of a graph of Dynamo's: what decides the graph of core ATen that AOTAutograd makes of it for inference."""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...storage.code_digest import code_digest
from .kept_networks import NETWORK_CODE
from .options import TorchOptions
from .types import Tensor, has_symbols

GraphModule = Any
_MODULES = ("torch", "torch.nn.functional", "torch._C._nn", "torch._C._linalg", "torch._C._special", "torch._C._fft")
"""Modules of functions that are what PyTorch's version says."""
_NAMESPACES = ("aten", "prims")
"""Of operators whose forms are PyTorch's."""
_PLAIN = (bool, int, float, complex, str, type(None))


class _Unknown(Exception):
    """Something that a key cannot say."""


def key_of(gm: GraphModule, inputs: Sequence[Any], options: TorchOptions) -> tuple[str, ...] | None:
    """Return the key of a graph of functions of PyTorch's on the CPU; None for one that has something else.

    Names do not count, nor do values of tensors.
    """
    if options.tune or options.check or options.precision:  # networks are not kept then
        return None
    try:
        nodes = list(gm.graph.nodes)
        numbers = {node: number for number, node in enumerate(nodes)}
        rows = [_row(node, numbers) for node in nodes]
        given = [_input(tensor) for tensor in inputs]
    except _Unknown:
        return None
    state = settings()
    if state is None:
        return None
    return "\n".join(rows), "\n".join(given), *traced_by(options), repr(state)


def traced_by(options: TorchOptions) -> tuple[str, ...]:
    """Return what traces and converts a graph: versions, our code, and options."""
    import torch

    version = f"{torch.__version__} {torch.version.git_version}"
    return sys.version.split()[0], version, code_digest(NETWORK_CODE), repr(options)


def _row(node: Any, numbers: Mapping[Any, int]) -> str:
    if node.op == "placeholder":
        if has_symbols([node.meta.get("example_value")]):
            raise _Unknown
        kind = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        return f"placeholder {kind}"
    if node.op == "call_function":
        target = _name(node.target)
    elif node.op in ("call_method", "output"):
        target = str(node.target)
    else:
        raise _Unknown
    return f"{node.op} {target} {_shown(node.args, numbers)} {_shown(dict(node.kwargs), numbers)}"


def _name(function: Any) -> str:
    import torch

    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        name = str(function)
        if name.split(".")[0] not in _NAMESPACES:
            raise _Unknown
        return name
    found = functions_by_name().get(id(function))
    if found is None:
        raise _Unknown
    return found


@cache
def functions_by_name() -> Mapping[int, str]:
    """Return the names of PyTorch's functions by their identities: their own are not all distinct."""
    made = {id(function): f"operator.{name}" for name, function in vars(operator).items() if callable(function)}
    for module in _MODULES:
        for name, function in vars(sys.modules[module]).items():
            if callable(function) and not isinstance(function, type):
                made.setdefault(id(function), f"{module}.{name}")
    return made


def _shown(given: Any, numbers: Mapping[Any, int]) -> str:
    import torch

    if isinstance(given, torch.fx.Node):
        return f"%{numbers[given]}"
    if type(given) in _PLAIN or isinstance(given, torch.dtype | torch.device | torch.layout | torch.memory_format):
        return repr(given)
    if isinstance(given, slice):
        return f"slice{_shown((given.start, given.stop, given.step), numbers)}"
    if isinstance(given, list | tuple):
        return f"{type(given).__name__}({', '.join(_shown(each, numbers) for each in given)})"
    if isinstance(given, dict) and all(isinstance(name, str) for name in given):
        return f"{{{', '.join(f'{name}: {_shown(value, numbers)}' for name, value in given.items())}}}"
    if given is Ellipsis:
        return "..."
    raise _Unknown


def _input(tensor: Tensor) -> str:
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != "cpu":
        raise _Unknown
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        raise _Unknown
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if any(type(n) is not int for n in numbers):
        raise _Unknown
    marks = (type(tensor).__name__, tensor.dtype, tensor.requires_grad, tensor.is_inference(), tensor.ndim)
    return f"{' '.join(map(str, marks))} {numbers}"


def settings() -> list[Any] | None:
    """Return settings of PyTorch's that tracing or converting looks at; None where modes are on that change it."""
    import torch
    from torch._functorch import config

    if torch._C._is_any_autocast_enabled() or torch._C._len_torch_dispatch_stack():
        return None
    functorch = config.get_config_copy()
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch._C._get_mkldnn_enabled(),
        torch._C._get_math_sdp_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        sorted((name, value) for name, value in functorch.items() if type(value) in _PLAIN),
    ]
