"""What stock `xdsl-opt` sees of loopwright: its dialects by name, its passes by file name; nothing is imported before use."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

_DIALECTS = {
    "lw": ("target", "Lw"),
    "lw_kernel": ("kernel", "LwKernel"),
    "lw_loop": ("loop", "LwLoop"),
    "lw_te": ("te", "LwTe"),
}
_PASS_FOLDERS = ("schedule", "lower")


def pass_name(stem: str) -> str:
    """Return the pass that the module `stem` holds: `compute_at` -> `lw-compute-at`."""
    return f"lw-{stem.replace('_', '-')}"


def class_name(stem: str) -> str:
    """Return the class that the module `stem` holds: `compute_at` -> `ComputeAt`."""
    return "".join(word.capitalize() for word in stem.split("_"))


def pass_modules() -> Iterator[tuple[str, str]]:
    """Yield (folder, stem) of each module that holds a pass; a leading underscore says that a module holds none."""
    for folder in _PASS_FOLDERS:
        for file in sorted((Path(__file__).parent / "passes" / folder).glob("*.py")):
            if not file.stem.startswith("_"):
                yield folder, file.stem


def _dialect_factory(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: cast(Dialect, getattr(importlib.import_module(f".dialects.{module}", __package__), name))


def _pass_factory(folder: str, stem: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = importlib.import_module(f".passes.{folder}.{stem}", __package__)
        return cast(type[ModulePass], getattr(module, class_name(stem)))

    return load


UNIVERSE = Universe(
    all_dialects={name: _dialect_factory(module, held) for name, (module, held) in _DIALECTS.items()},
    all_passes={pass_name(stem): _pass_factory(folder, stem) for folder, stem in pass_modules()},
)
