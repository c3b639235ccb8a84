"""MLIR's own tools, where they are installed: parse generic text, lower it to LLVM IR, run that with llvmlite.

Kernels of `gpu` run on the CPU, a thread of Python's for each thread of a block: barriers and shuffles call back.
"""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, get_all_dialects, gpu, memref
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from loopwright.dialects.element import dtype_name
from loopwright.passes.convert._gpu_shuffle import ShuffleOp

VERSIONS = ("", "-22", "-21", "-20")
"""Suffixes of the tools' names, as Debian has them."""
OLDEST = 20
"""LLVM's version from which on the tools are taken; 22 is what was tried. In 19, masks of `vector.shuffle` are no
arrays of integers, functions of `gpu` want another terminator, and public functions keep results that are buffers."""

TO_LLVM = (
    "math-extend-to-supported-types{extra-types=f16},"  # exp of bfloat16 calls what libgcc has from 13 on
    "convert-scf-to-cf,arith-expand{include-bf16=true},"
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32},arith-expand{include-bf16=true},"
    "convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,"
    "convert-cf-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts"
)
TO_BUFFERS = (
    "one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions=1},convert-linalg-to-loops,lower-affine"
)


@functools.cache
def tool(name: str) -> str:
    """Return the path of `mlir-opt` or `mlir-translate`; without one the test is skipped."""
    for suffix in VERSIONS:
        found = shutil.which(name + suffix)
        if found and _version(found) >= OLDEST:
            return found
    pytest.skip(f"no {name} of LLVM {OLDEST} or newer is installed (Debian: apt-get install mlir-22-tools)")


def _version(path: str) -> int:
    """Return the version of LLVM that a tool was built with."""
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"LLVM version (\d+)", told)
    return int(found[1]) if found else 0


def generic(module: ModuleOp) -> str:
    """Return a module's text in MLIR's generic form."""
    text = io.StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    return text.getvalue()


def context() -> Context:
    """Return a context with all dialects of xDSL's, which takes the one operation that they lack, `gpu.shuffle`."""
    found = Context(allow_unregistered=True)
    for name, dialect in get_all_dialects().items():
        found.register_dialect(name, dialect)
    return found


def _run(command: Sequence[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}\n{text[:20000]}"
    return done.stdout


def mlir_opt(text: str, passes: str = "") -> str:
    """Return what `mlir-opt` prints, in the generic form, after these passes."""
    pipeline = [f"--pass-pipeline=builtin.module({passes})"] if passes else []
    return _run([tool("mlir-opt"), *pipeline, "--mlir-print-op-generic"], text)


class Compiled:
    """Functions of a module in MLIR's dialects, lowered by MLIR's passes to LLVM IR, which llvmlite compiles."""

    def __init__(self, module: ModuleOp, passes: str = TO_LLVM) -> None:
        lowered = mlir_opt(generic(module), passes)
        text = _run([tool("mlir-translate"), "--mlir-to-llvmir"], lowered)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        parsed = llvm.parse_assembly(text)
        parsed.verify()
        target = llvm.Target.from_default_triple()
        features = llvm.get_host_cpu_features().flatten()
        machine = target.create_target_machine(llvm.get_host_cpu_name(), features, opt=1)
        llvm.load_library_permanently("libm.so.6")
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()

    def function(self, name: str, arguments: int, indices: int = 0) -> Callable[..., None]:
        """Return a function of so many pointers and then so many integers."""
        kinds = [ctypes.c_void_p] * arguments + [ctypes.c_int64] * indices
        return ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))


def unwritten(shape: Sequence[int], element: Attribute) -> np.ndarray:
    """Return an array of NaN, or of 77, which no kernel reads."""
    return unwritten_like(np.empty(shape, dtype_name(element)))


def unwritten_like(array: np.ndarray) -> np.ndarray:
    """Return an array of NaN, of 77 or of False, of the shape and type of another one."""
    value = {"b": False, "i": 77, "u": 77}.get(array.dtype.kind, np.nan)
    return np.full(array.shape, value, array.dtype)


def run(module: ModuleOp, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], passes: str = TO_LLVM) -> None:
    """Run the one function of a module on arrays, which it takes in order."""
    compiled = Compiled(module, passes)
    name = next(op.sym_name.data for op in module.body.block.ops if isinstance(op, func.FuncOp))
    arrays = [*map(np.ascontiguousarray, inputs), *outputs]
    compiled.function(name, len(arrays))(*(array.ctypes.data for array in arrays))


# -- kernels of gpu ---------------------------------------------------------------------------------------------------


def run_launches(module: ModuleOp, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Do what the host's function of a module does, its kernels compiled for the CPU."""
    host = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    device = next(op for op in module.body.block.ops if isinstance(op, gpu.ModuleOp))
    kernels = {op.sym_name.data: _Kernel(op) for op in device.body.block.ops if isinstance(op, gpu.FuncOp)}
    callbacks = _Threads()
    compiled = Compiled(ModuleOp([*callbacks.declarations(), *(kernel.func for kernel in kernels.values())]))
    buffers: dict[SSAValue, np.ndarray] = dict(zip(host.body.block.args, [*inputs, *outputs], strict=True))
    for op in host.body.block.ops:
        if isinstance(op, memref.ReinterpretCastOp):
            buffers[op.result] = buffers[op.source]
        elif isinstance(op, gpu.AllocOp):
            assert isinstance(op.result.type, MemRefType)
            buffers[op.result] = unwritten(op.result.type.get_shape(), op.result.type.element_type)
        elif isinstance(op, gpu.LaunchFuncOp):
            kernel = kernels[op.kernel.nested_references.data[0].data]
            arrays = [buffers[operand] for operand in op.kernelOperands] + kernel.shared()
            grid = [_integer(n) for n in (op.gridSizeX, op.gridSizeY, op.gridSizeZ)]
            block = [_integer(n) for n in (op.blockSizeX, op.blockSizeY, op.blockSizeZ)]
            callbacks.launch(compiled.function(kernel.name, len(arrays), 6), arrays, grid, block)
        else:
            assert isinstance(op, arith.ConstantOp | gpu.DeallocOp | func.ReturnOp), op


def _integer(value: SSAValue) -> int:
    owner = value.owner
    assert isinstance(owner, arith.ConstantOp)
    return int(owner.value.value.data)  # type: ignore[union-attr]


class _Kernel:
    """A kernel as a function of its buffers, of what it shares, and of the place of a thread."""

    def __init__(self, op: gpu.FuncOp) -> None:
        self.name = op.sym_name.data
        body = op.body.clone()
        entry = body.block
        shared = [o for o in entry.walk() if isinstance(o, memref.GetGlobalOp)]
        self._types = [MemRefType(o.memref.type.element_type, o.memref.type.get_shape()) for o in shared]
        for get, kind in zip(shared, self._types, strict=True):
            _replace(get, entry.insert_arg(kind, len(entry.args)))
        places = {}
        for kind_of_op, dimension in itertools.product((gpu.BlockIdOp, gpu.ThreadIdOp), "xyz"):
            places[kind_of_op, dimension] = entry.insert_arg(IndexType(), len(entry.args))
        for o in list(entry.walk()):
            if isinstance(o, gpu.BlockIdOp | gpu.ThreadIdOp):
                _replace(o, places[type(o), o.dimension.data.value])
            elif isinstance(o, gpu.BarrierOp):
                block = o.parent_block()
                assert block is not None
                block.insert_op_before(func.CallOp("lw_barrier", [], []), o)
                block.erase_op(o)
            elif isinstance(o, ShuffleOp):
                _call_shuffle(o)
        last = entry.last_op
        assert last is not None
        entry.insert_op_before(func.ReturnOp(), last)
        entry.erase_op(last)
        self.func = func.FuncOp(self.name, ([a.type for a in entry.args], []), body)

    def shared(self) -> list[np.ndarray]:
        return [unwritten(kind.get_shape(), kind.element_type) for kind in self._types]


def _replace(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)


def _call_shuffle(op: ShuffleOp) -> None:
    """Exchange the bits of a value, as an integer of 64."""
    block, kind = op.parent_block(), op.value.type
    assert block is not None
    bits = {4: "i32", 8: "i64"}[kind.bitwidth // 8]  # type: ignore[attr-defined]
    plain = arith.BitcastOp(op.value, {"i32": gpu.i32, "i64": i64}[bits])
    wide = [plain] if bits == "i64" else [plain, arith.ExtUIOp(plain, i64)]
    call = func.CallOp("lw_shuffle", [wide[-1].results[0], op.offset], [i64])
    narrow: list[Any] = [] if bits == "i64" else [arith.TruncIOp(call.results[0], gpu.i32)]
    back = arith.BitcastOp((narrow or [call])[-1].results[0], kind)
    block.insert_ops_before([*wide, call, *narrow, back], op)
    op.result.replace_all_uses_with(back.results[0])
    block.erase_op(op)


class _Threads:
    """Threads of a block, that wait for each other and pass values on."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._everyone = threading.Barrier(1)
        self._warps: list[threading.Barrier] = []
        self._values: list[int] = []
        barrier = ctypes.CFUNCTYPE(None)(lambda: self._wait())
        shuffle = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)(lambda v, d: self._pass_on(v, d))
        self._kept = [barrier, shuffle]
        for name, callback in (("lw_barrier", barrier), ("lw_shuffle", shuffle)):
            llvm.add_symbol(name, ctypes.cast(callback, ctypes.c_void_p).value)

    def declarations(self) -> list[func.FuncOp]:
        return [func.FuncOp.external("lw_barrier", [], []), func.FuncOp.external("lw_shuffle", [i64, gpu.i32], [i64])]

    def _wait(self) -> None:
        self._everyone.wait()

    def _pass_on(self, value: int, distance: int) -> int:
        number: int = self._own.number
        warp = self._warps[number // 32]
        self._values[number] = value
        warp.wait()
        found = self._values[number ^ distance]
        warp.wait()
        return found

    def launch(
        self, kernel: Callable[..., None], arrays: list[np.ndarray], grid: Sequence[int], block: Sequence[int]
    ) -> None:
        count = int(np.prod(block))
        self._everyone = threading.Barrier(count)
        self._warps = [threading.Barrier(min(32, count - first)) for first in range(0, count, 32)]
        self._values = [0] * count
        pointers = [array.ctypes.data for array in arrays]

        def thread(number: int) -> None:
            self._own.number = number
            x, y, z = number % block[0], number // block[0] % block[1], number // block[0] // block[1]
            for place in itertools.product(*map(range, reversed(grid))):
                kernel(*pointers, *reversed(place), x, y, z)
                self._everyone.wait()

        threads = [threading.Thread(target=thread, args=(number,)) for number in range(count)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
