"""Modules compiled for one kind of inputs, without torch.compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .exported import decomposed, kept_tensors
from .graph import CompiledGraph
from .options import TorchOptions

Module = Any


def optimize(
    module: Module,
    example_inputs: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
) -> Module:
    """Return a module that computes what another one does, for inputs of the shapes, types and devices of the example.

    It is traced by torch.export, shares the parameters of the original, sees that they are written in place, and
    computes no gradients. ValueError for a module that writes buffers, and for inputs of another shape or type.
    """
    import torch

    program = decomposed(torch.export.export(module, tuple(example_inputs), dict(kwargs or {})))
    signature = program.graph_signature
    written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if written:
        raise ValueError(f"the module writes {', '.join(written)}: torch.compile takes such modules, optimize does not")
    made: Module = _module_class()(program, TorchOptions.of(options))
    return made


@cache
def _module_class() -> Any:
    import torch
    from torch.utils import _pytree as pytree

    class OptimizedModule(torch.nn.Module):  # type: ignore[misc]
        """A program of torch.export whose regions are compiled; `graph` is what runs."""

        def __init__(self, program: Any, options: TorchOptions) -> None:
            super().__init__()
            kept = kept_tensors(program)
            gm = program.graph_module
            places = [node for node in gm.graph.nodes if node.op == "placeholder"]
            self._spec = program.call_spec
            _, plain = pytree.tree_flatten(((0,) * len(program.graph_signature.user_inputs), {}))
            self._is_plain = self._spec.in_spec == plain
            """True where arguments are tensors by position, which need no walk through containers."""
            self._returns_one = self._spec.out_spec.is_leaf()
            self._given: list[Any] = [kept.get(node.name) for node in places]
            self._open = [k for k, node in enumerate(places) if node.name not in kept]
            self._examples = [_example(places[k].meta["val"]) for k in self._open]
            static = frozenset(k for k, node in enumerate(places) if node.name in kept)
            self.graph = CompiledGraph(gm, "inference", static, options)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """Run on inputs of the shapes and types of the example."""
            leaves = args
            if kwargs or not self._is_plain or len(args) != len(self._open):
                leaves, spec = pytree.tree_flatten((args, kwargs))
                if spec != self._spec.in_spec:
                    raise ValueError(f"the module is compiled for arguments {self._spec.in_spec}, got {spec}")
            inputs = list(self._given)
            for place, example, leaf in zip(self._open, self._examples, leaves, strict=True):
                if not _fits(example, leaf):
                    raise ValueError(f"the module is compiled for {_shown(example)}, got {_shown(leaf)}")
                inputs[place] = leaf
            if torch.is_grad_enabled():
                with torch.no_grad():
                    results = self.graph.run(*inputs)
            else:
                results = self.graph.run(*inputs)
            return results[0] if self._returns_one else pytree.tree_unflatten(results, self._spec.out_spec)

    return OptimizedModule


@dataclass(frozen=True)
class _Example:
    """The shape, the type and the device of a tensor that a module is compiled for."""

    shape: Any
    dtype: Any
    device: Any


def _example(value: Any) -> Any:
    return _Example(value.shape, value.dtype, value.device) if hasattr(value, "dtype") else value


def _fits(example: Any, given: Any) -> bool:
    if not isinstance(example, _Example):
        return bool(example == given)
    if example.dtype is not getattr(given, "dtype", None) or example.device != given.device:
        return False
    return bool(example.shape == given.shape)


def _shown(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return repr(value)
    where = "" if value.device.type == "cpu" else f" on {value.device}"
    return f"{value.dtype}{list(value.shape)}{where}"
