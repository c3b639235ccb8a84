"""A stand-in for CUDA's driver that runs kernels without barriers on this CPU, thread by thread, from their source."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

GXX = shutil.which("g++")
_DRIVER = r"""
#include <cstdlib>
#include <cstring>
#include <utility>
struct Place { unsigned x, y, z; };
static Place blockIdx, threadIdx;
#define __global__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
asm(".macro griddepcontrol.wait\n.endm");  // each launch has ended when the next one begins
#include "KERNELS"
template <class... A, size_t... I> void call(void (*kernel)(A...), void **p, std::index_sequence<I...>) {
  kernel(*(A *)p[I]...);
}
template <class... A> void call(void (*kernel)(A...), void **p) { call(kernel, p, std::index_sequence_for<A...>()); }
typedef void Launched(void **);
struct Entry { const char *name; Launched *run; };
static Entry entries[] = { ENTRIES };
static int contexts, ready, allowed = 48 << 10;
extern "C" {
int cuInit(unsigned) { return ready++ ? 999 : 0; }
int cuDeviceGet(int *device, int number) { *device = 7; return number; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &contexts; return device == 7 ? 0 : 101; }
int cuCtxSetCurrent(void *context) { return context == &contexts ? 0 : 201; }
int cuCtxPushCurrent_v2(void *context) { contexts++; return context == &contexts ? 0 : 201; }
int cuCtxPopCurrent_v2(void **) { return contexts-- > 0 ? 0 : 201; }
int cuModuleLoadData(void **module, const char *image) { *module = entries; return strstr(image, "IMAGE") ? 0 : 200; }
int cuModuleLoad(void **module, const char *file) { *module = entries; return strstr(file, "k.") ? 0 : 301; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  for (Entry &entry : entries)
    if (module == entries && !strcmp(entry.name, name)) return *function = (void *)entry.run, 0;
  return 500;
}
int cuMemAlloc_v2(unsigned long long *buffer, size_t size) { return !(*buffer = (unsigned long long)malloc(size)); }
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) { return !memcpy((void *)to, from, size); }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size) { return !memcpy(to, (void *)from, size); }
int cuFuncSetAttribute(void *, int attribute, int bytes) { return attribute == 8 ? allowed = bytes, 0 : 1; }
int cuTensorMapEncodeTiled(void *map, int element, unsigned rank, void *address, const unsigned long long *shape,
                           const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  if ((unsigned long long)map % 64 || contexts < 0 || steps[rank - 1] != 1 || interleave || promotion != 2 || fill)
    return 1;
  auto *said = (unsigned long long *)map;
  said[0] = (unsigned long long)address, said[1] = element, said[2] = rank, said[3] = swizzle;
  for (unsigned d = 0; d < rank; d++) said[4 + d] = shape[d], said[8 + d] = box[d];
  for (unsigned d = 0; d + 1 < rank; d++) said[12 + d] = strides[d];
  return 0;
}
int cuTensorMapEncodeIm2col(void *map, int element, unsigned rank, void *address, const unsigned long long *shape,
                            const unsigned long long *strides, const int *lower, const int *upper, unsigned channels,
                            unsigned pixels, const unsigned *steps, int interleave, int swizzle, int promotion,
                            int fill) {
  if ((unsigned long long)map % 64 || contexts < 0 || steps[rank - 1] != 1 || interleave || promotion != 2 || fill)
    return 1;
  auto *said = (unsigned long long *)map;
  said[0] = (unsigned long long)address, said[1] = element, said[2] = rank, said[3] = swizzle;
  for (unsigned d = 0; d < rank; d++) said[4 + d] = shape[d];
  said[8] = channels, said[9] = pixels, said[10] = lower[0] + 100, said[11] = upper[0] + 100, said[12] = steps[1];
  for (unsigned d = 0; d + 1 < rank; d++) said[13 + d] = strides[d];
  return 0;
}
int cuGetErrorString(int status, const char **text) { *text = "no CUDA"; return !status; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void *, void **given, void **) {
  if (shared_bytes > (unsigned)allowed) return 1;
  for (unsigned g = 0; g < gx * gy * gz; g++)
    for (unsigned b = 0; b < bx * by * bz; b++) {
      blockIdx = {g % gx, g / gx % gy, g / gx / gy};
      threadIdx = {b % bx, b / bx % by, b / bx / by};
      ((Launched *)function)(given);
    }
  return 0;
}
}
"""


def make_driver(folder: Path, source: Path, kernels: Sequence[str], image: str) -> None:
    """Make `libcuda.so` and `libcuda.so.1` in a folder for kernels of a file; modules must hold the text `image`."""
    entries = ", ".join(f'{{"{name}", [](void **p) {{ call({name}, p); }}}}' for name in kernels)
    text = _DRIVER.replace("KERNELS", str(source)).replace("ENTRIES", entries).replace("IMAGE", image)
    (folder / "driver.cpp").write_text(text)
    library = folder / "libcuda.so.1"
    made = [
        str(GXX),
        "-std=c++17",
        "-O1",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-o",
        str(library),
        "driver.cpp",
    ]
    subprocess.run(made, cwd=folder, check=True)
    (folder / "libcuda.so").unlink(missing_ok=True)
    (folder / "libcuda.so").symlink_to(library)
