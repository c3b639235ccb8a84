"""Launches of a kernel for a GPU as its programs have them: buffers, constants in a file, and kernels in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from string import Template
from typing import Any

from ...dialects.cached_property import cached_property
from ..c_family.kernel_source import KernelSource
from ..c_parameters import c_name, parameter, parameter_names
from ..constants import Constants
from ..signature import Argument
from .c_program import array_bytes, c_main
from .files import MADE_BY, beside

_RUN = Template("""
static int read_at(const char *file, long start, void *data, size_t bytes) {
  FILE *stream = fopen(file, "rb");
  int failed = !stream || fseek(stream, start, SEEK_SET) || fread(data, 1, bytes, stream) != bytes;
  if (stream) fclose(stream);
  if (failed) fprintf(stderr, "%s: no file of %zu bytes from %ld on\\n", file, bytes, start);
  return failed;
}

static int load_constants(void) {
  for (int n = 0; n < CONSTANTS; n++) {
    size_t bytes = SIZES[CONSTANT[n].buffer];
    void *data = malloc(bytes);
    if (!data || read_at(LW_FOLDER "/$data", CONSTANT[n].start, data, bytes)) return 1;
    if (upload(CONSTANT[n].buffer, data)) return 1;
    free(data);
  }
  return 0;
}

struct place { int buffer, is_output; };

static int lw_run_kernels(void **arrays, const struct place *places, int count) {
  static int loaded;
  if (!loaded && (load() || load_constants())) return 1;
  loaded = 1;
  if (attach()) return 1;
  for (int n = 0; n < count; n++)
    if (!places[n].is_output && upload(places[n].buffer, arrays[n])) return 1;
  if (launch()) return 1;
  for (int n = 0; n < count; n++)
    if (places[n].is_output && download(arrays[n], places[n].buffer)) return 1;
  return 0;
}
""")
"""Runs the kernels by what each kind of device defines before it: load, attach, upload, download and launch."""

_HEAD = f"Constants of a kernel {MADE_BY}.\n".encode().ljust(64)
"""The first bytes of a file of constants."""


@dataclass(frozen=True)
class DeviceProgram:
    """A function on a device: `path` is of the file of its kernels, which others of its name lie beside."""

    path: Path
    kernel: KernelSource
    constants: Constants

    def __post_init__(self) -> None:
        self.constants.require_packed("save")

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arrays of a call."""
        return self.constants.open

    @property
    def symbol(self) -> str:
        return f"lw_{c_name(self.kernel.name)}"

    @property
    def data_path(self) -> Path:
        """The file of the constants."""
        return beside(self.path, "_constants.bin")

    @property
    def data(self) -> bytes | None:
        """The constants one after the other; None where there are none."""
        fixed = self.constants.fixed
        return b"".join([_HEAD, *(array.tobytes() for array in fixed.values())]) if fixed else None

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The buffer of each array of a call, by number."""
        fixed = self.constants.fixed
        return tuple(number for number in range(len(self.kernel.arguments)) if number not in fixed)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each buffer: arguments, then workspaces."""
        fixed, arguments = self.constants.fixed, enumerate(self.kernel.arguments)
        own = [fixed[number].nbytes if number in fixed else array_bytes(a) for number, a in arguments]
        return (*own, *self.kernel.workspaces)

    @cached_property
    def starts(self) -> tuple[tuple[int, int], ...]:
        """For each constant its buffer, and the byte of the file that it starts at."""
        fixed = self.constants.fixed
        ends = accumulate((array.nbytes for array in fixed.values()), initial=len(_HEAD))
        return tuple(zip(fixed, ends, strict=False))

    def tables(self) -> dict[str, Any]:
        """Return what a Python program launches by."""
        launches = [
            (each.name, each.grid, each.block, each.dynamic_shared_bytes, each.buffers) for each in self.kernel.launches
        ]
        return {
            "PLACES": self.places,
            "SIZES": self.sizes,
            "CONSTANTS_FILE": self.data_path.name,
            "CONSTANTS": self.starts,
            "LAUNCHES": tuple(launches),
        }

    def c_tables(self) -> str:
        """Return what a C program launches by."""
        most = max(len(launch.buffers) for launch in self.kernel.launches)
        starts = [f"  {{{buffer}, {start}}}," for buffer, start in self.starts]
        launches = [
            f'  {{"{each.name}", {braces(each.grid)}, {braces(each.block)}, {each.dynamic_shared_bytes}, '
            f"{len(each.buffers)}, {braces(each.buffers)}}},"
            for each in self.kernel.launches
        ]
        return "\n".join(
            [
                "#ifndef LW_FOLDER",
                '#define LW_FOLDER "." /* where the files are */',
                "#endif",
                f"enum {{ BUFFERS = {len(self.sizes)}, LAUNCHES = {len(launches)}, CONSTANTS = {len(starts)} }};",
                f"static const size_t SIZES[] = {braces(self.sizes)};",
                "static const struct { int buffer; long start; } CONSTANT[] = {",
                *(starts or ["  {0, 0},"]),
                "};",
                "static const struct {",
                "  const char *name;",
                "  size_t grid[3], block[3], shared_bytes;",
                f"  int count, buffers[{most}];",
                "} LAUNCH[] = {",
                *launches,
                "};",
            ]
        )

    def c_function(self) -> str:
        """Return the function for C, which hands its arrays to `run`, and a `main` that calls it."""
        names = parameter_names(self.arguments)
        given = [parameter(argument, name) for argument, name in zip(self.arguments, names, strict=True)]
        ends = [","] * (len(given) - 1) + [") {"]
        rows = [f"  {{{number}, {int(a.is_output)}}}," for number, a in zip(self.places, self.arguments, strict=True)]
        return "\n".join(
            [
                _RUN.substitute(data=self.data_path.name),
                f"/* {self.symbol} returns 0, or another number where it fails, which it says on stderr. Arrays are on",
                " * the host, contiguous, in C's order. One thread calls it at a time. */",
                "static const struct place LW_PLACES[] = {",
                *rows,
                "};",
                "",
                f"int {self.symbol}(",
                *(f"    {text}{end} /* {note} */" for (text, note), end in zip(given, ends, strict=True)),
                f"  return lw_run_kernels((void *[]){{{', '.join(f'(void *){name}' for name in names)}}}, LW_PLACES, "
                f"{len(names)});",
                "}",
                c_main(self.symbol, self.arguments),
            ]
        )


def braces(numbers: tuple[int, ...]) -> str:
    """Return the numbers of an array as C initialises it."""
    return f"{{{', '.join(map(str, numbers))}}}"
