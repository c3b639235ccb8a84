"""A backend that stands for a board of another architecture: kernels are built as for any CPU, and run under QEMU.

Each artifact is linked with a C program that reads its inputs, runs it, and writes its output and the seconds taken.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.backends.llvm.device import build, versions
from loopwright.backends.llvm.executable import Artifact

__all__ = ["build", "device_name", "load", "versions"]
ARCH = "aarch64"
HARNESS = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void lw_run(void **pointers);
int main(int argc, char **argv) {
  static const size_t sizes[] = {%(sizes)s};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");
  void *pointers[COUNT + 1];
  for (int i = 0; i < COUNT; i++) {
    pointers[i] = aligned_alloc(64, (sizes[i] + 63) / 64 * 64);
    if (fread(pointers[i], 1, sizes[i], in) != sizes[i]) return 2;
  }
  pointers[COUNT] = aligned_alloc(64, %(space)d);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long number = atol(argv[1]); number > 0; number--) lw_run(pointers);
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec);
  fwrite(&seconds, sizeof seconds, 1, out);
  for (int i = 0; i < COUNT; i++)
    if (fwrite(pointers[i], 1, sizes[i], out) != sizes[i]) return 3;
  return fclose(out);
}
"""


class Kernel:
    """A linked program, in a folder of its own."""

    def __init__(self, artifact: Artifact) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        sizes = [int(np.prod(a.shape)) * np.dtype(a.dtype).itemsize for a in artifact.arguments]
        program = HARNESS % {"sizes": ", ".join(map(str, sizes)), "space": (artifact.workspace_bytes + 127) // 64 * 64}
        (folder / "main.c").write_text(program)
        (folder / "kernel.o").write_bytes(artifact.object_code)
        command = [f"{ARCH}-linux-gnu-gcc", "-O1", "-static", "-o", "main", "main.c", "kernel.o", "-lm"]
        subprocess.run(command, cwd=folder, check=True)

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        self.time(args, 1)

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        folder = Path(self._folder.name)
        (folder / "in").write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in args))
        emulator = shutil.which(f"qemu-{ARCH}") or shutil.which(f"qemu-{ARCH}-static")
        subprocess.run([str(emulator), "main", str(number)], cwd=folder, check=True)
        data = (folder / "out").read_bytes()
        at = 8
        for array in args:
            if array.flags.writeable:
                array[...] = np.frombuffer(data[at : at + array.nbytes], array.dtype).reshape(array.shape)
            at += array.nbytes
        return float(struct.unpack_from("<d", data)[0])


def load(artifact: bytes) -> Kernel:
    return Kernel(Artifact.from_bytes(artifact))


def device_name() -> str:
    return f"{ARCH} under QEMU"
