"""Files of a saved kernel for a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..c_family.artifact import Artifact
from ..constants import Constants
from . import cuda_programs, opencl_programs
from .device_program import DeviceProgram
from .files import MADE_BY, beside, checked_path, write_files

SUFFIXES = {"cuda": (".cu", ".ptx"), "opencl": (".cl",)}


def save_device_kernel(
    artifact: Artifact, constants: Constants, path: str | os.PathLike[str], ptx: Callable[[], str]
) -> tuple[Path, ...]:
    """Write a kernel's code, its constants and the programs that run it; returns their paths.

    `ptx` compiles the code where PTX is asked for.
    """
    kernel = artifact.kernel
    target = checked_path(kernel.name, artifact.kind, SUFFIXES[artifact.kind], path)
    program = DeviceProgram(target, kernel, constants)
    code = ptx() if target.suffix == ".ptx" else kernel.source
    made_for = f" for {artifact.architecture}" if artifact.architecture else ""
    contents: dict[Path, bytes | str] = {target: f"// Kernel {kernel.name}, {MADE_BY}{made_for}.\n{code}"}
    data = program.data
    if data is not None:
        contents[program.data_path] = data
    if artifact.kind == "cuda":
        texts = [
            each(program, artifact.architecture) for each in (cuda_programs.run_from_c, cuda_programs.run_from_python)
        ]
    else:
        texts = [each(program) for each in (opencl_programs.run_from_c, opencl_programs.run_from_python)]
    contents |= dict(zip((beside(target, "_host.c"), beside(target, "_run.py")), texts, strict=True))
    return write_files(contents)
