"""The backend of torch.compile: graphs of core ATen, of which regions are compiled and the rest stays PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...passes.collector import old_objects_spared
from .dynamo_key import key_of
from .examples import Examples
from .kept_graphs import keep, kept
from .options import TorchOptions
from .recurrent_layers import compiled_around_long_layers, trace_recurrent_layers
from .region import RegionWarning
from .types import has_symbols
from .whole_operators import whole_operators

if TYPE_CHECKING:
    from .graph import CompiledGraph

GraphModule = Any
Compiled = Callable[..., Any]
Observer = Callable[["CompiledGraph"], None]
_TO_DO = (
    "num_mutated_inp_runtime_indices",
    "num_outputs_aliased",
    "num_intermediate_bases",
    "dynamic_outputs",
    "tokens",
    "is_rng_op_functionalized",
)
"""Notes of AOTAutograd's on a graph that are empty or 0 where nothing has to be done around it."""

_GIVES_MEMORY = "Encountered a set_ on a graph input"
"""In AOTAutograd's refusal of graphs that give an input other memory, as `weight.data *= mask` does."""


def __getattr__(name: str) -> Any:
    """Return the backend as `backend`: who takes it, as torch.compile does by its name, has recurrent layers traced.

    Dynamo asks for that before it calls a backend.
    """
    if name != "backend":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    trace_recurrent_layers()
    return _backend


def _backend(
    gm: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **others: Any
) -> Compiled:
    """Compile a graph of torch.compile; `options` are those of TorchOptions, ValueError names one that is none."""
    if others.get("mode") not in (None, "default"):
        raise ValueError(f"the backend loopwright has no mode '{others['mode']}', only options")
    made: Compiled = compiled_by(TorchOptions.of(options))(gm, example_inputs)
    return made


def compiled_by(options: TorchOptions, observe: Observer | None = None, kernels: bool = True) -> Compiled:
    """Return a backend with options; `observe` is told of each graph, and without `kernels` PyTorch runs it all."""

    def compile_all(gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        in_parts = compiled_around_long_layers(gm, compile_all)
        if in_parts is not None:
            return in_parts
        key = key_of(gm, example_inputs, options) if observe is None and kernels else None
        if key is not None:
            found, again = kept(key), partial(_traced_again, gm, Examples.of(example_inputs), options)
            if found is not None and found.is_bound(example_inputs, options, again):
                return found.run
        traced = _Traced(options, observe, kernels)
        try:
            with old_objects_spared():
                made = traced.compiled(gm, example_inputs)
        except AssertionError as error:
            if _GIVES_MEMORY not in str(error):
                raise
            warnings.warn("a graph runs in PyTorch: it gives an input other memory", RegionWarning, stacklevel=2)
            return gm.forward  # type: ignore[no-any-return]
        if key is not None and traced.whole is not None:
            keep(key, traced.whole)
        return made

    return compile_all


class _Traced:
    """AOTAutograd's way from a graph of Dynamo's to graphs of core ATen, which are compiled.

    `whole` is the only one, where it has nothing to do around it.
    """

    def __init__(self, options: TorchOptions, observe: Observer | None, kernels: bool) -> None:
        self._options, self._observe, self._kernels = options, observe, kernels
        self._direct: list[Compiled] = []
        self.whole: CompiledGraph | None = None

    def compiled(self, gm: GraphModule, inputs: Sequence[Any]) -> Compiled:
        """Return the graph as a function."""
        import torch
        from torch._dynamo.backends.common import aot_autograd

        from .decompositions import decompositions

        training = torch.is_grad_enabled() and any(getattr(each, "requires_grad", False) for each in inputs)
        compiler = aot_autograd(
            fw_compiler=partial(self._graph, "forward", len(inputs)),
            bw_compiler=partial(self._graph, "backward", len(inputs)),
            inference_compiler=partial(self._graph, "inference", len(inputs)),
            decompositions=decompositions(training),
            keep_inference_input_mutations=not training and self._writes_inputs(inputs),
        )
        with _unrolled_lstms() if training else whole_operators():
            made: Compiled = compiler(gm, inputs)
        return self._direct[0] if self._direct else made

    def _writes_inputs(self, inputs: Sequence[Any]) -> bool:
        """True where graphs write their inputs themselves: on CPUs, and unless inputs are padded, which copies them."""
        devices = {each.device.type for each in inputs if hasattr(each, "device")}
        return not self._options.buckets and devices <= {"cpu"}

    def _graph(self, kind: str, given: int, gm: GraphModule, inputs: Sequence[Any]) -> Compiled:
        from .buckets import Buckets
        from .graph import CompiledGraph
        from .versions import Versions
        from .written_inputs import writes_otherwise

        if kind == "inference" and writes_otherwise(gm):
            raise AssertionError(_GIVES_MEMORY)  # as AOTAutograd says where inputs are written behind the graph
        static = _static_places() if kind == "inference" else frozenset()
        graphs: list[CompiledGraph] = []

        def compiled(graph: GraphModule, padding: str = "") -> Compiled:
            made = CompiledGraph(graph, kind, static, self._options, self._kernels, padding)
            graphs.append(made)
            if self._observe is not None:
                self._observe(made)
            return made.run

        found: Compiled
        if has_symbols(inputs):
            buckets = self._options.buckets
            found = Versions(gm, compiled, self._options.versions, Buckets(inputs, buckets) if buckets else None)
        else:
            found = compiled(gm)
        if kind == "inference" and len(inputs) == given and _is_whole():
            self._direct.append(found)
            self.whole = graphs[0] if graphs and not graphs[0].written else None  # aliases are not in a key
        return _boxed(found)


def _traced_again(gm: GraphModule, examples: Examples, options: TorchOptions) -> CompiledGraph:
    """Trace a graph whose parts were kept, for inputs such as it was compiled for."""
    from torch._guards import TracingContext, tracing

    traced, mode = _Traced(options, None, True), examples.mode()
    with examples.settings(), tracing(TracingContext(mode)):
        traced.compiled(gm, examples.tensors(mode))
    if traced.whole is None:
        raise RuntimeError("a graph is traced otherwise than before")
    return traced.whole


@contextmanager
def _unrolled_lstms() -> Iterator[None]:
    """Have PyTorch trace layers of LSTMs step by step, as those of GRUs, and not as an operator of oneDNN's.

    It takes that one where the layer's data needs no gradient, for inference: its gradient, if the parameters need one,
    then reads a workspace that is not there (PyTorch 2.13).
    """
    import torch

    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _boxed(function: Compiled) -> Compiled:
    from torch._functorch.aot_autograd import make_boxed_func

    made: Compiled = make_boxed_func(function)
    return made


def _static_places() -> frozenset[int]:
    """The places of graph inputs that are parameters or buffers and are not written."""
    metadata = _metadata()
    if metadata is None:
        return frozenset()
    written = {k for k, info in enumerate(metadata.input_info) if info.mutates_data}
    return frozenset(metadata.static_input_indices) - written


def _is_whole() -> bool:
    """True where AOTAutograd has nothing to do around the graph under way, whose own function can then be called.

    It would otherwise write inputs, make views of them, mark extents, or take autocast and subclasses apart: the cases
    are those of its runtime wrapper, which takes 1.7 us a call (AMD EPYC) to find that there is none.
    """
    import torch

    metadata = _metadata()
    return (
        metadata is not None
        and not torch._C._is_any_autocast_enabled()
        and not any(getattr(metadata, name, True) for name in _TO_DO)
        and getattr(metadata, "grad_enabled_mutation", True) is None
        and all(
            type(each).__name__ == "PlainTensorMeta"
            for each in (*metadata.subclass_inp_meta, *metadata.subclass_fw_graph_out_meta)
        )
    )


def _metadata() -> Any:
    """AOTAutograd's notes on the graph that it compiles now."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    return None if context is None else context.fw_metadata
