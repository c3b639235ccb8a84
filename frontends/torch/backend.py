"""The backend of torch.compile: graphs of core ATen, of which regions are compiled and the rest stays PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .decompositions import decompositions
from .graph import CompiledGraph
from .options import TorchOptions
from .versions import Versions, has_symbols

GraphModule = Any
Compiled = Callable[..., Any]
Observer = Callable[[CompiledGraph], None]


def backend(
    gm: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **others: Any
) -> Compiled:
    """Compile a graph of torch.compile; `options` are those of TorchOptions, ValueError names one that is none."""
    if others.get("mode") not in (None, "default"):
        raise ValueError(f"the backend loopwright has no mode '{others['mode']}', only options")
    made: Compiled = compiled_by(TorchOptions.of(options))(gm, example_inputs)
    return made


def compiled_by(options: TorchOptions, observe: Observer | None = None, kernels: bool = True) -> Compiled:
    """Return a backend with options; `observe` is told of each graph, and without `kernels` PyTorch runs it all."""

    def of(kind: str) -> Compiled:
        def compile_graph(gm: GraphModule, inputs: Sequence[Any]) -> Compiled:
            return _boxed(_graph(gm, inputs, kind, options, observe, kernels))

        return compile_graph

    def compile_all(gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        import torch
        from torch._dynamo.backends.common import aot_autograd

        training = torch.is_grad_enabled() and any(getattr(each, "requires_grad", False) for each in example_inputs)
        made: Compiled = aot_autograd(
            fw_compiler=of("forward"),
            bw_compiler=of("backward"),
            inference_compiler=of("inference"),
            decompositions=decompositions(training),
        )(gm, example_inputs)
        return made

    return compile_all


def _boxed(function: Compiled) -> Compiled:
    from torch._functorch.aot_autograd import make_boxed_func

    made: Compiled = make_boxed_func(function)
    return made


def _graph(
    gm: GraphModule,
    inputs: Sequence[Any],
    kind: str,
    options: TorchOptions,
    observe: Observer | None,
    kernels: bool,
) -> Compiled:
    static = _static_places() if kind == "inference" else frozenset()

    def compiled(graph: GraphModule) -> CompiledGraph:
        made = CompiledGraph(graph, kind, static, options, kernels)
        if observe is not None:
            observe(made)
        return made

    return Versions(gm, compiled, options.versions) if has_symbols(inputs) else compiled(gm)


def _static_places() -> frozenset[int]:
    """The places of graph inputs that are parameters or buffers and are not written."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return frozenset()
    written = {k for k, info in enumerate(metadata.input_info) if info.mutates_data}
    return frozenset(metadata.static_input_indices) - written
