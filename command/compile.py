"""Compile a network, with tuned schedules where there are records, into one file."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ..dialects.names import printable
from ._errors import UserError
from ._network import COMPILED, add_compile_options, as_json, compiled_network, name_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    parser.add_argument("-o", "--output", type=Path, help="the file to write (default: <model>.lw)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    if Path(options.model).suffix == COMPILED:
        raise UserError(f"{options.model} is compiled already: give an ONNX model or a network by name")
    net = compiled_network(options)
    path = options.output or Path(f"{name_of(options.model)}{COMPILED}")
    try:
        net.save(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    if options.json:
        print(json.dumps({**as_json(net), "file": os.fspath(path), "file_bytes": path.stat().st_size}))
    else:
        print(f"{printable(repr(net))}\n{path}: {path.stat().st_size / 2**20:.1f} MiB")
    return 0
