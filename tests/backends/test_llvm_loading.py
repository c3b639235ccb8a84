"""Machine code is loaded into the process's memory, wherever there is room for it."""

import ctypes
import subprocess
import sys

import pytest

from loopwright.backends.llvm import jit
from loopwright.backends.llvm.cpu import CpuFeatures

_FAR_APART = '''
import ctypes

import llvmlite.binding as llvm
import numpy as np

from loopwright.backends.llvm import jit, loaded_object

SOURCE = """
@table = internal constant [2 x float] [float 2.0, float 3.0]
declare float @sinf(float)
define void @lw_run(ptr %x) {
  %first = load float, ptr %x
  %index = fptosi float %first to i64
  %entry = getelementptr float, ptr @table, i64 %index
  %factor = load float, ptr %entry
  %sine = call float @sinf(float %factor)
  store float %sine, ptr %x
  ret void
}
define void @lw_time(ptr %x, i64 %runs) { ret void }
"""
code = jit.compile_text(SOURCE).object_code
loaded = loaded_object.LoadedObject(code, threads=1)  # whatever the first one takes memory for is taken
loaded.close()

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
NO_ACCESS, PRIVATE_ANONYMOUS_NORESERVE, PAGE = 0, 0x4022, 4096

def reserve(size):
    return libc.mmap(None, size, NO_ACCESS, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)

regions = [reserve(3 << 30) for _ in range(32)]
for size in (1 << 20, PAGE):
    while reserve(size) > min(regions):  # until nothing of that size is free above
        pass
for region in regions:  # pages are free 3 GiB from one another
    libc.munmap(region, PAGE)
loaded = loaded_object.LoadedObject(code, threads=1)
x = np.ones(2, np.float32)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.run)(x.ctypes.data)
print(np.allclose(x[0], np.sin(np.float32(3))))
'''


def test_code_is_loaded_where_free_pages_lie_far_apart() -> None:
    """Code and constants 2 GiB apart, out of each other's reach, ended the process: an assertion in LLVM."""
    done = subprocess.run([sys.executable, "-c", _FAR_APART], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


_ADDED = """
define i64 @lw_added(i64 %a) {
  %b = add i64 %a, 3
  ret i64 %b
}
"""


class _Refused(Exception):
    """Machine code is asked for."""


def test_functions_of_another_system_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home may be shared with a system that has another format of object files, on the same CPU."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert jit.kept_function(_ADDED, "lw_added", kind)(4) == 7

    def refuse(source: str) -> None:
        raise _Refused

    monkeypatch.setattr(jit, "compile_text", refuse)
    monkeypatch.setattr(CpuFeatures, "triple", "x86_64-apple-darwin")
    with pytest.raises(_Refused):
        jit.kept_function(_ADDED, "lw_added", kind)


def test_functions_of_a_process_come_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert jit.kept_function(_ADDED, "lw_added", kind)(4) == 7
    compiled: list[str] = []
    monkeypatch.setattr(jit, "compile_text", compiled.append)
    assert jit.kept_function(_ADDED, "lw_added", kind)(5) == 8
    assert not compiled
