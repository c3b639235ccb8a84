"""Machine code of NVIDIA's GPUs as nvdisasm shows it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

_SUMS = re.compile(r"[HIQ]?GMMA\.64x(\d+)x\d+\S* R(\d+)")
_ALL_DONE = "WARPGROUP.DEPBAR.LE gsb0, 0x0"
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?);")
_LAUNCH_WAIT = "ACQBULK"
_GLOBAL = re.compile(r"\b(LDG|STG|LDGSTS|LD|ST|ATOMG?|REDG?|UBLKCP|UBLKPF|UTMA\w+|CCTL)\b")


def disassembled(cubin: bytes) -> list[str]:
    """Return the instructions of a cubin in their order; skips the test where there is no nvdisasm."""
    return [each for kernel in disassembled_kernels(cubin).values() for each in kernel]


def disassembled_kernels(cubin: bytes) -> dict[str, list[str]]:
    """Return the instructions of each kernel of a cubin; skips the test where there is no nvdisasm."""
    package = pytest.importorskip("nvidia.cu13", reason="takes the package nvidia-cuda-nvdisasm")
    tool = next((path for root in package.__path__ for path in Path(root).glob("bin/nvdisasm")), None)
    if tool is None:
        pytest.skip("takes the package nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        shown = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True, timeout=60).stdout
    _, *kernels = re.split(r"^\t?\.section\s+\.text\.(\w+)", shown, flags=re.MULTILINE)
    pairs = zip(kernels[::2], kernels[1::2], strict=True)
    return {name: [found[1].strip() for found in _INSTRUCTION.finditer(text)] for name, text in pairs}


def reads_of_sums_in_flight(instructions: Iterable[str]) -> list[str]:
    """Return the instructions that touch registers of a warp group's sums before all its products are waited for.

    In the order of the instructions in memory: what stands after a loop is taken to run after it.
    """
    in_flight: set[int] = set()
    found = []
    for instruction in instructions:
        if product := _SUMS.search(instruction):
            width, first = int(product[1]), int(product[2])
            in_flight |= set(range(first, first + width // 2))
        elif _ALL_DONE in instruction:
            in_flight.clear()
        elif in_flight & {int(n) for n in re.findall(r"\bR(\d+)\b", instruction)}:
            found.append(instruction)
    return found


def accesses_before_the_wait(instructions: Sequence[str]) -> list[str]:
    """Return the instructions of one kernel that touch global memory before it has waited for the launch ahead."""
    wait = next(place for place, each in enumerate(instructions) if _LAUNCH_WAIT in each)
    return [each for each in instructions[:wait] if _GLOBAL.search(each)]
