"""LLVM IR text of a function of the kernel dialect, written directly, one handler per operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation

from ...dialects.element import element_bytes
from ...dialects.kernel import ParallelOp
from ...dialects.shown_text import one_line
from ...dialects.target import target_of
from ..function_arguments import arguments_of
from ..signature import Argument
from ..unsupported import UnsupportedError
from . import memory, ops, tiles
from .bfloat16 import with_bfloat16
from .bounds import check_access, leave_where_trapped
from .function import Function, Module, Workspace
from .host import cpu_of
from .outside import CheckedAccess
from .parallel import emit_parallel_call
from .symbols import RUN_SYMBOL, TIME_SYMBOL
from .tiles import TILE, Carried, begin_tiles, end_tiles, run_of_tiles, tiles_of_loop, tiles_of_run
from .turned_loads import turned_loads
from .types import buffer_bytes
from .work import threads_worth

_AVX512 = frozenset({"avx512f", "avx512vl", "fma"})
"""Features of AVX-512's floats in vectors of any width (Intel 64 and IA-32 manual, volume 2, VSCALEFPS, VRCP14PS); for
LLVM it is off where multiply-adds are."""


@dataclass(frozen=True)
class KernelText:
    """LLVM IR of a kernel: `lw_run(ptr to pointers)` and `lw_time(ptr to pointers, number of runs)`.

    The pointers are the arguments', then one to `workspace_bytes` of memory on a cache line. `accesses` are those whose
    addresses are tested; with any, the text has the record that `TRAP_SYMBOL` names. `features` are those of a CPU that
    matrix instructions need, beyond what all code for the target may use.
    """

    name: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int
    threads: int
    source: str
    accesses: tuple[CheckedAccess, ...] = ()
    features: tuple[str, ...] = ()


def emit(module: ModuleOp, check_addresses: bool = False) -> KernelText:
    """Print the one kernel function of a module; UnsupportedError names an operation that has no LLVM form.

    With `check_addresses` every access is tested against the extent of its buffer, see `bounds`.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    if len(functions) != 1:
        raise UnsupportedError(f"a kernel module holds one function, got {len(functions)}")
    function = functions[0]
    target = target_of(module)
    name = function.sym_name.data
    cpu = cpu_of(target)
    text = Module(max(1, target.cores), name, check_addresses, has_avx512=_AVX512.issubset(cpu.features))
    body = Function(text)
    parameters = []
    for number, argument in enumerate(function.body.block.args):
        body.names[argument] = f"%a{number}"
        parameters.append(buffer_parameter(f"%a{number}", cast(MemRefType[Attribute], argument.type)))
    emit_block(body, function.body.block)
    body.do("ret void")
    parameters += [f"ptr noalias noundef nonnull align 64 {buffer.name}" for buffer in body.workspace.buffers]
    kernel = body.text(f"define internal void @kernel({', '.join(parameters)}) #1")
    entry = _entry(len(function.body.block.args), body.workspace)
    return KernelText(
        name,
        arguments_of(function),
        body.workspace.bytes,
        text.threads if text.regions else 1,
        _assemble(text, [kernel, entry], wide=target.vector_bytes >= 64, tune=cpu.tune),
        tuple(text.accesses),
        tuple(sorted(text.features)),
    )


def buffer_parameter(name: str, buffer_type: MemRefType[Attribute]) -> str:
    """Return the parameter that points at a buffer of this type, aliasing no other."""
    size = buffer_bytes(buffer_type)
    align = element_bytes(buffer_type.element_type)
    return f"ptr noalias noundef nonnull align {align} dereferenceable({size}) {name}"


def emit_block(f: Function, block: Block) -> None:
    """Print a block's operations in order, but loads that are made together with the first of them."""
    together = {} if f.module.check_addresses else turned_loads(block)
    made: set[Operation] = set()
    run = run_of_tiles(block)
    begun: Carried = {}
    for op in block.ops:
        if run and op is run[0]:
            begun = begin_tiles(f, tiles_of_run(f, run))
        if op in together:
            memory.emit_loads_together(f, op, together[op])
            made.update(load for group in together[op] for load in group.loads)
        if op in made:
            continue
        handler = _HANDLERS.get(type(op))
        if handler is None:
            raise ops.unsupported(op)
        if f.module.check_addresses:
            check_access(f, op)
        handler(f, op)
        if run and op is run[-1]:
            end_tiles(f, begun)


def _nothing(f: Function, op: Operation) -> None:
    pass


def _for(f: Function, op: Operation) -> None:
    low, high, step, *carried = op.operands
    if carried:
        raise UnsupportedError("loops of the kernel dialect carry no values")
    body = op.regions[0].blocks[0]
    emit_loop(f, f.names[low], f.names[high], f.names[step], body)


def emit_loop(f: Function, low: str, high: str, step: str, body: Block) -> None:
    """Print `for (i = low; i < high; i += step)`; nothing where it never runs, no loop where it runs once."""
    known = all(text[0] != "%" for text in (low, high, step))
    trips = max(0, -(-(int(high) - int(low)) // int(step))) if known else None
    if trips == 0:
        return
    if trips == 1:
        f.names[body.args[0]] = low
        with f.scope():
            emit_block(f, body)
        return
    carried = tiles_of_loop(f, body)
    begun = begin_tiles(f, carried)
    head, end = f.label("loop"), f.label("done")
    before, entering = f.block, {key: f.tiles[key] for key in carried}
    if known:
        f.do(f"br label %{head}")
    else:
        f.branch(f.put(f"icmp slt i64 {low}, {high}"), head, end)
    f.start_block(head)
    counter, phi = f.fresh(), len(f.lines)
    following = f.fresh()
    f.lines.append("")
    for key in carried:
        f.tiles[key] = f.fresh()
        f.lines.append("")
    inside = [f.tiles[key] for key in carried]
    f.names[body.args[0]] = counter
    with f.scope():
        emit_block(f, body)
    latch = f.block
    f.lines[phi] = f"  {counter} = phi i64 [ {low}, %{before} ], [ {following}, %{latch} ]"
    for number, (key, name) in enumerate(zip(carried, inside, strict=True), phi + 1):
        f.lines[number] = f"  {name} = phi {TILE} [ {entering[key]}, %{before} ], [ {f.tiles[key]}, %{latch} ]"
    f.do(f"{following} = add nsw i64 {counter}, {step}")
    more = f.put(f"icmp slt i64 {following}, {high}")
    often = f", !prof {f.module.often(trips)}" if trips is not None else ""
    f.do(f"br i1 {more}, label %{head}, label %{end}{often}, !llvm.loop {f.module.loop_metadata()}")
    f.start_block(end)
    if not known:
        for key in carried:
            f.tiles[key] = f.put(f"phi {TILE} [ {entering[key]}, %{before} ], [ {f.tiles[key]}, %{latch} ]")
    end_tiles(f, begun)


def _if(f: Function, op: Operation) -> None:
    condition = f.names[op.operands[0]]
    then, other = op.regions
    has_else = bool(other.blocks) and any(not isinstance(o, scf.YieldOp) for o in other.blocks[0].ops)
    on_true, on_false, end = f.label("then"), f.label("else"), f.label("done")
    f.branch(condition, on_true, on_false if has_else else end)
    _branch(f, then.blocks[0], on_true, end)
    if has_else:
        _branch(f, other.blocks[0], on_false, end)
    f.start_block(end)


def _branch(f: Function, block: Block, label: str, end: str) -> None:
    f.start_block(label)
    with f.scope():
        emit_block(f, block)
    f.do(f"br label %{end}")


def _parallel(f: Function, op: Operation) -> None:
    extent = cast(IntAttr, op.properties["extent"]).data
    body = op.regions[0].blocks[0]
    threads = 1 if f.in_thread else threads_worth(extent, body, f.module.threads)
    if threads == 1:
        emit_loop(f, "0", str(extent), "1", body)
        return
    emit_parallel_call(f, extent, threads, body, _emit_range)
    if f.module.accesses:
        leave_where_trapped(f)


def _emit_range(f: Function, low: str, high: str, body: Block) -> None:
    emit_loop(f, low, high, "1", body)


_HANDLERS: dict[type[Operation], Callable[[Function, Operation], None]] = {
    **with_bfloat16(ops.HANDLERS, ops.round_to_odd),
    **memory.HANDLERS,
    **tiles.HANDLERS,
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: _nothing,
    func.ReturnOp: _nothing,
    ParallelOp: _parallel,
}


def _entry(arguments: int, workspace: Workspace) -> str:
    """Return `lw_run` and `lw_time`, which take the pointers from an array."""
    lines, passed = [], []
    for number in range(arguments + bool(workspace.buffers)):
        lines.append(f"  %at{number} = getelementptr ptr, ptr %pointers, i64 {number}")
        lines.append(f"  %p{number} = load ptr, ptr %at{number}, align 8")
    passed += [f"ptr %p{number}" for number in range(arguments)]
    for buffer in workspace.buffers:
        lines.append(f"  {buffer.name} = getelementptr i8, ptr %p{arguments}, i64 {buffer.offset}")
        passed.append(f"ptr {buffer.name}")
    run = [f"define void @{RUN_SYMBOL}(ptr %pointers) #0 {{", *lines, f"  call void @kernel({', '.join(passed)})"]
    timed = [
        *(f"define void @{TIME_SYMBOL}(ptr %pointers, i64 %runs) #0 {{", "entry:", "  br label %loop", "loop:"),
        "  %n = phi i64 [ 0, %entry ], [ %next, %loop ]",
        f"  call void @{RUN_SYMBOL}(ptr %pointers)",
        *("  %next = add nsw i64 %n, 1", "  %more = icmp slt i64 %next, %runs"),
        *("  br i1 %more, label %loop, label %end", "end:", "  ret void", "}"),
    ]
    return "\n".join([*run, "  ret void", "}", "", *timed])


def _assemble(module: Module, last: list[str], wide: bool, tune: str) -> str:
    """Return the text of a module: its functions for vectors of 64 bytes, for a processor's latencies."""
    width = ' "prefer-vector-width"="512" "min-legal-vector-width"="512"' if wide else ""
    width += f' "tune-cpu"="{tune}"' if tune else ""
    attributes = [
        f"attributes #0 = {{ nounwind{width} }}",
        f"attributes #1 = {{ nounwind noinline{width} }}",
        '!0 = !{!"llvm.loop.vectorize.enable", i1 false}',
        '!1 = !{!"llvm.loop.unroll.disable"}',
        *module.metadata,
    ]
    symbols = [module.symbols[symbol] for symbol in sorted(module.symbols)]
    head = f"; kernel {one_line(module.name)}, {module.threads} thread{'s' if module.threads > 1 else ''}"
    return "\n\n".join([head, *symbols, *module.functions, *last, "\n".join(attributes)]) + "\n"
