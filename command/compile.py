"""Compile a network, with tuned schedules where there are records, into one file, or a library for C (--export)."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ..dialects.shown_text import printable, size
from ._errors import UserError
from ._export import add_export_options, check_export, export, in_words
from ._inputs import drawn, file_name
from ._network import COMPILED, add_compile_options, as_json, compiled_network, executor_of, name_of

if TYPE_CHECKING:
    from ..graph.accuracy import OutputError
    from ..graph.runtime.network import CompiledNetwork


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    parser.add_argument(
        "-o", "--output", type=file_name, help="the file to write (default: <model>.lw, or none with --export)"
    )
    add_export_options(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="with --precision: compile the network in its own types, too, and report how far apart both are on random "
        "inputs",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    if Path(options.model).suffix == COMPILED:
        without = ", without a source of kernels to export" if options.export else ""
        raise UserError(
            f"{options.model} is compiled already{without}: give an ONNX model or a network by name, with its records"
        )
    check_export(options, options.target or "llvm")
    if options.output is not None and options.output.suffix != COMPILED:
        raise UserError(f"-o takes a file of a compiled network ({COMPILED}), not {options.output}")
    if options.check and options.precision is None:
        raise UserError("--check compares a network in another precision with the one it has: give --precision, too")
    net = compiled_network(options)
    errors = _errors(net, options) if options.check else []
    written = export(net, options)
    lines = [repr(net), *_kept(net), *map(str, errors), *in_words(written)]
    path = options.output or (None if written else Path(f"{name_of(options.model)}{COMPILED}"))
    if path is not None:
        try:
            net.save(path)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        written |= {"file": os.fspath(path), "file_bytes": path.stat().st_size}
        lines.append(f"{path}: {size(path.stat().st_size)}")
    accuracy = {e.name: {"max_error": e.max_error, "relative": e.relative} if e.is_finite else None for e in errors}
    report = {**as_json(net), **written, **({"accuracy": accuracy} if options.check else {})}
    print(json.dumps(report) if options.json else printable("\n".join(lines)))
    return 0 if all(e.is_finite for e in errors) else 1


def _errors(net: CompiledNetwork, options: argparse.Namespace) -> list[OutputError]:
    """Compare a network with the same one in its own types, on the same device and random inputs."""
    from ..graph.accuracy import output_errors

    declared = compiled_network(argparse.Namespace(**{**vars(options), "precision": None}))
    return output_errors(executor_of(net), executor_of(declared), drawn(net.plan.inputs, seed=0))


def _kept(net: CompiledNetwork) -> list[str]:
    """Name operators that stay in float32, those of one kind for one reason in a line."""
    counts = Counter((kept.operator, kept.reason) for kept in net.kept_fp32)
    return [f"kept in float32: {count} {operator}, {reason}" for (operator, reason), count in counts.items()]
