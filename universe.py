"""Dialects, passes and sources as outputs for stock `xdsl-opt`: names, each imported when first used."""

import importlib
from collections.abc import Callable
from typing import cast

from xdsl.ir import Dialect
from xdsl.universe import Universe
from xdsl.utils.target import Target

from .passes.discovery import pass_factories, passes_in

_DIALECTS = {
    "lw": ("target", "Lw"),
    "lw_graph": ("graph", "LwGraph"),
    "lw_kernel": ("kernel", "LwKernel"),
    "lw_loop": ("loop", "LwLoop"),
    "lw_te": ("te", "LwTe"),
}
_SOURCES = {
    "lw-cuda": ("cuda", "CudaSource"),
    "lw-llvm": ("llvm", "LlvmSource"),
    "lw-opencl": ("opencl", "OpenclSource"),
}


def _dialect_factory(module: str, variable: str) -> Callable[[], Dialect]:
    return lambda: cast(Dialect, getattr(importlib.import_module(f".dialects.{module}", __package__), variable))


def _source_factory(folder: str, variable: str) -> Callable[[], type[Target]]:
    module = f".backends.{folder}.source_target"
    return lambda: cast(type[Target], getattr(importlib.import_module(module, __package__), variable))


UNIVERSE = Universe(
    all_dialects={name: _dialect_factory(module, variable) for name, (module, variable) in _DIALECTS.items()},
    all_passes={**pass_factories(), **passes_in("graph/passes", "graph-"), **passes_in("frontends/mlir/passes")},
    all_targets={name: _source_factory(folder, variable) for name, (folder, variable) in _SOURCES.items()},
)
