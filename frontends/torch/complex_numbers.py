"""Complex numbers in a graph as pairs of real ones, (..., 2): real and imaginary parts along a further last axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .complex_operators import Convert, converters_from_pairs, converters_to_pairs, joined
from .errors import UnsupportedNode
from .fx import FxNode, is_getitem, name_of, real_tensors
from .importer import arguments_of
from .spectra import is_quick, to_real_numbers, to_spectrum, transformed

GraphModule = Any
_SPECTRA: Mapping[str, Convert] = {"_fft_r2c.default": to_spectrum, "_fft_c2c.default": transformed}
_REAL_SPECTRA: Mapping[str, Convert] = {"_fft_c2r.default": to_real_numbers}


def take_complex_numbers_apart(gm: GraphModule, spectra: bool = False) -> None:
    """Compute what real numbers are read from complex ones by operators on pairs, as far back as these have a form.

    Rotations of queries and keys are such, and filters of spectra. Fourier transforms are products with tables if
    `spectra`, otherwise where that is faster than PyTorch's. What has no form on pairs, and what is returned or read by
    it, is computed on complex numbers as before.
    """
    rewriting = _Rewriting(gm, spectra)
    for node in list(gm.graph.nodes):
        if _is_reader(node):
            rewriting.read(node)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def _is_reader(node: FxNode) -> bool:
    """True for an operator that gives real numbers for complex ones."""
    if node.op != "call_function" or is_getitem(node) or not hasattr(node.target, "_schema"):
        return False
    return not _is_complex(node) and any(map(_is_complex, node.all_input_nodes))


def _is_complex(node: FxNode) -> bool:
    dtype = getattr(node.meta.get("val"), "dtype", None)
    return dtype is not None and bool(dtype.is_complex)


class _Rewriting:
    """A graph whose complex nodes get pairs, each before the first node that asks for them."""

    def __init__(self, gm: GraphModule, spectra: bool) -> None:
        self.gm, self._spectra = gm, spectra
        self._to_pairs = {**converters_to_pairs(), **_SPECTRA}
        self._from_pairs = {**converters_from_pairs(), **_REAL_SPECTRA}
        self._pairs: dict[FxNode, FxNode] = {}

    @property
    def aten(self) -> Any:
        import torch

        return torch.ops.aten

    def read(self, node: FxNode) -> None:
        """Replace a node that reads complex numbers, unless that would return an input in the place of a view."""
        convert = self._form(node, self._from_pairs)
        if convert is None:
            return
        try:
            with self.gm.graph.inserting_before(node):
                made = convert(self, node, arguments_of(node))
        except Exception:  # it has no form on pairs, be it by a bug of ours, and what was added is read by nobody
            return
        if made.op == "call_function" or all(user.op != "output" for user in node.users):
            node.replace_all_uses_with(made)

    def _form(self, node: FxNode, known: Mapping[str, Convert]) -> Convert | None:
        name = name_of(node)
        is_left = name in (*_SPECTRA, *_REAL_SPECTRA) and not self._spectra and not is_quick(node, arguments_of(node))
        return None if is_left else known.get(name)

    def of(self, node: FxNode) -> FxNode:
        """Return the pairs of a complex tensor, or of a real one."""
        if node not in self._pairs:
            self._pairs[node] = self._converted(node)
        return self._pairs[node]

    def _converted(self, node: FxNode) -> FxNode:
        if not _is_complex(node):
            zeros = self.call(self.aten.zeros_like.default, node)
            return joined(self, node, zeros, node.meta["val"].shape)
        convert = self._form(node, self._to_pairs) if node.op == "call_function" else None
        if convert is not None:
            return convert(self, node, arguments_of(node))
        if node.meta["val"].is_conj():
            raise UnsupportedNode("a view of conjugate numbers stays PyTorch's")
        return self.call(self.aten.view_as_real.default, node)

    def call(self, operator: Any, *arguments: Any, **options: Any) -> FxNode:
        """Add an operator, with what PyTorch says of its result."""
        from torch.fx.node import map_arg

        made = self.gm.graph.call_function(operator, arguments, options)
        values, options = map_arg((arguments, options), lambda given: given.meta["val"])
        made.meta["val"] = operator(*values, **options)
        return made

    def constant(self, values: Any, like: Any) -> FxNode:
        """Add a buffer, of the type and on the device of another tensor."""
        name = f"table_{len(list(self.gm.buffers()))}"
        with real_tensors():
            self.gm.register_buffer(name, values.to(like.device, like.dtype), persistent=False)
        made = self.gm.graph.get_attr(name)
        made.meta["val"] = like.new_empty(values.shape)
        return made
