"""Graphs of core ATen in the cache folder, by the graphs of Dynamo's that they were traced from.

What AOTAutograd takes is most of what a first call does beyond Dynamo where all networks are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from types import MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...storage.binary_cache import BinaryCache
from ...storage.folders import cache_folder
from .fx import real_tensors
from .options import TorchOptions
from .parts import Part, PartForm
from .recurrent_operator import recurrent_layer
from .region import Region
from .types import Tensor, own_name

if TYPE_CHECKING:
    from .graph import CompiledGraph

GraphModule = Any
Key = tuple[str, ...]
_MOST_BYTES = 1 << 28
"""Above this the oldest graphs go: some 50 KB each, and constants."""
_MOST_CONSTANT_BYTES = 1 << 24
"""Graphs with more bytes of folded constants are not kept: reading them takes longer than to trace."""


def keep(key: Key, graph: CompiledGraph, about: Mapping[str, Any] | None = None) -> None:
    """Keep a graph, with what else is to be known `about` it, unless its code or its constants cannot be written."""
    code = graph.module.graph.python_code("self")
    known = _globals()
    used = [name for name in code.globals if re.search(rf"\b{name}\b", code.src)]
    constants = {node.target: _tensor(graph.module, node) for node in graph.module.graph.nodes if node.op == "get_attr"}
    if not all(name in known for name in used) or any(map(_is_other, constants.values())):
        return
    if sum(each.nbytes for each in constants.values()) > _MOST_CONSTANT_BYTES:
        return
    entry = {
        "code": code.src,
        "constants": [(name, own_name(each.dtype), each.shape, each.nbytes) for name, each in constants.items()],
        "regions": _regions(graph),
        "about": about or {},
    }
    cache = _cache()
    cache.put(key, json.dumps(entry), *(_bytes(each) for each in constants.values()))
    cache.prune()


def kept(key: Key) -> KeptGraph | None:
    """Return the graph that is kept for a key."""
    entry = _cache().view(key)
    return None if entry is None else KeptGraph(json.loads(entry[0]), entry[1])


class KeptGraph:
    """A graph that another process traced; `regions` and `run` are there once it is bound to inputs."""

    def __init__(self, entry: Mapping[str, Any], binary: memoryview) -> None:
        self._entry = entry
        self.about: Mapping[str, Any] = entry["about"]
        ends = accumulate((each[3] for each in entry["constants"]), initial=0)
        self._constants = {
            name: _stored(binary[start:end], dtype, shape)
            for (name, dtype, shape, _), (start, end) in zip(entry["constants"], pairwise(ends), strict=True)
        }
        self.regions: list[Region] = []
        self.run: Callable[..., Any]

    def is_bound(self, inputs: Sequence[Any], options: TorchOptions, trace: Callable[[], CompiledGraph]) -> bool:
        """Take the networks of all regions for these parameters; False where one is not kept.

        `trace` makes the graph, for regions that compile for others.
        """
        made, traced = SimpleNamespace(**self._constants), _Traced(trace)
        with real_tensors():
            for number, (name, form, static) in enumerate(self._entry["regions"]):
                part = Part(partial(traced.graph_of, number), PartForm.from_json(form))
                arguments = {place: inputs[of] if isinstance(of, int) else self._constants[of] for place, of in static}
                region = Region(name, part, frozenset(arguments), options)
                if not region.bind_kept(arguments):
                    return False
                setattr(made, name, region)
                self.regions.append(region)
        recurrent_layer()  # which the code may call
        namespace: dict[str, Any] = dict(_globals())
        exec(compile(self._entry["code"], "<kept graph>", "exec"), namespace)  # ours, from a folder of this user's
        self.run = MethodType(namespace["forward"], made)
        return True


class _Traced:
    """The graph, traced once, when the first of its regions asks for its part."""

    def __init__(self, trace: Callable[[], CompiledGraph]) -> None:
        self._trace, self._found = trace, list[GraphModule]()

    def graph_of(self, number: int) -> GraphModule:
        """Return the part of a region."""
        if not self._found:
            self._found = [region.graph for region in self._trace().regions]
        return self._found[number]


def _regions(graph: CompiledGraph) -> list[Any]:
    """Return each region's name, form, and parameters: inputs of the graph by number, constants by name."""
    nodes = list(graph.module.graph.nodes)
    places = {node: k for k, node in enumerate(node for node in nodes if node.op == "placeholder")}
    calls = {node.target: node for node in nodes if node.op == "call_module"}
    return [
        (
            region.name,
            region.part.form.to_json(),
            [
                (place, given.target if given.op == "get_attr" else places[given])
                for place, given in enumerate(calls[region.name].args)
                if place in region.static
            ],
        )
        for region in graph.regions
    ]


def _globals() -> Mapping[str, Any]:
    """The names that generated code may use."""
    import torch

    return {"torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan, "NoneType": type(None)}


def _tensor(gm: GraphModule, node: Any) -> Any:
    return getattr(gm, node.target, None)


def _is_other(constant: Any) -> bool:
    import torch

    is_plain = isinstance(constant, torch.Tensor) and constant.layout is torch.strided and constant.numel() > 0
    return not is_plain or constant.device.type != "cpu" or not constant.is_contiguous()


def _bytes(tensor: Tensor) -> memoryview:
    import torch

    return memoryview(tensor.detach().reshape(-1).view(torch.uint8).numpy())


def _stored(data: memoryview, dtype: str, shape: Sequence[int]) -> Tensor:
    import torch

    return torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)).reshape(shape)


def _cache() -> BinaryCache:
    return BinaryCache(cache_folder("graphs"), _MOST_BYTES)
