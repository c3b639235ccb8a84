"""Find passes by file name: `passes/schedule/compute_at.py` holds `ComputeAt`, `lw-compute-at` in a pipeline."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from xdsl.passes import ModulePass

Factories = Mapping[str, Callable[[], type[ModulePass]]]
"""Pass name -> a function that imports and returns its class: what `PassPipeline.parse_spec` takes."""

_ROOT = Path(__file__).parents[1]
_FOLDERS = ("schedule", "lower", "convert")


def pass_name(stem: str, prefix: str = "") -> str:
    """Return the name in a pipeline of the pass that the module `stem` holds: `compute_at` -> `lw-compute-at`."""
    return f"lw-{prefix}{stem.replace('_', '-')}"


def class_name(stem: str) -> str:
    """Return the class that the module `stem` holds: `compute_at` -> `ComputeAt`."""
    return "".join(word.capitalize() for word in stem.split("_"))


def primitive_stems() -> list[str]:
    """Return the names of the modules that hold a schedule primitive each: `compute_at`, ..."""
    return _stems("passes/schedule")


@cache
def pass_factories() -> Factories:
    """Return the passes over loops and kernels."""
    return {name: factory for folder in _FOLDERS for name, factory in passes_in(f"passes/{folder}").items()}


@cache
def passes_in(folder: str, prefix: str = "") -> Factories:
    """Return the passes of a folder of the package, which is not imported: `prefix` begins their names."""
    package = f"..{folder.replace('/', '.')}"
    return {pass_name(stem, prefix): _factory(package, stem) for stem in _stems(folder)}


def _stems(folder: str) -> list[str]:
    """The names of the modules in a folder of the package, but for those that it keeps to itself."""
    return sorted(file.stem for file in (_ROOT / folder).glob("*.py") if not file.stem.startswith("_"))


def _factory(package: str, stem: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = importlib.import_module(f"{package}.{stem}", __package__)
        return cast(type[ModulePass], getattr(module, class_name(stem)))

    return load
