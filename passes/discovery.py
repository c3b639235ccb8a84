"""Find passes by file name: `passes/schedule/compute_at.py` holds `ComputeAt`, `lw-compute-at` in a pipeline."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from xdsl.passes import ModulePass

_FOLDERS = ("schedule", "lower", "convert")


def pass_name(stem: str) -> str:
    """Return the name in a pipeline of the pass that the module `stem` holds: `compute_at` -> `lw-compute-at`."""
    return f"lw-{stem.replace('_', '-')}"


def class_name(stem: str) -> str:
    """Return the class that the module `stem` holds: `compute_at` -> `ComputeAt`."""
    return "".join(word.capitalize() for word in stem.split("_"))


def module_stems(folder: str) -> list[str]:
    """Return the names of the modules in `passes/<folder>` that hold a pass; those with a leading underscore do not."""
    return sorted(file.stem for file in (Path(__file__).parent / folder).glob("*.py") if not file.stem.startswith("_"))


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return pass name -> a function that imports and returns its class: what `PassPipeline.parse_spec` takes."""
    return {pass_name(stem): _factory(folder, stem) for folder in _FOLDERS for stem in module_stems(folder)}


def _factory(folder: str, stem: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = importlib.import_module(f".{folder}.{stem}", __package__)
        return cast(type[ModulePass], getattr(module, class_name(stem)))

    return load
