"""Networks of commands: an ONNX model, a network by name, or a compiled one in a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.numpy_types import FLOATS, NARROW_FLOATS, PRECISIONS
from ._errors import UserError, did_you_mean
from ._inputs import file_name, positive, read_arrays

if TYPE_CHECKING:
    from ..dialects.target import Target
    from ..graph.network import Network
    from ..graph.runtime.executor import Executor
    from ..graph.runtime.network import CompiledNetwork
    from ._source import AnyTask

COMPILED = ".lw"
"""The suffix of files with compiled networks."""

_OF_TUNING = "tune convolutions by Winograd's transforms, too (default: no)"
_OF_COMPILING = "compile convolutions by Winograd's transforms where they are faster on record (default: yes)"


def add_network_options(parser: argparse.ArgumentParser, winograd: str = _OF_TUNING) -> None:
    """Add the options of a network beside its name, with what `--winograd` does in the command."""
    parser.add_argument(
        "--input-shape",
        action="append",
        default=[],
        metavar="NAME=N,C,H,W",
        help="extents of an input that an ONNX model leaves open; may be given several times",
    )
    parser.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="values of an input of an ONNX model that are the same in every run; may be given several times",
    )
    parser.add_argument("--batch", type=positive, help="batch of a network by name (default: 1)")
    parser.add_argument(
        "--dtype",
        metavar="TYPE",
        help=f"element type of what is named: of networks {', '.join(FLOATS)} (default: float32)",
    )
    parser.add_argument(
        "--precision",
        metavar="TYPE",
        help=f"compute what is float32 in it in {', '.join(PRECISIONS)}, sums excepted (tune and compile alike)",
    )
    parser.add_argument(
        "--layout",
        choices=["NCHW", "NHWC", "auto"],
        help="layout of feature maps (default: auto for ONNX models, else NCHW; tune and compile alike)",
    )
    parser.add_argument("--winograd", action=argparse.BooleanOptionalAction, help=winograd)


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of compiling, for commands that need a network ready to run."""
    parser.add_argument("model", help="an ONNX model (.onnx), a network by name, or a compiled network (.lw)")
    parser.add_argument("--target", help="'llvm' (the default) is this machine, 'cuda' its GPU, and so on")
    parser.add_argument(
        "--records", type=file_name, help="record file with tuned schedules (default: <model>.jsonl, if it exists)"
    )
    add_network_options(parser, _OF_COMPILING)


def add_trust_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that run compiled networks."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="run a compiled network (.lw) that you did not save yourself: it holds native code",
    )


def is_network(text: str) -> bool:
    """True where a word names a network rather than a workload."""
    if Path(text).suffix == ".onnx":
        return True
    from ..testing import NETWORKS

    return text in NETWORKS


def read_network(options: argparse.Namespace, text: str) -> Network:
    """Read the network of an ONNX file or a name, in the layout and the precision asked for."""
    net = _declared_network(options, text)
    if options.precision is None:
        return net
    from ..graph.precision import in_precision

    try:
        return in_precision(net, options.precision)
    except ValueError as error:
        raise UserError(str(error)) from None


def _declared_network(options: argparse.Namespace, text: str) -> Network:
    """Read the network of an ONNX file or a name, in the layout asked for and the types that it has."""
    _require_precision(options)
    path = Path(text)
    if path.suffix == ".onnx":
        if options.batch is not None:
            raise UserError(f"{path}: --batch is for networks by name; give --input-shape NAME=N,...")
        if options.dtype is not None:
            raise UserError(f"{path} has its own types: --dtype is for networks by name")
        constants = read_arrays(options.constant, "--constant")
        net = _from_file(path, _shapes(options.input_shape), constants, options.layout or "auto")
    else:
        net = _by_name(text, options)
    types = [*net.dtypes, options.precision] if options.precision in NARROW_FLOATS else net.dtypes
    _require_types(net.name, types, options.target or "llvm")
    return net


def _require_precision(options: argparse.Namespace) -> None:
    from ..graph.precision import require_precision

    try:
        if options.precision is not None:
            require_precision(options.precision)
    except ValueError as error:
        raise UserError(f"--{error}") from None


def tasks_of(
    net: Network, target: str | Target, templates: bool, winograd: bool
) -> tuple[Sequence[AnyTask], list[int]]:
    """The tasks of a network, for sketches or templates, and how often each appears; `winograd` as for extraction."""
    from ..graph.tasks import extract_tasks
    from ..graph.template_tasks import extract_template_tasks

    extract = extract_template_tasks if templates else extract_tasks
    return extract(net, target, winograd=winograd)


def _require_types(name: str, dtypes: Sequence[str], target: str) -> None:
    """UserError where the device does not compute in an element type of a network."""
    from ..backends.missing import MissingRequirement
    from ..backends.targets import resolve_target
    from ..dialects.shown_text import one_line
    from ..search.measure.backend_api import backend_path, load_backend

    try:
        kind = resolve_target(target).kind
        backend = load_backend(backend_path(kind))
        lacking = getattr(backend, "lacking", lambda dtype: None)
        reasons = [reason for reason in map(lacking, dtypes) if reason is not None]
    except ValueError as error:
        raise UserError(str(error)) from None
    except MissingRequirement:  # no device here to ask: compiling says so where it needs one
        return
    if reasons:
        raise UserError(f"{one_line(name)}: {reasons[0]}")


def _from_file(path: Path, shapes: dict[str, Sequence[int]], constants: dict[str, Any], layout: str) -> Network:
    try:
        from ..frontends.onnx.importer import from_onnx

        return from_onnx(path, shapes, constants, layout=layout)
    except ModuleNotFoundError as error:
        raise UserError(f"{path}: reading ONNX models needs {error.name}: pip install 'loopwright[onnx]'") from None
    except ValueError as error:
        raise UserError(str(error)) from None


def _by_name(name: str, options: argparse.Namespace) -> Network:
    from ..testing import NETWORKS, network

    if name not in NETWORKS:
        hint = did_you_mean(name, NETWORKS)
        raise UserError(f"there is no network '{name}'{hint}: give a .onnx file or one of {', '.join(NETWORKS)}")
    if options.input_shape:
        raise UserError(f"{name} has its own shapes: --input-shape is for ONNX models")
    if options.constant:
        raise UserError(f"{name} has no inputs that could be constant: --constant is for ONNX models")
    layout = "NHWC" if options.layout == "auto" else options.layout or "NCHW"
    try:
        return network(name, batch=options.batch or 1, layout=layout, dtype=options.dtype or "float32")
    except ValueError as error:
        raise UserError(str(error)) from None


def _shapes(given: Sequence[str]) -> dict[str, Sequence[int]]:
    shapes: dict[str, Sequence[int]] = {}
    for text in given:
        name, equals, extents = text.rpartition("=")
        if not equals or not all(part.strip().isdigit() for part in extents.split(",")):
            raise UserError(f"--input-shape takes NAME=N,C,H,W with whole numbers, got '{text}'")
        shapes[name] = [int(part) for part in extents.split(",")]
    return shapes


def records_for(options: argparse.Namespace, name: str) -> Path | None:
    """Return the record file asked for, or the one that is there by default."""
    if options.records is not None:
        if not options.records.is_file():
            raise UserError(f"there is no record file {options.records}: tune first")
        found: Path = options.records
        return found
    usual = Path(f"{name}.jsonl")
    return usual if usual.is_file() else None


def takes_winograd(options: argparse.Namespace) -> bool:
    """Return whether to compile convolutions by Winograd's transforms where they are faster on record."""
    return options.winograd is not False


def name_of(text: str) -> str:
    """Return the name for the files of a network."""
    return Path(text).stem if Path(text).suffix in (".onnx", COMPILED) else text


def compiled_network(options: argparse.Namespace) -> CompiledNetwork:
    """Compile the network, or read it from the file that holds it compiled."""
    if Path(options.model).suffix == COMPILED:
        return _load(options)
    if getattr(options, "trust", False):
        raise UserError(f"{options.model} is compiled here: --trust is for compiled networks ({COMPILED})")
    from ..graph.compiler import compile

    net = _declared_network(options, options.model)
    try:
        return compile(
            net,
            options.target or "llvm",
            records_for(options, name_of(options.model)),
            winograd=takes_winograd(options),
            precision=options.precision,
        )
    except ValueError as error:
        raise UserError(str(error)) from None


def _load(options: argparse.Namespace) -> CompiledNetwork:
    from ..graph.runtime.network import load_network

    ignored = {"--target": options.target, "--records": options.records, "--layout": options.layout}
    ignored["--winograd" if options.winograd else "--no-winograd"] = options.winograd
    ignored |= {
        "--batch": options.batch,
        "--dtype": options.dtype,
        "--precision": options.precision,
        "--input-shape": options.input_shape or None,
        "--constant": options.constant or None,
    }
    given = [flag for flag, value in ignored.items() if value is not None]
    if given:
        raise UserError(f"{options.model} is compiled already: {given[0]} is for ONNX models and networks by name")
    try:
        return load_network(options.model, trusted=options.trust)
    except OSError as error:
        raise UserError(f"cannot read {options.model}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(str(error)) from None


def executor_of(net: CompiledNetwork) -> Executor:
    """Return an executor on this machine; UserError where the network is for another one."""
    try:
        return net.executor()
    except ValueError as error:
        raise UserError(str(error)) from None


def as_json(net: CompiledNetwork) -> dict[str, Any]:
    """Describe a compiled network for scripts."""
    plan = net.plan
    return {
        "network": plan.name,
        "target": plan.target,
        "inputs": {port.name: [port.dtype, list(port.shape)] for port in plan.inputs},
        "outputs": {port.name: [port.dtype, list(port.shape)] for port in plan.outputs},
        "steps": len(plan.steps),
        "kernels": len(plan.kernels),
        "tuned_kernels": sum(kernel.tuned for kernel in plan.kernels),
        "winograd_kernels": sum(kernel.is_winograd for kernel in plan.kernels),
        "arena_bytes": plan.arena_bytes,
        "constant_bytes": sum(array.nbytes for array in net.package.constants),
        "kept_fp32": [asdict(kept) for kept in plan.kept_fp32],
    }
