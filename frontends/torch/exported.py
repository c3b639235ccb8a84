"""Programs of torch.export as networks."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from ...graph.layout import in_layout
from ...graph.network import Network, Value
from ...passes.collector import sparing_old_objects
from .closed_shapes import Shapes, with_closed_shapes
from .complex_numbers import take_complex_numbers_apart
from .decompositions import export_decompositions
from .errors import TorchImportError
from .folding import fold_constants
from .fx import FxNode
from .importer import GraphImport, add_input, constant_of
from .types import Tensor

ExportedProgram = Any


@sparing_old_objects
def from_exported(
    program: str | os.PathLike[str] | ExportedProgram,
    name: str = "main",
    layout: str | None = "auto",
    shapes: Shapes | None = None,
) -> Network:
    """Import a program of torch.export as a network: what `torch.export.export` returns, or a `.pt2` file of it.

    Parameters and buffers are constants, on the program's own memory; inputs and outputs are named as in the program,
    and outputs that are no tensors (None, numbers) left out.
    Shapes are numbers: where the program leaves extents open they are those of `shapes`, by its inputs' names, else of
    the example that it was exported with; ValueError says what does not fit. TorchImportError lists everything that is
    not supported. Feature maps are brought into `layout`, as by `lw.from_onnx`.
    """
    program = decomposed(program, shapes)
    kept = kept_tensors(program)
    net = Network(name)

    def value_of(node: FxNode) -> Value:
        if node.op == "get_attr":
            return constant_of(net, node.name, getattr(program.graph_module, node.target))
        return add_input(net, node) if node.name not in kept else constant_of(net, node.name, kept[node.name])

    importer = GraphImport(net, value_of)
    fold_constants(program.graph_module, _tables(program, kept))
    written = program.graph_signature.buffers_to_mutate | program.graph_signature.user_inputs_to_mutate
    if written:
        importer.reasons[f"it writes {', '.join(written.values())}, and networks keep no state"] = None
    values = importer.run(program.graph)
    returned = [node for node in program.graph.output_node().args[0] if hasattr(node, "meta")]
    if not returned:
        importer.reasons["it returns no tensor"] = None
    if importer.reasons:
        raise TorchImportError(name, list(importer.reasons))
    net.output(*(values[node] for node in returned), names=[node.name for node in returned])
    return in_layout(net, layout)


def _tables(program: ExportedProgram, kept: dict[str, Tensor]) -> dict[FxNode, Tensor]:
    """Return the placeholders that are buffers and constants, and what they hold; parameters keep their memory.

    Complex parameters do not: networks have their real and imaginary parts.
    """
    signature = program.graph_signature
    names = {*signature.inputs_to_buffers, *signature.inputs_to_lifted_tensor_constants}
    names.update(name for name, tensor in kept.items() if tensor.is_complex())
    return {node: kept[node.name] for node in program.graph.nodes if node.op == "placeholder" and node.name in names}


def decomposed(program: str | os.PathLike[str] | ExportedProgram, shapes: Shapes | None = None) -> ExportedProgram:
    """Return a program in core ATen, with numbers for open extents, read from a file where it is a path."""
    import torch

    if isinstance(program, str | os.PathLike):
        if not zipfile.is_zipfile(program):  # torch.export logs a traceback first
            found = os.path.exists(program)
            why = "it is no file of torch.export (.pt2), or a part of one" if found else "No such file or directory"
            raise TorchImportError(os.fspath(program), [why])
        program = torch.export.load(os.fspath(program))
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"from_exported takes a program of torch.export or a path, got {type(program).__name__}")
    made = with_closed_shapes(program, shapes or {}).run_decompositions(dict(export_decompositions()))
    take_complex_numbers_apart(made.graph_module, spectra=True)
    return made


def kept_tensors(program: ExportedProgram) -> dict[str, Tensor]:
    """Return the parameters, buffers and constants of a program by the names of their placeholders."""
    signature = program.graph_signature
    state = {**program.constants, **program.state_dict}
    return {
        placeholder: state[target]
        for names in (
            signature.inputs_to_parameters,
            signature.inputs_to_buffers,
            signature.inputs_to_lifted_tensor_constants,
        )
        for placeholder, target in names.items()
    }
