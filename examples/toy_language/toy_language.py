"""A language of two operations on matrices: its dialect, its way to te, and its compiler, which links tuned kernels.

Run: python -m toy_language layer.mlir --trials 32
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, TensorType
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline
from xdsl.universe import Universe

import loopwright as lw
from loopwright import te, topi


@irdl_op_definition
class MatmulOp(IRDLOperation):
    """`%c = toy.matmul %a, %b : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>`."""

    name = "toy.matmul"
    lhs, rhs, result = operand_def(TensorType), operand_def(TensorType), result_def(TensorType)
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"


@irdl_op_definition
class ReluOp(IRDLOperation):
    """`%b = toy.relu %a : tensor<4x2xf32> -> tensor<4x2xf32>`."""

    name = "toy.relu"
    operand, result = operand_def(TensorType), result_def(TensorType)
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"


TOY = Dialect("toy", [MatmulOp, ReluOp], [])
MEANING: dict[str, Callable[..., te.Tensor]] = {"toy.matmul": topi.matmul, "toy.relu": topi.nn.relu}
"""Operation -> the tensor expressions that it is."""


@dataclass(frozen=True)
class ToyToTe(ModulePass):
    """Functions of toy operations -> te functions of the same name."""

    name: ClassVar[str] = "toy-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            (lowered,) = [f.detach() or f for f in expressions(function).ops if isinstance(f, FuncOp)]
            op.body.block.insert_op_before(lowered, function)
            op.body.block.erase_op(function)


def expressions(function: FuncOp) -> ModuleOp:
    """Return a function as a module of tensor expressions."""
    tensors: dict[SSAValue, te.Tensor] = {}
    for argument in function.body.block.args:
        assert isinstance(argument.type, TensorType)
        shape, name = argument.type.get_shape(), argument.name_hint or f"arg{argument.index}"
        tensors[argument] = te.placeholder(shape, "float32", name=name)
    inputs = list(tensors.values())
    for op in function.body.block.ops:
        operands = [tensors[operand] for operand in op.operands]
        if isinstance(op, ReturnOp):
            return te.create_module([*inputs, *operands], name=function.sym_name.data)
        tensors[op.results[0]] = MEANING[op.name](*operands)
    raise AssertionError("a function ends with func.return")


def compile_function(module: ModuleOp, target: str, trials: int) -> lw.Kernel:
    """Tune a module's function, and build it by this compiler's own pipeline, the best schedule a part of it."""
    ToyToTe().apply(Context(), module)
    task = lw.SearchTask(module, target=target)
    schedule = task.tune(lw.TuningOptions(num_measure_trials=trials)).best.schedule
    known = Universe.get_multiverse().all_passes
    pipeline = PassPipeline.parse_spec(known, f"{schedule},canonicalize,lw-lower-loop-to-kernel")
    pipeline.apply(Context(), task.module)
    return lw.build(task.module)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile a function of toy operations to an object file and a header.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="llvm", help="what to make code for (default: this CPU, one core)")
    parser.add_argument("--trials", type=int, default=32, help="schedules to measure (default: 32)")
    options = parser.parse_args()
    context = Context()
    for dialect in (Builtin, Func, TOY):
        context.load_dialect(dialect)
    module = Parser(context, options.file.read_text()).parse_module()
    kernel = compile_function(module, options.target, options.trials)
    print(kernel.export_library(options.file.with_suffix(".o")))


UNIVERSE = Universe(all_dialects={"toy": lambda: TOY}, all_passes={"toy-to-te": lambda: ToyToTe})

if __name__ == "__main__":
    main()
