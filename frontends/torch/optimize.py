"""Modules compiled for one kind of inputs, without torch.compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from .code_key import Key, key_of
from .examples import Example, Examples
from .fx import inputs_of
from .kept_graphs import KeptGraph, keep, kept
from .options import TorchOptions

if TYPE_CHECKING:
    from .graph import CompiledGraph

Module = Any


@dataclass(frozen=True)
class _Program:
    """A program of torch.export whose regions are compiled.

    `given` are the parameters and buffers by the places of the graph's inputs, None for those of calls, of which
    `examples` are the shapes; `in_spec` and `out_spec` are the trees of arguments and results.
    """

    graph: CompiledGraph | KeptGraph
    given: list[Any]
    examples: list[Any]
    in_spec: Any
    out_spec: Any


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
    On CPUs a module that another process traced is not traced again, where all of its code can be compared.
    """
    import torch
    from torch.utils import _pytree as pytree

    known = TorchOptions.of(options)
    if isinstance(example_inputs, torch.Tensor):  # which a tuple would take apart, sample by sample
        example_inputs = (example_inputs,)
    if not isinstance(example_inputs, Sequence):
        raise TypeError(f"optimize takes a tuple of example inputs, got {type(example_inputs).__name__}")
    arguments = (tuple(example_inputs), dict(kwargs or {}))
    leaves, spec = pytree.tree_flatten(arguments)
    key = key_of(module, leaves, spec, known)
    found = None if key is None else _kept_program(key, module, arguments, known)
    if found is None:
        found, names = _traced_program(module, arguments, known)
        if key is not None:
            _keep(key, module, found, names)
    made: Module = _module_class()(found)
    return made


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _traced_program(module: Module, arguments: Arguments, options: TorchOptions) -> tuple[_Program, list[str | None]]:
    """Return a module's program, and the names of parameters and buffers by place."""
    import torch

    from .exported import decomposed, kept_tensors
    from .graph import CompiledGraph

    program = decomposed(torch.export.export(module, *arguments))
    signature = program.graph_signature
    written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if written:
        raise ValueError(f"the module writes {', '.join(written)}: torch.compile takes such modules, optimize does not")
    tensors, state = kept_tensors(program), {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    state |= signature.inputs_to_lifted_tensor_constants
    places = inputs_of(program.graph_module)
    static = frozenset(k for k, node in enumerate(places) if node.name in tensors)
    examples = [_example(node.meta["val"]) for node in places if node.name not in tensors]
    graph = CompiledGraph(program.graph_module, "inference", static, options)
    given, spec = [tensors.get(node.name) for node in places], program.call_spec
    made = _Program(graph, given, examples, spec.in_spec, spec.out_spec)
    return made, [state.get(node.name) for node in places]


def _keep(key: Key, module: Module, program: _Program, names: Sequence[str | None]) -> None:
    """Keep a program whose parameters and buffers are the module's, and whose trees can be written."""
    from torch.utils import _pytree as pytree

    for name, tensor in zip(names, program.given, strict=True):
        if name is not None and not _is_same(_tensor_at(module, name), tensor):
            return
    try:
        specs = [pytree.treespec_dumps(spec) for spec in (program.in_spec, program.out_spec)]
    except NotImplementedError:  # of a class that has no name to be written by
        return
    assert not isinstance(program.graph, KeptGraph)
    keep(key, program.graph, {"state": names, "specs": specs})


def _kept_program(key: Key, module: Module, arguments: Arguments, options: TorchOptions) -> _Program | None:
    from torch.utils import _pytree as pytree

    graph = kept(key)
    if graph is None:
        return None
    try:
        specs = [pytree.treespec_loads(text) for text in graph.about["specs"]]
    except (NotImplementedError, KeyError):  # of a class that nobody has imported
        return None
    names = graph.about["state"]
    given = [None if name is None else _tensor_at(module, name) for name in names]
    leaves = pytree.tree_leaves(arguments)
    examples = [_example(leaf) for leaf in leaves]
    if names.count(None) != len(leaves) or not graph.is_bound(given, options, _Again(module, arguments, options)):
        return None
    return _Program(graph, given, examples, *specs)


class _Again:
    """A module that is traced again, for inputs of the same shapes, when somebody asks for its graph."""

    def __init__(self, module: Module, arguments: Arguments, options: TorchOptions) -> None:
        from torch.utils import _pytree as pytree

        self._module, self._options = module, options
        self._examples, self._then = pytree.tree_map(_as_example, arguments), Examples.of(())

    def __call__(self) -> CompiledGraph:
        from torch.utils import _pytree as pytree

        arguments = pytree.tree_map(lambda each: each.zeros() if isinstance(each, Example) else each, self._examples)
        with self._then.settings():
            graph = _traced_program(self._module, arguments, self._options)[0].graph
        assert not isinstance(graph, KeptGraph)
        return graph


def _as_example(value: Any) -> Any:
    return Example.of(value) if hasattr(value, "dtype") else value


def _tensor_at(module: Module, name: str) -> Any:
    """Return the parameter or buffer of a name with dots, None where there is none."""
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_same(one: Any, other: Any) -> bool:
    return hasattr(one, "data_ptr") and one.data_ptr() == other.data_ptr() and one.shape == other.shape


@cache
def _module_class() -> Any:
    import torch
    from torch.utils import _pytree as pytree

    class OptimizedModule(torch.nn.Module):  # type: ignore[misc]
        """A program of torch.export whose regions are compiled; `graph` is what runs."""

        def __init__(self, program: _Program) -> None:
            super().__init__()
            self._in_spec, self._out_spec = program.in_spec, program.out_spec
            self._given: list[Any] = program.given
            self._open = [k for k, tensor in enumerate(program.given) if tensor is None]
            self._examples = program.examples
            _, plain = pytree.tree_flatten(((0,) * len(self._open), {}))
            self._is_plain = self._in_spec == plain
            """True where arguments are tensors by position, which need no walk through containers."""
            self._returns_one = self._out_spec.is_leaf()
            self.graph = program.graph

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """Run on inputs of the shapes and types of the example."""
            leaves = args
            if kwargs or not self._is_plain or len(args) != len(self._open):
                leaves, spec = pytree.tree_flatten((args, kwargs))
                if spec != self._in_spec:
                    raise ValueError(f"the module is compiled for arguments {self._in_spec}, got {spec}")
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
            return results[0] if self._returns_one else pytree.tree_unflatten(results, self._out_spec)

    return OptimizedModule


@dataclass(frozen=True)
class _Shape:
    """The shape, the type and the device of a tensor that a module is compiled for."""

    shape: Any
    dtype: Any
    device: Any


def _example(value: Any) -> Any:
    return _Shape(value.shape, value.dtype, value.device) if hasattr(value, "dtype") else value


def _fits(example: Any, given: Any) -> bool:
    if not isinstance(example, _Shape):
        return bool(example == given)
    if example.dtype is not getattr(given, "dtype", None) or example.device != given.device:
        return False
    return bool(example.shape == given.shape)


def _shown(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return repr(value)
    where = "" if value.device.type == "cpu" else f" on {value.device}"
    return f"{value.dtype}{list(value.shape)}{where}"
