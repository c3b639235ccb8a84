"""ONNX's own tests (`onnx.backend.test`) against `loopwright.onnx_backend`, one at a time, and those left out."""

from __future__ import annotations

import importlib
import pkgutil
import unittest
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from unittest.mock import patch

from loopwright import onnx_backend

EXCLUDED = Path(__file__).parents[1] / "onnx_excluded.txt"
"""Tests that are left out, a line each: name, colon, reason."""

GROUPS = ("Node", "Simple", "PyTorchConverted", "PyTorchOperator")
"""Groups of tests that need nothing from elsewhere."""


@dataclass(frozen=True)
class Outcome:
    """The end of a test: `kernels` steps were run, `failure` is empty when it passed."""

    name: str
    kernels: int
    failure: str


def node_modules() -> list[str]:
    """The modules of ONNX that make tests of operators when they are imported: for each operator one."""
    from onnx.backend.test.case import node

    return [module.name for module in pkgutil.iter_modules(node.__path__) if not module.ispkg]


class Conformance:
    """ONNX's tests on the CPU, those of operators from all modules or of some: all take 13 s of CPU to make."""

    def __init__(self, modules: Sequence[str] | None = None) -> None:
        import onnx.backend.test
        from onnx.backend.test import loader

        def some(package: ModuleType) -> None:
            for name in modules or ():
                importlib.import_module(f"{package.__name__}.{name}")

        self._prepared: list[onnx_backend.Prepared] = []
        imported = loader.import_recursive if modules is None else some
        with warnings.catch_warnings(), patch.object(loader, "import_recursive", imported):
            warnings.simplefilter("ignore")
            cases = onnx.backend.test.BackendTest(cast(Any, self), __name__).test_cases  # annotated as a class
        self._cases = {group: cases[f"OnnxBackend{group}ModelTest"] for group in GROUPS}

    # -- the backend that the runner of ONNX sees --

    def supports_device(self, device: str) -> bool:
        return device == "CPU"

    def prepare(self, model: Any, device: str = "CPU", **options: Any) -> onnx_backend.Prepared:
        self._prepared.append(onnx_backend.prepare(model, device, processes=1))
        return self._prepared[-1]

    # -- running --

    def names(self, group: str) -> list[str]:
        """The tests of a group."""
        found = unittest.defaultTestLoader.getTestCaseNames(self._cases[group])
        return [name for name in found if name.endswith("_cpu")]

    def run(self, group: str, name: str) -> Outcome:
        """Run one test."""
        result = unittest.TestResult()
        self._prepared.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._cases[group](name).run(result)
        compiled = [p.compiled for p in self._prepared if p.compiled is not None]
        kernels = sum(len(net.plan.steps) for net in compiled)
        wrong = [text for _, text in (*result.failures, *result.errors)]
        return Outcome(name, kernels, _reason(wrong[0]) if wrong else "")


def excluded() -> dict[str, str]:
    """Test name -> why it is left out."""
    lines = [line for line in EXCLUDED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def _reason(trace: str) -> str:
    """The lines of a traceback that say why."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    start = next((k for k, line in enumerate(lines) if line.startswith("loopwright.") or "Error: " in line), 0)
    said = [line for line in lines[start:] if line and not line.endswith("reasons:")]
    kept = [line.partition("cannot be imported: ")[2] or line for line in said]
    return " / ".join(kept)[:300]


def one_of_each(names: Iterator[str] | list[str]) -> list[str]:
    """The first test of each operator, by the first word of the names, the second of reductions."""
    chosen: dict[str, str] = {}
    for name in names:
        words = name.split("_")
        chosen.setdefault("_".join(words[1:3] if words[1] == "reduce" else words[1:2]).rstrip("0123456789"), name)
    return list(chosen.values())
