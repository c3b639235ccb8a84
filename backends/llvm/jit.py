"""LLVM IR text to machine code, and machine code to callable addresses."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from ...storage.binary_cache import BinaryCache
from ...storage.folders import cache_folder
from ..missing import MissingRequirement
from .cpu import CpuFeatures, architecture, cpu_for
from .half import conversion_functions, conversion_symbols

Made = TypeVar("Made")
_LOCK = threading.RLock()
"""LLVM's engines register themselves with the process when made and dropped; one at a time."""

_LONG_SOURCE = 1 << 15
"""Characters of LLVM IR from which on long address expressions are left as they are written. Shorter modules take 10 to
40 ms to emit either way."""
_LONG_EXPRESSION, _LLVMS_LONG_EXPRESSION = 15, 4096
"""Operands of an address expression that is left as it is, and LLVM's own limit. Loop strength reduction compares all
ways to form all addresses of an unrolled loop: of a ResNet-50's 28 kernels 2.5 s of CPU to emit, 1.4 so, up to 0.30 s
and 0.04 of one. Of 169 kernels the code of 70 changed; they take 1.002 of the time (0.95 to 1.03 but for noise that did
not come again), as a few address computations are nothing beside an unrolled loop. Without the pass they take 1.04 of
the time, some 1.3 (Xeon, AVX-512)."""

_MOST_PROMOTED, _LLVMS_MOST_PROMOTED = 4096, 250
"""Loads and stores of a loop up to which what stays at one address is kept in a register, and LLVM's own limit. Of six
steps of 12 rows and two vectors, the last of a tile, there are 288: each multiply-add stored its sum, and 26x26x96 with
3x3 taps took 0.88 ms for 0.54 (an Emerald Rapids). The code of 19 default schedules of convolutions is the same."""

_INLINE_ASSEMBLY = re.compile(r"\bcall [^\n]*\basm\b")


@cache
def _initialize() -> None:
    """Make LLVM ready, and have a fork wait until no thread is amid its work, which the child could never end."""
    import llvmlite.binding as llvm

    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # without it inline assembly ends the process


@cache
def _initialize_all() -> None:
    """Make LLVM ready for all architectures that it was built with."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(cpu: CpuFeatures, jit: bool = True) -> Any:
    """Return what makes code for a CPU, to be loaded here unless told otherwise; MissingTarget where LLVM has none."""
    import llvmlite.binding as llvm

    _initialize()
    if cpu.arch != architecture():
        _initialize_all()
    try:
        target = llvm.Target.from_triple(cpu.triple)
    except RuntimeError as error:
        raise MissingTarget(f"LLVM here was built without {cpu.arch}: {error}") from error
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.flags, opt=3, reloc="pic", codemodel="default", jit=jit
    )


class MissingTarget(MissingRequirement):
    """LLVM was built without an architecture, or without its assembler."""


def _check_assembly(sources: Sequence[str], cpu: CpuFeatures) -> None:
    """MissingTarget where an intrinsic's inline assembly is for another architecture than LLVM here assembles."""
    if cpu.arch != architecture() and any(_INLINE_ASSEMBLY.search(source) for source in sources):
        rule = f"inline assembly is assembled for {architecture()} alone, the target has {cpu.arch}"
        raise MissingTarget(f"{rule}: give the intrinsic's code as a call, of LLVM's intrinsic or a C function")


@dataclass(frozen=True)
class Compiled:
    """Machine code of one module, the CPU features that it may use, and what it was made from."""

    object_code: bytes
    features: tuple[str, ...]
    source: str
    optimized: str
    assembly: str


def compile_text(source: str, texts: bool = False, cpu: CpuFeatures | None = None) -> Compiled:
    """Optimize LLVM IR text and emit an object file to load; with `texts` also the optimized IR and the assembly.

    The code is for this CPU unless another one is given, of any architecture; MissingTarget where LLVM has it not.
    Loop and SLP vectorizers and unrolling are off: the schedule has decided these.
    """
    import llvmlite.binding as llvm

    cpu = cpu or cpu_for()
    _check_assembly((source,), cpu)
    with _LOCK:
        machine = _machine(cpu, jit=cpu.arch == architecture())
        context = llvm.create_context()
        module = llvm.parse_assembly(source, context)
        try:
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            _optimize(module, machine)
            optimized = str(module) if texts else ""
            with _long_expressions_left() if len(source) >= _LONG_SOURCE else nullcontext():
                object_code = machine.emit_object(module)
                assembly = machine.emit_assembly(module) if texts else ""
        finally:
            module.close()
            context.close()
            machine.close()
    return Compiled(object_code, cpu.features, source, optimized, assembly)


@contextmanager
def _option(name: str, value: int, usual: int) -> Iterator[None]:
    """Have LLVM work with another value of an option; it is the process's, so within `_LOCK`."""
    import llvmlite.binding as llvm

    llvm.set_option("", f"-{name}={value}")
    try:
        yield
    finally:
        llvm.set_option("", f"-{name}={usual}")


def _long_expressions_left() -> AbstractContextManager[None]:
    """Have LLVM leave long address expressions as they are."""
    return _option("scalar-evolution-huge-expr-threshold", _LONG_EXPRESSION, _LLVMS_LONG_EXPRESSION)


def compile_library(sources: Sequence[str], symbol: str, cpu: CpuFeatures) -> bytes:
    """Link LLVM IR texts, optimize them, and emit an object file for a linker, which sees one function of theirs."""
    return _library(sources, symbol, cpu, lambda machine, module: bytes(machine.emit_object(module)))


def library_text(sources: Sequence[str], symbol: str, cpu: CpuFeatures) -> str:
    """Return the optimized LLVM IR that `compile_library` makes an object file of."""
    return _library(sources, symbol, cpu, lambda _, module: str(module))


def _library(sources: Sequence[str], symbol: str, cpu: CpuFeatures, emit: Callable[[Any, Any], Made]) -> Made:
    import llvmlite.binding as llvm

    _check_assembly(sources, cpu)
    conversions = conversion_functions(sources, cpu)
    with _LOCK:
        machine = _machine(cpu, jit=False)
        context = llvm.create_context()
        module = llvm.parse_assembly(sources[0], context)
        try:
            module.triple, module.data_layout = machine.triple, str(machine.target_data)
            for source in (*sources[1:], *([conversions] if conversions else ())):
                other = llvm.parse_assembly(source, context)
                other.triple, other.data_layout = module.triple, module.data_layout
                module.link_in(other)
            for value in (*module.functions, *module.global_variables):
                if not value.is_declaration and value.name != symbol and not value.name.startswith("llvm."):
                    value.linkage = "internal"
            _optimize(module, machine)
            return emit(machine, module)
        finally:
            module.close()
            context.close()
            machine.close()


def _optimize(module: Any, machine: Any) -> None:
    """Inline what asks for it, then simplify each function: what else O3 does for a module finds nothing to do here."""
    import llvmlite.binding as llvm

    with _option("licm-mssa-max-acc-promotion", _MOST_PROMOTED, _LLVMS_MOST_PROMOTED):
        options = llvm.PipelineTuningOptions(speed_level=3)  # which takes the option as it is now
    options.loop_vectorization = False
    options.loop_interleaving = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    with options, llvm.create_pass_builder(machine, options) as builder:
        inliner = llvm.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.add_global_dead_code_eliminate_pass()
        _run(inliner, module, builder)
        for function in module.functions:
            if not function.is_declaration:
                _run(builder.getFunctionPassManager(), function, builder)


def _run(passes: Any, on: Any, builder: Any) -> None:
    """Run passes and free them: `close` would not, as the `_dispose` that does so stands behind an empty one."""
    import llvmlite.binding as llvm

    passes.run(on, builder)
    llvm.newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


class LoadedSymbols:
    """An object file in memory; `addresses` of its symbols are valid until `close`.

    `outside` are addresses of what it calls, by symbol, besides what this process has for all.
    RuntimeError names the symbols that this process does not have.
    """

    def __init__(self, object_code: bytes, symbols: Sequence[str], outside: Sequence[tuple[str, int]] = ()) -> None:
        import llvmlite.binding as llvm

        with _LOCK:
            self._engine = llvm.create_lljit_compiler(_machine(cpu_for()), use_jit_link=True)
            library = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
            for symbol, address in (*conversion_symbols(object_code), *outside):
                library.import_symbol(symbol, address)
            for symbol in symbols:
                library.export_symbol(symbol)
            self._tracker = library.link(self._engine, "kernel")
            self.addresses = {symbol: self._tracker[symbol] for symbol in symbols}

    def close(self) -> None:
        """Free the code."""
        with _LOCK:
            self._tracker.close()
            self._engine.close()

    def keep(self) -> None:
        """Leave the code in memory until the process ends: of use where its own threads run it."""
        self._tracker.detach()
        self._engine.detach()


def kept_function(source: str, symbol: str, kind: Callable[[int], Made]) -> Made:
    """Return a function of LLVM IR text, as a ctypes type makes it of an address; it stays until the process ends.

    Its object code is kept on disk: that of what runs programs and changes rows takes 45 ms to make, 3 to load.
    """
    import llvmlite

    cpu = cpu_for()
    store = BinaryCache(cache_folder("functions"))
    key = (source, cpu.triple, cpu.name, cpu.flags, llvmlite.__version__)
    if (found := store.get(key)) is not None:
        object_code = found[1]
    else:
        object_code = compile_text(source).object_code
        store.put(key, "", object_code)
    code = LoadedSymbols(object_code, (symbol,))
    code.keep()
    return kind(code.addresses[symbol])
