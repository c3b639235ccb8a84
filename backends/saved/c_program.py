"""A C program that runs a saved kernel on files of raw bytes: what is the same for all targets."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import Template

import numpy as np

from ..arrays import CACHE_LINE_BYTES
from ..signature import Argument

_MAIN = Template("""
#ifndef LW_NO_MAIN
static const struct { const char *what; size_t bytes; int is_output; } ARGUMENTS[] = {
$arguments
};
enum { COUNT = sizeof ARGUMENTS / sizeof *ARGUMENTS };

static void *room(size_t bytes) { return aligned_alloc($align, (bytes + $align) / $align * $align); }

static int transfer(const char *file, void *array, size_t bytes, int write) {
  FILE *stream = fopen(file, write ? "wb" : "rb");
  size_t done = !stream ? 0 : write ? fwrite(array, 1, bytes, stream) : fread(array, 1, bytes, stream);
  if (stream && fclose(stream) == 0 && done == bytes) return 0;
  fprintf(stderr, "%s: %s of %zu bytes\\n", file, write ? "not written" : "no file", bytes);
  return 1;
}

int main(int argc, char **argv) {
  void *arrays[COUNT];
  if (argc != COUNT + 1) {
    fprintf(stderr, "usage: %s, on files of raw bytes, of:\\n", argv[0]);
    for (int n = 0; n < COUNT; n++) fprintf(stderr, "  %s\\n", ARGUMENTS[n].what);
    return 2;
  }
  for (int n = 0; n < COUNT; n++) {
    arrays[n] = room(ARGUMENTS[n].bytes);
    if (!arrays[n]) return 1;
    if (!ARGUMENTS[n].is_output && transfer(argv[n + 1], arrays[n], ARGUMENTS[n].bytes, 0)) return 1;
  }
  int code = $symbol($given);
  if (code) {
    fprintf(stderr, "$symbol returns %d\\n", code);
    return 1;
  }
  for (int n = 0; n < COUNT; n++)
    if (ARGUMENTS[n].is_output && transfer(argv[n + 1], arrays[n], ARGUMENTS[n].bytes, 1)) return 1;
  return 0;
}
#endif
""")


def array_bytes(argument: Argument) -> int:
    """Return the bytes of an argument as callers see it."""
    return prod(argument.shape) * np.dtype(argument.dtype).itemsize


def c_main(symbol: str, arguments: Sequence[Argument], workspace: str = "") -> str:
    """Return a `main` that reads inputs from files, calls a function on them, and writes outputs.

    `workspace` is the number of bytes, as C says it, of a last parameter, if there is one.
    """
    rows = [f'  {{"{a.name}: {a}", {array_bytes(a)}, {int(a.is_output)}}},' for a in arguments]
    given = [f"arrays[{number}]" for number in range(len(arguments))]
    given += [f"room({workspace})"] if workspace else []
    return _MAIN.substitute(arguments="\n".join(rows), symbol=symbol, given=", ".join(given), align=CACHE_LINE_BYTES)
