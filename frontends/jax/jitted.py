"""A JAX function whose StableHLO runs on kernels of loopwright."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.forkable import ForkableLock
from ...backends.targets import resolve_target
from ...dialects.target import Target
from ...graph.compiler import compile as compile_network
from ...graph.network import Network
from ...graph.runtime.executor import Executor
from ...graph.runtime.network import CompiledNetwork
from ...graph.runtime.on_cuda import CudaNetwork
from ...search.records.file import Record
from ..mlir.importer import from_mlir
from .on_cuda import CudaCalls, cuda_index

Array = npt.NDArray[Any]


def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: str | Target = "llvm",
    records: str | Sequence[Record] | None = None,
    static_argnums: int | Sequence[int] = (),
    layout: str | None = None,
) -> Any:
    """Return a function that computes what a JAX function does, by kernels of ours; also a decorator.

    The function is lowered by JAX once for each shape and type of its arguments (trees of arrays, as `jax.jit` takes
    them), imported by `lw.from_mlir` and compiled as by `lw.compile`, with its `records` and `layout`. Arguments on the
    CPU are read where they are; results are JAX's own arrays, on the device that the arguments are on. Under JAX's
    transformations it is a `jax.pure_callback`: its derivatives are those of the function itself, computed by JAX, and
    `vmap` compiles it for the batch.
    `f.network(*args)` and `f.compiled(*args)` are what it runs.
    """
    if function is not None and not callable(function):
        raise TypeError(f"jit takes a JAX function, got {type(function).__name__}")
    if function is None:
        return functools.partial(jit, target=target, records=records, static_argnums=static_argnums, layout=layout)
    return JittedFunction(function, resolve_target(target), records, static_argnums, layout)


@dataclass(frozen=True)
class _Lowered:
    """A function of leaves of one shape each: its network, what runs it, and how results are put together.

    `on_cuda` are its calls on arrays of CUDA devices, by their numbers.
    """

    flat: Callable[..., Any]
    network: Network
    compiled: CompiledNetwork
    executor: Executor
    out_tree: Any
    results: Sequence[Any]
    on_cuda: dict[int, CudaCalls] = field(default_factory=dict)


class JittedFunction:
    """A JAX function on kernels of ours, compiled for each shape that it is called with."""

    def __init__(
        self,
        function: Callable[..., Any],
        target: Target,
        records: Any,
        static: int | Sequence[int],
        layout: str | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._target, self._records, self._layout = function, target, records, layout
        self._static = (static,) if isinstance(static, int) else tuple(static)
        self._lowered: dict[Any, _Lowered] = {}
        self._batched: dict[Any, JittedFunction] = {}
        self._lock = ForkableLock()

    def network(self, *arguments: Any, **keywords: Any) -> Network:
        """Return the network of the function for arguments of these shapes, to be tuned."""
        return self._prepare(arguments, keywords)[0].network

    def compiled(self, *arguments: Any, **keywords: Any) -> CompiledNetwork:
        """Return the compiled network for arguments of these shapes."""
        return self._prepare(arguments, keywords)[0].compiled

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        jax = _jax()
        lowered, leaves = self._prepare(arguments, keywords)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            found = self._traced(lowered)(*leaves)
        else:
            device = _device_of(leaves)
            found = [_placed(array, device) for array in self._results(lowered, leaves, device)]
        return jax.tree.unflatten(lowered.out_tree, list(found))

    def _results(self, lowered: _Lowered, leaves: Sequence[Any], device: Any) -> Sequence[Any]:
        """Run on arrays of one device, or of None; results are on the CUDA device that it is, or NumPy's."""
        there = device is not None and self._target.kind == "cuda" and _have_elements(leaves, lowered.results)
        index = cuda_index(leaves[0]) if there else None
        if index is None:
            return _run(lowered, leaves)
        with self._lock:
            calls = lowered.on_cuda.get(index)
            if calls is None:
                network = lowered.compiled.loaded(index)
                assert isinstance(network, CudaNetwork)
                calls = lowered.on_cuda[index] = CudaCalls(network)
        return calls(leaves)

    def _traced(self, lowered: _Lowered) -> Callable[..., Any]:
        """Return the function of leaves that JAX's transformations are to see."""
        jax = _jax()

        @jax.custom_batching.custom_vmap  # type: ignore[untyped-decorator]
        def call(*leaves: Any) -> Any:
            run = functools.partial(_run, lowered)
            return jax.pure_callback(lambda *arrays: run(arrays), lowered.results, *leaves, vmap_method="sequential")

        @call.def_vmap  # type: ignore[untyped-decorator]
        def batch(size: int, batched: Sequence[bool], *leaves: Any) -> Any:
            axes = tuple(0 if is_batched else None for is_batched in batched)
            return self._of_batch(lowered, axes)(*leaves), [True] * len(lowered.results)

        @jax.custom_jvp  # type: ignore[untyped-decorator]
        def differentiable(*leaves: Any) -> Any:
            return call(*leaves)

        @differentiable.defjvp  # type: ignore[untyped-decorator]
        def derivative(leaves: Any, tangents: Any) -> Any:
            return differentiable(*leaves), jax.jvp(lowered.flat, leaves, tangents)[1]

        traced: Callable[..., Any] = differentiable
        return traced

    def _of_batch(self, lowered: _Lowered, axes: Sequence[int | None]) -> JittedFunction:
        """Return the function of batches of leaves, along their first axes, None for those that are in all examples."""
        key = (lowered.flat, axes)
        with self._lock:
            if key not in self._batched:
                batched = _jax().vmap(lowered.flat, in_axes=axes)
                batched.__name__ = lowered.network.name
                self._batched[key] = JittedFunction(batched, self._target, self._records, (), self._layout)
            return self._batched[key]

    def _prepare(self, arguments: Sequence[Any], keywords: Any) -> tuple[_Lowered, list[Any]]:
        """Return the function for arguments of these shapes, lowered and compiled the first time, and their leaves."""
        jax = _jax()
        dynamic = [a for k, a in enumerate(arguments) if k not in self._static] if self._static else arguments
        leaves, tree = jax.tree.flatten((tuple(dynamic), keywords))
        leaves = [leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf) for leaf in leaves]
        static = tuple((k, a) for k, a in enumerate(arguments) if k in self._static)
        key = (tuple((leaf.shape, leaf.dtype) for leaf in leaves), static, tree)
        found = self._lowered.get(key)
        if found is None:
            with self._lock:
                found = self._lowered.get(key) or self._lower(leaves, tree, static)
                self._lowered[key] = found
        return found, leaves

    def _lower(self, leaves: Sequence[Any], tree: Any, static: Sequence[tuple[int, Any]]) -> _Lowered:
        jax = _jax()
        trees: list[Any] = []

        def flat(*given: Any) -> Any:
            arguments, keywords = jax.tree.unflatten(tree, given)
            arguments = list(arguments)
            for place, value in static:
                arguments.insert(place, value)
            results, out_tree = jax.tree.flatten(self._function(*arguments, **keywords))
            trees.append(out_tree)
            return results

        struct: Any = jax.ShapeDtypeStruct
        lowered = jax.jit(flat, keep_unused=True).lower(*(struct(leaf.shape, leaf.dtype) for leaf in leaves))
        name = getattr(self._function, "__name__", "main")
        network = from_mlir(lowered.as_text(), name=name if name.isidentifier() else "main")
        compiled = compile_network(network, self._target, records=self._records, layout=self._layout)
        results = [struct(r.shape, r.dtype) for r in jax.tree.leaves(lowered.out_info)]
        return _Lowered(flat, network, compiled, compiled.executor(), trees[0], results)


def _run(lowered: _Lowered, leaves: Sequence[Any]) -> tuple[Array, ...]:
    """Run on arrays, which are read where they lie if that is the memory of the host."""
    made = lowered.executor(*(np.asarray(leaf) for leaf in leaves))
    return made if isinstance(made, tuple) else (made,)


def _jax() -> Any:
    """Return JAX; ImportError says how to install it where it is missing."""
    try:
        import jax
    except ImportError:
        raise ImportError("lw.jax needs JAX, which is not installed: pip install jax") from None
    return jax


def _device_of(leaves: Sequence[Any]) -> Any:
    """Return the device that all arguments are on; None where there are none, or several devices."""
    found = {device for leaf in leaves for device in leaf.devices()}
    return found.pop() if len(found) == 1 else None


def _placed(array: Any, device: Any) -> Any:
    """Return JAX's array on a device, on the memory of this one if that is there."""
    jax = _jax()
    made = jax.dlpack.from_dlpack(array) if _shared(array) else jax.numpy.asarray(np.asarray(array))
    return made if device is None or made.devices() == {device} else jax.device_put(made, device)


def _shared(array: Any) -> bool:
    """True for arrays that DLPack can hand over."""
    return array.dtype.kind in "fiu" and array.nbytes > 0


def _have_elements(*groups: Sequence[Any]) -> bool:
    return all(each.size for group in groups for each in group)
