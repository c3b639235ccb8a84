"""Libraries for C that commands write: an object file or a shared library, and its header."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import size
from ._errors import UserError
from ._inputs import file_name

if TYPE_CHECKING:
    from ..backends.kernel_function import Kernel
    from ..graph.runtime.network import CompiledNetwork


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of writing a library."""
    parser.add_argument(
        "--export",
        type=file_name,
        metavar="FILE.so",
        help="write a library for C (.so, or .o without a linker) and a header",
    )
    parser.add_argument(
        "--export-name", metavar="NAME", help="name of the function in the library, behind lw_ (default: its own)"
    )


def check_export(options: argparse.Namespace, target: str) -> None:
    """UserError where nothing for this target can be exported as asked, before anything is compiled."""
    from ..backends.llvm.library import check_path
    from ..backends.targets import resolve_target

    if options.export is None:
        if options.export_name is not None:
            raise UserError("--export-name is the name of a function in a library: give --export FILE.so, too")
        return
    try:
        check_path("--export", options.export)
        kind = resolve_target(target).kind
    except ValueError as error:
        raise UserError(str(error)) from None
    if kind != "llvm":
        raise UserError(f"--export is for targets of CPUs (llvm), whose kernels C can call, not for {kind}")


def export(made: Kernel | CompiledNetwork, options: argparse.Namespace, name: str | None = None) -> dict[str, Any]:
    """Write the library asked for of a kernel or a network, called `name` by default; returns what scripts are told."""
    if options.export is None:
        return {}
    try:
        header = made.export_library(options.export, options.export_name or name)
    except ValueError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot write {options.export}: {error.strerror}") from None
    return {
        "library": os.fspath(options.export),
        "header": os.fspath(header),
        "library_bytes": options.export.stat().st_size,
    }


def in_words(written: dict[str, Any]) -> list[str]:
    """Return the line that says what was written, if anything was."""
    if not written:
        return []
    return [f"{written['library']}: {size(written['library_bytes'])}, declared in {written['header']}"]
