"""Partition of an FX graph into maximal connected regions that are compiled, and what stays PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any

from .fx import FxNode, devices_of, is_getitem, name_of
from .importer import refusal, used_results
from .matrix_units import matrix_units
from .model_key import form_of
from .node import NO_UNITS, MatrixUnits
from .operators.attention import ATTENTION
from .options import TorchOptions

GraphModule = Any
_VIEWS = frozenset(
    {
        "view.default",
        "_unsafe_view.default",
        "reshape.default",
        "permute.default",
        "t.default",
        "transpose.int",
        "expand.default",
        "squeeze.dim",
        "squeeze.dims",
        "squeeze.default",
        "unsqueeze.default",
        "slice.Tensor",
        "select.int",
        "split.Tensor",
        "as_strided.default",
        "split_with_sizes.default",
        "unbind.int",
        "alias.default",
        "detach.default",
    }
)
"""Operators whose results are views of their data in PyTorch."""
_ANCHORS = frozenset(
    {
        "convolution.default",
        "mm.default",
        "addmm.default",
        "bmm.default",
        "baddbmm.default",
        *ATTENTION,
        "_softmax.default",
        "_log_softmax.default",
        "native_layer_norm.default",
        "native_group_norm.default",
        "_native_batch_norm_legit.no_stats",
    }
)
"""Operators that are worth a region of their own."""
_LEAST = 2
"""So many operators that compute make a region: one alone is a call either way, and PyTorch has it at hand."""
_TOO_SMALL = "a region of one such operator gains nothing"
_IS_VIEW = "a view that PyTorch makes of a result"


def partitioned(
    gm: GraphModule, options: TorchOptions, frozen: frozenset[FxNode] = frozenset()
) -> tuple[GraphModule, dict[FxNode, str]]:
    """Replace regions of a graph by submodules `fused_N`; returns the graph and why each other operator stays.

    A region is on one device, of those that `options` take. `frozen` are placeholders that are constants of
    regions.
    """
    separate_returned_views(gm)
    units = cache(partial(matrix_units, target=options.target))
    refused, folded, taken = {}, set(frozen), set[Hashable]()
    for node in gm.graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and folded.issuperset(node.all_input_nodes)):
            folded.add(node)
        if node.op != "call_function" or (form := _form(node, node in folded)) in taken:
            continue
        if (why := _refusal(node, options, units, node in folded)) is not None:
            refused[node] = why
        elif form is not None:
            taken.add(form)
    ours = [n for n in gm.graph.nodes if n.op == "call_function" and n not in refused]
    for device in sorted({str(device) for node in ours for device in devices_of(node)}):
        gm = _partitioned_on(device, gm, refused)
        reasons = {node.name: why for node, why in refused.items()}  # by name: fusing may copy the nodes
        refused = {node: reasons[node.name] for node in gm.graph.nodes if node.name in reasons}
    return gm, refused


def _partitioned_on(device: str, gm: GraphModule, refused: dict[FxNode, str]) -> GraphModule:
    """Replace the regions on one device, and add to what is refused; regions on other devices stay as they are."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Supported(OperatorSupportBase):  # type: ignore[misc]
        """Nodes that can be converted."""

        def is_node_supported(self, submodules: Mapping[str, Any], node: FxNode) -> bool:
            is_ours = node.op == "call_function" and node not in refused and not _result_of(node, refused)
            return is_ours and {device} == set(map(str, devices_of(node)))

    supported = Supported()
    partitioner = CapabilityBasedPartitioner(gm, supported, allows_single_node_partition=True)
    calls = [node for node in gm.graph.nodes if node.op not in ("placeholder", "get_attr", "output")]
    if all(
        supported.is_node_supported({}, node) for node in calls
    ):  # which PyTorch takes 4.6 s of CPU to find of 1,500
        proposed = [Partition(nodes=calls)]
    else:
        proposed = partitioner.propose_partitions()
    kept = []
    for partition in proposed:
        for node in _trailing_views(partition.nodes):
            partition.remove_node(node)
            refused.setdefault(node, _IS_VIEW)
        if _is_worthwhile(partition.nodes):
            kept.append(partition)
        else:
            refused.update({node: _TOO_SMALL for node in partition.nodes if not is_getitem(node)})
    before = sum(node.op == "call_module" for node in gm.graph.nodes)
    return partitioner.fuse_partitions(kept, prefix=f"fused_{before}_" if before else "fused_")


def _form(node: FxNode, is_folded: bool) -> Hashable | None:
    """Return all that decides if a node is taken, which other nodes may have, too; None where constants decide.

    To find that out converts the node. 230 nodes of a ResNet-50 have 69 forms: 0.15 s of CPU time instead of 0.27
    (AMD EPYC).
    """
    if "val" not in node.meta or any(each.op == "get_attr" for each in node.all_input_nodes):
        return None
    return form_of(node), used_results(node), is_folded, tuple(sorted(map(str, devices_of(node))))


def _refusal(node: FxNode, options: TorchOptions, units: Callable[[Any], MatrixUnits], is_folded: bool) -> str | None:
    """Return why a node stays PyTorch's, None where it is compiled if its region is worth it."""
    devices = sorted(devices_of(node), key=str)
    for device in devices:
        if not options.takes(device):
            return f"tensors on {device} stay PyTorch's"
    if len(devices) > 1 and not is_getitem(node):
        return f"it has tensors on {' and '.join(map(str, devices))}"
    return refusal(node, is_folded, units(devices[0]) if devices else NO_UNITS)


def _result_of(node: FxNode, refused: Mapping[FxNode, str]) -> bool:
    return is_getitem(node) and (node.args[0] in refused or node.args[0].op != "call_function")


def is_view(node: FxNode) -> bool:
    """True for a node that gives a view, or takes one of several."""
    if is_getitem(node):
        return is_view(node.args[0])
    return node.op == "call_function" and name_of(node) in _VIEWS


def separate_returned_views(gm: GraphModule) -> None:
    """Give views that are returned, and those they are views of, nodes that nothing else reads.

    They can then stay PyTorch's, so that results share memory as PyTorch has it, while what is computed from them does
    not depend on PyTorch.
    """
    tails: set[FxNode] = set()
    for node in reversed(list(gm.graph.nodes)):
        outside = [user for user in node.users if user.op == "output" or user in tails]
        if not is_view(node) or is_getitem(node) or isinstance(node.meta["val"], list | tuple) or not outside:
            continue
        if len(outside) < len(node.users):
            with gm.graph.inserting_after(node):
                copy = gm.graph.node_copy(node)
            node.replace_all_uses_with(copy, delete_user_cb=lambda user, kept=outside: user not in kept)
        tails.add(node)
    gm.recompile()


def loosen_views(gm: GraphModule, as_traced: Container[str] = ()) -> GraphModule:
    """Turn views that PyTorch makes into reshapes, which copy where strides ask for it; returns the graph.

    They may be others than those it was traced with: tracing gives a batch normalisation of transposed data the strides
    of these, while PyTorch makes its result contiguous (2.13). `as_traced` are kinds of nodes of which that is not so.
    """
    import torch

    for node in gm.graph.nodes:
        if node.op != "call_function" or node.target is not torch.ops.aten.view.default:
            continue
        source = node.args[0]
        while is_view(source) or is_getitem(source):
            source = source.args[0]
        if source.op not in as_traced:
            node.target = torch.ops.aten.reshape.default
    gm.recompile()
    return gm


def copied(gm: GraphModule) -> GraphModule:
    """Return a graph's copy on the same parameters and submodules."""
    import torch

    return torch.fx.GraphModule(gm, deepcopy(gm.graph))


def _trailing_views(nodes: Mapping[FxNode, Any]) -> list[FxNode]:
    """Return views at the end of a region: nothing in it reads them."""
    left, trailing = set(nodes), []
    for node in sorted(nodes, reverse=True):
        if is_getitem(node) or not is_view(node):
            continue
        parts = [user for user in node.users if is_getitem(user)]
        if any(user in left for each in (parts or [node]) for user in each.users):
            continue
        found = [node, *(part for part in parts if part in left)]
        left.difference_update(found)
        trailing += found
    return trailing


def _is_worthwhile(nodes: Mapping[FxNode, Any]) -> bool:
    computing = [node for node in nodes if not is_view(node) and not is_getitem(node)]
    return len(computing) >= _LEAST or any(name_of(node) in _ANCHORS for node in computing)
