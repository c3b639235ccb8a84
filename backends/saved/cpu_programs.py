"""Programs that run a kernel of a shared library, or of LLVM IR."""

from __future__ import annotations

from pathlib import Path

from ..llvm.c_function import CFunction
from ..llvm.cpu import CpuFeatures
from .c_program import c_main
from .files import MADE_BY, beside
from .python_program import python_program

_FROM_LIBRARY = '''

@functools.cache
def function():
    """Return the kernel of the shared library beside this file."""
    return ctypes.CDLL(str(Path(__file__).resolve().with_name(FILE)))[SYMBOL]
'''
_FROM_IR = '''

@functools.cache
def function():
    """Compile the IR beside this file, once; the engine lives as long as the process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if THREADS > 1:
        llvm.load_library_permanently("libgomp.so.1")
    module = llvm.parse_assembly(Path(__file__).resolve().with_name(FILE).read_text())
    target = llvm.Target.from_triple(module.triple)
    machine = target.create_target_machine(cpu=CPU, features=FEATURES, opt=3, reloc="pic", jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    made = ctypes.CFUNCTYPE(ctypes.c_int)(engine.get_function_address(SYMBOL))
    made.engine = engine
    return made
'''
_LAUNCH = '''

def launch(arrays):
    """Call the kernel on arrays for all arguments, and a workspace on a multiple of 64 bytes where it takes one."""
    workspace = np.empty(WORKSPACE_BYTES + 64, np.uint8)
    places = [array.ctypes.data for array in arrays]
    places += [-(-workspace.ctypes.data // 64) * 64] if WORKSPACE_BYTES else []
    code = function()(*map(ctypes.c_void_p, places))
    if code:
        raise RuntimeError(f"{NAME} returns {code}")
'''


def run_from_python(path: Path, function: CFunction, cpu: CpuFeatures) -> str:
    """Return the text of `k_run.py` for `k.so` or `k.ll`."""
    tables = {"SYMBOL": function.symbol, "WORKSPACE_BYTES": function.workspace_bytes}
    if path.suffix == ".so":
        return python_program(path, function.name, function.arguments, tables, _FROM_LIBRARY + _LAUNCH)
    tables |= {"THREADS": function.threads, "CPU": cpu.name, "FEATURES": cpu.flags}
    return python_program(
        path, function.name, function.arguments, tables, _FROM_IR + _LAUNCH, ["llvmlite"], " and llvmlite"
    )


def run_from_c(path: Path, function: CFunction) -> str:
    """Return the text of `k_host.c` for `k.so` or `k.ll`."""
    openmp = " -fopenmp" if function.threads > 1 else ""
    compiler = "cc" if path.suffix == ".so" else "clang -O3"
    host, macro = beside(path, "_host.c").name, function.symbol.upper()
    return "\n".join(
        [
            f"/* Runs kernel {function.name} of {path.name}, {MADE_BY}, on files of raw bytes.",
            f" * {compiler} -o {beside(path, '_host').name} {host} ./{path.name} -lm{openmp} */",
            *("#include <stdio.h>", "#include <stdlib.h>", ""),
            f'#include "{path.with_suffix(".h").name}"',
            c_main(function.symbol, function.arguments, f"{macro}_WORKSPACE_BYTES" if function.workspace_bytes else ""),
        ]
    )
