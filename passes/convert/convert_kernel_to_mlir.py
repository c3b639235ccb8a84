"""Convert kernels to memref, arith, scf, vector and gpu, which MLIR's own tools read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects import kernel
from ...dialects.buffers import scope_of
from ...dialects.target import LINE_BYTES
from ._kernel_body import NAME, SHARED, KernelBody
from ._types import stored


@dataclass(frozen=True)
class ConvertKernelToMlir(ModulePass):
    """Kernels -> `func.func` on memrefs around scf, arith, math, vector and memref; launches -> kernels of `gpu`.

    `lw_kernel.launch grid [g] block [b] { body }` -> `gpu.launch_func @f_gpu::@f_0 blocks in (g) threads in (b)` and

    `gpu.module @f_gpu { gpu.func @f_0(buffers) kernel { body } }`, its shared memory `memref.global` in space 3.

    Requires: the level of kernels (`lw-lower-loop-to-kernel`). The module's target and what our own dialects annotate
    go, since MLIR's tools know neither.
    """

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_kernel_to_mlir(op)


def convert_kernel_to_mlir(module: ModuleOp) -> None:
    """Convert every function of a module, in place; PassFailedException for what is not of the level of kernels."""
    for func in [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]:
        _convert(module, func)
    module.attributes.pop("lw.target", None)


def _convert(module: ModuleOp, func: FuncOp) -> None:
    old = func.body.block
    if not all(isinstance(a.type, MemRefType) for a in old.args):
        raise PassFailedException(f"{NAME}: '{func.sym_name.data}' is on tensors: run lw-lower-te-to-loop first")
    types = [_memref(a.type) for a in old.args]
    entry = Block(arg_types=types)
    host = KernelBody(entry, {})
    for argument, new in zip(old.args, entry.args, strict=True):
        new.name_hint = argument.name_hint
        host.values[argument] = _flat(host, new)
    launches = [op for op in old.ops if isinstance(op, kernel.LaunchOp)]
    if launches:
        name = StringAttr(f"{func.sym_name.data}_gpu")
        kernels = gpu.ModuleOp.build(properties={"sym_name": name}, regions=[Region(Block())])
        module.body.block.insert_op_before(kernels, func)
        module.attributes["gpu.container_module"] = UnitAttr()
        _Host(host, kernels, func.sym_name.data).statements(old)
    else:
        host.statements(old)
    entry.add_op(ReturnOp())
    new_func = FuncOp(func.sym_name.data, (types, []), Region(entry), func.sym_visibility)
    module.body.block.insert_op_before(new_func, func)
    module.body.block.erase_op(func)


def _memref(kind: Attribute) -> MemRefType[Attribute]:
    assert isinstance(kind, MemRefType)
    return MemRefType(stored(kind.element_type), kind.get_shape())


def _flat(body: KernelBody, buffer: SSAValue) -> SSAValue:
    """Return a view of a buffer of the caller's in one dimension, by which kernels address."""
    kind = cast("MemRefType[Attribute]", buffer.type)
    size = prod(kind.get_shape())
    if kind.get_shape() == (size,):
        return buffer
    flat = MemRefType(kind.element_type, [size])
    return body.b.add(memref.ReinterpretCastOp.from_dynamic(buffer, [0], [size], [1], flat))


class _Host:
    """The function that launches kernels, each of which goes to a module for the device."""

    def __init__(self, body: KernelBody, kernels: gpu.ModuleOp, name: str) -> None:
        self.body, self.kernels, self.name = body, kernels, name
        self.symbols = 0

    def statements(self, block: Block) -> None:
        """Write what the host does: allocate what launches pass on, launch, free; constants go where they are used."""
        device: list[SSAValue] = []
        for op in block.ops:
            if isinstance(op, kernel.LaunchOp):
                self._launch(op)
            elif isinstance(op, kernel.AllocOp):
                buffer = self.body.b.add(gpu.AllocOp(_memref(op.buffer.type)))
                buffer.name_hint = op.buffer.name_hint
                self.body.values[op.buffer] = buffer
                device.append(buffer)
        self.body.b.block.add_ops(gpu.DeallocOp(buffer) for buffer in device)

    def _symbol(self, label: str) -> str:
        self.symbols += 1
        return f"{label}_{self.symbols - 1}"

    def _launch(self, op: kernel.LaunchOp) -> None:
        name = self._symbol(self.name)
        buffers = _buffers_from_outside(op)
        arguments = [self.body.values[buffer] for buffer in buffers]
        types = [argument.type for argument in arguments]
        entry = Block(arg_types=types)
        for argument, buffer in zip(entry.args, buffers, strict=True):
            argument.name_hint = buffer.name_hint
        inside = KernelBody(entry, dict(zip(buffers, entry.args, strict=True)))
        for shared in op.body.block.ops:
            if isinstance(shared, kernel.AllocOp) and scope_of(shared.buffer) == "shared":
                self._share(shared, inside)
        inside.statements(op.body.block)
        entry.add_op(gpu.ReturnOp([]))
        func = gpu.FuncOp(name, (types, []), Region(entry))
        func.attributes["gpu.kernel"] = UnitAttr()
        func.attributes["known_block_size"] = DenseArrayBase.from_list(i32, op.block_size)
        func.attributes["known_grid_size"] = DenseArrayBase.from_list(i32, op.grid_size)
        self.kernels.body.block.add_op(func)
        grid, block = ([self.body.b.constant(n) for n in each] for each in (op.grid_size, op.block_size))
        symbol = SymbolRefAttr(self.kernels.sym_name.data, [name])
        self.body.b.block.add_op(gpu.LaunchFuncOp(symbol, grid, block, kernelOperands=arguments))

    def _share(self, op: kernel.AllocOp, inside: KernelBody) -> None:
        """Make a global of the device's module of a buffer that a block of threads shares."""
        old = cast("MemRefType[Attribute]", op.buffer.type)
        kind = MemRefType(stored(old.element_type), old.get_shape(), memory_space=SHARED)
        symbol = StringAttr(self._symbol(op.label.data))
        self.kernels.body.block.add_op(memref.GlobalOp.get(symbol, kind, UnitAttr(), alignment=LINE_BYTES))
        buffer = inside.b.add(memref.GetGlobalOp(symbol.data, kind))
        buffer.name_hint = op.buffer.name_hint
        inside.values[op.buffer] = buffer


def _buffers_from_outside(op: kernel.LaunchOp) -> list[SSAValue]:
    """Return the buffers that a launch uses and does not allocate, each once."""
    inside = {result for inner in op.walk() for result in inner.results}
    used = (operand for inner in op.walk() for operand in inner.operands if isinstance(operand.type, MemRefType))
    return [buffer for buffer in dict.fromkeys(used) if buffer not in inside]
