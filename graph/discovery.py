"""Find passes over networks by file name: `graph/passes/fuse.py` holds `Fuse`, `lw-graph-fuse` in a pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from xdsl.passes import ModulePass


def graph_pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return pass name -> a function that imports and returns its class."""
    files = sorted((Path(__file__).parent / "passes").glob("*.py"))
    stems = [file.stem for file in files if not file.stem.startswith("_")]
    return {f"lw-graph-{stem.replace('_', '-')}": _factory(stem) for stem in stems}


def _factory(stem: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = importlib.import_module(f".passes.{stem}", __package__)
        return cast(type[ModulePass], getattr(module, "".join(word.capitalize() for word in stem.split("_"))))

    return load
