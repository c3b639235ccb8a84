"""A JAX function whose StableHLO runs on kernels of loopwright."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...backends.forkable import ForkableLock
from ...backends.targets import resolve_target
from ...dialects.target import Target
from ...graph.compiler import compile as compile_network
from ...graph.network import Network
from ...graph.runtime.executor import Executor
from ...graph.runtime.network import CompiledNetwork
from ..mlir.importer import from_mlir

if TYPE_CHECKING:
    from ...search.records.file import Record

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
    CPU are read where they are (DLPack), results are JAX's own arrays. Under `jax.jit`, `vmap` and the like it is a
    `jax.pure_callback`; it has no gradient. `f.network(*args)` and `f.compiled(*args)` are what it runs.
    """
    if function is None:
        return functools.partial(jit, target=target, records=records, static_argnums=static_argnums, layout=layout)
    return JittedFunction(function, resolve_target(target), records, static_argnums, layout)


@dataclass(frozen=True)
class _Lowered:
    """A function for arguments of one shape: its network, what runs it, and how results are put together."""

    network: Network
    compiled: CompiledNetwork
    executor: Executor
    kept: Sequence[int]
    out_tree: Any
    results: Sequence[Any]


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
            found = jax.pure_callback(
                lambda *arrays: self._run(lowered, arrays), lowered.results, *leaves, vmap_method="sequential"
            )
        else:
            found = [
                jax.dlpack.from_dlpack(a) if _shared(a) else jax.numpy.asarray(a) for a in self._run(lowered, leaves)
            ]
        return jax.tree.unflatten(lowered.out_tree, list(found))

    def _run(self, lowered: _Lowered, leaves: Sequence[Any]) -> tuple[Array, ...]:
        made = lowered.executor(*(_host(leaves[k]) for k in lowered.kept))
        return made if isinstance(made, tuple) else (made,)

    def _prepare(self, arguments: Sequence[Any], keywords: Any) -> tuple[_Lowered, list[Any]]:
        """Return the function for arguments of these shapes, lowered and compiled the first time, and their leaves."""
        jax = _jax()
        dynamic = [a for k, a in enumerate(arguments) if k not in self._static]
        leaves, tree = jax.tree.flatten((dynamic, keywords))
        leaves = [leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf) for leaf in leaves]
        shapes = tuple((jax.numpy.shape(leaf), str(jax.dtypes.canonicalize_dtype(leaf.dtype))) for leaf in leaves)
        static = tuple(a for k, a in enumerate(arguments) if k in self._static)
        key = (shapes, static, tree)
        with self._lock:
            if key not in self._lowered:
                self._lowered[key] = self._lower(arguments, keywords)
            return self._lowered[key], leaves

    def _lower(self, arguments: Sequence[Any], keywords: Any) -> _Lowered:
        jax = _jax()
        struct: Any = jax.ShapeDtypeStruct

        def abstract(leaf: Any) -> Any:
            kind = leaf if hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)
            return struct(kind.shape, jax.dtypes.canonicalize_dtype(kind.dtype))

        given = [a if k in self._static else jax.tree.map(abstract, a) for k, a in enumerate(arguments)]
        wrapped = jax.jit(self._function, static_argnums=self._static, keep_unused=True)
        lowered = wrapped.lower(*given, **jax.tree.map(abstract, keywords))
        name = getattr(self._function, "__name__", "main")
        network = from_mlir(lowered.as_text(), name=name if name.isidentifier() else "main")
        compiled = compile_network(network, self._target, records=self._records, layout=self._layout)
        results, out_tree = jax.tree.flatten(lowered.out_info)
        shapes = [struct(r.shape, r.dtype) for r in results]
        kept = range(len(network.input_names))
        return _Lowered(network, compiled, compiled.executor(), kept, out_tree, shapes)


def _jax() -> Any:
    """Return JAX; ImportError says how to install it where it is missing."""
    try:
        import jax
    except ImportError:
        raise ImportError("lw.jax needs JAX, which is not installed: pip install jax") from None
    return jax


def _host(leaf: Any) -> Array:
    """Return an array of JAX as NumPy's: where it lies, if that is the memory of the host."""
    try:
        array: Array = np.from_dlpack(leaf)
    except (TypeError, ValueError, RuntimeError, BufferError, AttributeError):  # on a device, or of a type without
        array = np.asarray(leaf)
    return array


def _shared(array: Array) -> bool:
    """True for arrays that DLPack can hand over."""
    return array.dtype.kind in "fiu" and array.size > 0
