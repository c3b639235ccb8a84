"""Another CPU in the place of this one, in each process of a test run: `make test TEST_CPU=haswell`.

LLVM's functions for the host are replaced as `llvmlite.binding` is imported. Features that this CPU lacks stay off, so
that kernels run; what is said of caches and cores stays as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_MORE = {
    "sapphirerapids": "amx-bf16 amx-int8 amx-tile avx512bf16 avx512bitalg avx512fp16 avx512ifma avx512vbmi avx512vbmi2 "
    "avx512vnni avx512vpopcntdq avxvnni gfni"
}
"""Features of a CPU beyond those that code for it uses."""
_NOT_EXECUTED = "amx-"
"""Features that may be told of without being there: kernels are compiled without them."""


def _pretend(binding: ModuleType, name: str) -> None:
    from loopwright.dialects.cpu_models import CPU_MODELS

    here = dict(binding.get_host_cpu_features())
    wanted = {*CPU_MODELS[name].features.split(), *_MORE.get(name, "").split()}
    told = {f: f in wanted and (bool(on) or f.startswith(_NOT_EXECUTED)) for f, on in here.items()}
    binding.get_host_cpu_name = lambda: name  # type: ignore[attr-defined]
    binding.get_host_cpu_features = lambda: dict(told)  # type: ignore[attr-defined]


class _Finder(MetaPathFinder):
    """Finds `llvmlite.binding` as usual, and changes it once it is there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "llvmlite.binding":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: ModuleType) -> None:
                execute(module)
                _pretend(module, os.environ["LOOPWRIGHT_TEST_CPU"])

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


if os.environ.get("LOOPWRIGHT_TEST_CPU"):
    sys.meta_path.insert(0, _Finder())
