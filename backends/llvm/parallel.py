"""Parallel loops as LLVM text: the body as a function of its own, run by a team of threads.

Each thread takes chunks from its own stretch of the iterations, the same at every run so that its caches stay warm, and
then helps the others with theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects.walk import operations_in
from ..arrays import CACHE_LINE_BYTES
from ..unsupported import UnsupportedError
from .function import Function, Workspace
from .symbols import TEAM_SYMBOL
from .types import buffer_bytes, element_text, stored_bytes

_CHUNKS_A_THREAD = 16
_MARKS_A_WORD = 8
"""A stretch has a byte that says that all of it is taken: who is done with its own looks at these for others to help,
instead of at each one's counter, which is on another core. A region of 16 short iterations takes 4.0 us with such marks
and 5.1 without (16 cores of a Xeon, Emerald Rapids)."""

_FORK = f"""define internal void @lw.fork(ptr %run, ptr %context, i32 %threads, i32 %used) #0 {{
entry:
  %team = load ptr, ptr @{TEAM_SYMBOL}, align 8
  %alone = icmp eq ptr %team, null
  br i1 %alone, label %serial, label %parallel
serial:
  call void %run(ptr %context, i32 0)
  br label %done
parallel:
  call void %team(ptr %run, ptr %context, i32 %threads, i32 %used)
  br label %done
done:
  ret void
}}"""
"""A thread that is alone takes the chunks of all stretches, as one of a team does when the others are late."""

EmitRange = Callable[[Function, str, str, Block], None]


def emit_parallel_call(f: Function, extent: int, threads: int, body: Block, emit_range: EmitRange) -> None:
    """Print the call that runs `body` for 0 <= i < extent on so many threads, and the functions it needs."""
    stem = f"@parallel{f.module.regions}"
    f.module.regions += 1
    captured = [(value, f.names[value]) for value in _captured(f, body)]
    inner = Function(f.module, in_thread=True)
    inner.names.update({value: name for value, name in f.names.items() if name[0] != "%"})
    inner.names.update({value: f"%c{number}" for number, (value, _) in enumerate(captured)})
    emit_range(inner, "%low", "%high", body)
    inner.do("ret void")
    parameters = [_parameter(f, value, f"%c{number}") for number, (value, _) in enumerate(captured)]
    parameters += [f"ptr noalias noundef nonnull align 64 {buffer.name}" for buffer in inner.workspace.buffers]
    parameters += ["i64 noundef %low", "i64 noundef %high"]
    f.module.functions.append(inner.text(f"define internal void {stem}.body({', '.join(parameters)}) #1"))
    kinds = [f.type(value.type) for value, _ in captured]
    slices = inner.workspace
    if slices.bytes:
        shared = f.allocate_bytes("threads", slices.bytes * threads)
        captured_texts = [name for _, name in captured] + [shared]
        kinds.append("ptr")
    else:
        captured_texts = [name for _, name in captured]
    offsets, size = _layout(kinds, threads * CACHE_LINE_BYTES + _bytes_of_marks(threads))
    f.module.functions.append(_thread_function(stem, kinds, offsets, slices, extent, threads))
    _fork(f, stem, list(zip(kinds, captured_texts, offsets, strict=True)), size, extent, threads)


def _captured(f: Function, body: Block) -> list[SSAValue]:
    """Return the values from outside that the body reads and that are no constants, in order of first use."""
    outside = {id(value): value for value, name in f.names.items() if name[0] == "%"}
    found: dict[int, None] = {}
    for op in (inner for each in body.ops for inner in operations_in(each)):
        for operand in op.operands:
            if id(operand) in outside:
                found[id(operand)] = None
    return [outside[number] for number in found]


def _parameter(f: Function, value: SSAValue, name: str) -> str:
    if not isinstance(value.type, MemRefType):
        return f"{f.type(value.type)} noundef {name}"
    buffer_type = cast(MemRefType[Attribute], value.type)
    align = stored_bytes(element_text(buffer_type.element_type))
    return f"ptr noalias noundef nonnull align {align} dereferenceable({buffer_bytes(buffer_type)}) {name}"


def _bytes_of_marks(threads: int) -> int:
    return -(-threads // CACHE_LINE_BYTES) * CACHE_LINE_BYTES


def _layout(kinds: list[str], start: int) -> tuple[list[int], int]:
    """Return where each captured value lies behind the counters, and the size of all."""
    offsets, offset = [], start
    for kind in kinds:
        offsets.append(offset)
        offset += 8 if kind[0] != "<" else -(-_vector_bytes(kind) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
    return offsets, offset


def _vector_bytes(kind: str) -> int:
    lanes, _, element = kind[1:-1].partition(" x ")
    if element not in ("half", "float", "double", "i1", "i8", "i16", "i32", "i64"):
        raise UnsupportedError(f"a parallel loop cannot capture a {kind}")
    return int(lanes) * stored_bytes(element)


def _fork(f: Function, stem: str, captured: list[tuple[str, str, int]], size: int, extent: int, threads: int) -> None:
    context = f"%context{len(f.allocas)}"
    f.allocas.append(f"  {context} = alloca [{size} x i8], align {CACHE_LINE_BYTES}")
    starts = [("i64", str(_start(thread, extent, threads)), thread * CACHE_LINE_BYTES) for thread in range(threads)]
    marks = range(threads * CACHE_LINE_BYTES, threads * CACHE_LINE_BYTES + threads, _MARKS_A_WORD)
    for kind, value, offset in [*starts, *(("i64", "0", mark) for mark in marks), *captured]:
        at = f.put(f"getelementptr i8, ptr {context}, i64 {offset}")
        f.do(f"store {kind} {value}, ptr {at}, align 8")
    f.do(f"call void @lw.fork(ptr {stem}.thread, ptr {context}, i32 {f.module.threads}, i32 {threads})")
    f.module.symbols.setdefault(f"@{TEAM_SYMBOL}", f"@{TEAM_SYMBOL} = external global ptr")
    f.module.symbols.setdefault("@lw.fork", _FORK)


def _start(thread: int, extent: int, threads: int) -> int:
    return thread * extent // threads


def _thread_function(
    stem: str, kinds: list[str], offsets: list[int], slices: Workspace, extent: int, threads: int
) -> str:
    """Return what every thread runs: for each stretch, its own first, take chunks until none is left."""
    lines, passed = [], []
    for number, (kind, offset) in enumerate(zip(kinds, offsets, strict=True)):
        lines.append(f"  %at{number} = getelementptr i8, ptr %context, i64 {offset}")
        lines.append(f"  %c{number} = load {kind}, ptr %at{number}, align 8")
        passed.append(f"{kind} %c{number}")
    lines += [
        "  %me = zext i32 %me32 to i64",
        f"  %partof = icmp ult i64 %me, {threads}",
        *("  br i1 %partof, label %start, label %finished", "start:"),
    ]
    if slices.bytes:
        shared = passed.pop().partition(" ")[2]
        lines.append(f"  %mine = mul nuw nsw i64 %me, {slices.bytes}")
        lines.append(f"  %slice = getelementptr i8, ptr {shared}, i64 %mine")
        for buffer in slices.buffers:
            lines.append(f"  {buffer.name} = getelementptr i8, ptr %slice, i64 {buffer.offset}")
            passed.append(f"ptr {buffer.name}")
    chunk = max(1, extent // (threads * _CHUNKS_A_THREAD))
    ends = ", ".join(f"i64 {_start(thread + 1, extent, threads)}" for thread in range(threads))
    marks = threads * CACHE_LINE_BYTES
    lines += [
        *("  br label %stretch", "stretch:"),
        "  %turn = phi i64 [ 0, %start ], [ %turned, %other ]",
        "  %position = add i64 %me, %turn",
        f"  %whose = urem i64 %position, {threads}",
        f"  %markfrom = getelementptr i8, ptr %context, i64 {marks}",
        "  %markat = getelementptr i8, ptr %markfrom, i64 %whose",
        "  %own = icmp eq i64 %turn, 0",
        *("  br i1 %own, label %open, label %look", "look:"),
        "  %mark = load atomic i8, ptr %markat monotonic, align 1",
        "  %gone = icmp ne i8 %mark, 0",
        *("  br i1 %gone, label %exhausted, label %open", "open:"),
        f"  %place = mul i64 %whose, {CACHE_LINE_BYTES}",
        "  %counter = getelementptr i8, ptr %context, i64 %place",
        f"  %endat = getelementptr [{threads} x i64], ptr {stem}.ends, i64 0, i64 %whose",
        "  %end = load i64, ptr %endat, align 8",
        *("  br label %take", "take:"),
        f"  %low = atomicrmw add ptr %counter, i64 {chunk} monotonic, align 8",
        "  %some = icmp slt i64 %low, %end",
        *("  br i1 %some, label %work, label %exhausted", "work:"),
        f"  %next = add i64 %low, {chunk}",
        "  %ahead = icmp slt i64 %next, %end",
        "  %high = select i1 %ahead, i64 %next, i64 %end",
        *("  br i1 %ahead, label %run, label %last", "last:"),
        *("  store atomic i8 1, ptr %markat monotonic, align 1", "  br label %run", "run:"),
        f"  call void {stem}.body({', '.join([*passed, 'i64 %low', 'i64 %high'])})",
        *("  br i1 %ahead, label %take, label %exhausted", "exhausted:"),
        *_all_marked(threads, marks),
        *("  br i1 %all, label %finished, label %other", "other:", "  %turned = add i64 %turn, 1"),
        f"  %again = icmp slt i64 %turned, {threads}",
        *("  br i1 %again, label %stretch, label %finished", "finished:"),
    ]
    table = f"{stem}.ends = internal constant [{threads} x i64] [{ends}]"
    head = f"define internal void {stem}.thread(ptr %context, i32 %me32) #0 {{"
    return "\n".join([table, "", head, "entry:", *lines, "  ret void", "}"])


def _all_marked(threads: int, marks: int) -> list[str]:
    """Return the instructions that say in %all whether each stretch is marked, eight of them at a time."""
    lines = ["  %all0 = icmp eq i1 true, true"]
    words = -(-threads // _MARKS_A_WORD)
    for number in range(words):
        in_word = min(_MARKS_A_WORD, threads - number * _MARKS_A_WORD)
        wanted = sum(1 << 8 * mark for mark in range(in_word))
        lines += [
            f"  %wordat{number} = getelementptr i8, ptr %context, i64 {marks + _MARKS_A_WORD * number}",
            f"  %word{number} = load atomic i64, ptr %wordat{number} monotonic, align 8",
            f"  %whole{number} = icmp eq i64 %word{number}, {wanted}",
            f"  %all{number + 1} = and i1 %all{number}, %whole{number}",
        ]
    return [*lines, f"  %all = and i1 %all{words}, true"]
