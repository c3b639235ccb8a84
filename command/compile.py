"""Compile a network, with tuned schedules where there are records, into one file, or a library for C (--export)."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ..dialects.names import printable
from ._errors import UserError
from ._export import add_export_options, check_export, export, in_words
from ._inputs import file_name
from ._network import COMPILED, add_compile_options, as_json, compiled_network, name_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    parser.add_argument(
        "-o", "--output", type=file_name, help="the file to write (default: <model>.lw, or none with --export)"
    )
    add_export_options(parser)
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
    net = compiled_network(options)
    written = export(net, options)
    lines = [repr(net), *in_words(written)]
    path = options.output or (None if written else Path(f"{name_of(options.model)}{COMPILED}"))
    if path is not None:
        try:
            net.save(path)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        written |= {"file": os.fspath(path), "file_bytes": path.stat().st_size}
        lines.append(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    print(json.dumps({**as_json(net), **written}) if options.json else printable("\n".join(lines)))
    return 0
