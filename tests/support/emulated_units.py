"""LLVM IR whose matrix instructions of x86 are functions in plain vectors: it runs where there is no such unit."""

import re

from loopwright.backends.llvm.emit import KernelText
from loopwright.backends.llvm.executable import Artifact, LlvmExecutable
from loopwright.backends.llvm.jit import compile_text

_TILE = "<256 x i32>"
_MOVES = """
declare <16 x i32> @llvm.masked.load.v16i32.p0(ptr, <16 x i1>, <16 x i32>)
declare void @llvm.masked.store.v16i32.p0(<16 x i32>, ptr, <16 x i1>)
define internal <256 x i32> @unit.tilezero.internal(i16 %rows, i16 %bytes) {
  ret <256 x i32> zeroinitializer
}
define internal <256 x i32> @unit.tileloadd64.internal(i16 %rows, i16 %bytes, ptr %from, i64 %step) {
entry:
  %tile = alloca [16 x <16 x i32>], align 64
  store <256 x i32> zeroinitializer, ptr %tile, align 64
  %count = zext i16 %rows to i64
  %bytes0 = insertelement <16 x i16> poison, i16 %bytes, i32 0
  %bytes1 = shufflevector <16 x i16> %bytes0, <16 x i16> poison, <16 x i32> zeroinitializer
  %inside = icmp ult <16 x i16> <i16 0, i16 4, i16 8, i16 12, i16 16, i16 20, i16 24, i16 28, i16 32, i16 36, i16 40,
                                  i16 44, i16 48, i16 52, i16 56, i16 60>, %bytes1
  br label %loop
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %row, %step
  %source = getelementptr i8, ptr %from, i64 %at
  %value = call <16 x i32> @llvm.masked.load.v16i32.p0(ptr align 1 %source, <16 x i1> %inside,
                                                       <16 x i32> zeroinitializer)
  %place = getelementptr <16 x i32>, ptr %tile, i64 %row
  store <16 x i32> %value, ptr %place, align 64
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  %whole = load <256 x i32>, ptr %tile, align 64
  ret <256 x i32> %whole
}
define internal void @unit.tilestored64.internal(i16 %rows, i16 %bytes, ptr %to, i64 %step, <256 x i32> %whole) {
entry:
  %tile = alloca <256 x i32>, align 64
  store <256 x i32> %whole, ptr %tile, align 64
  %count = zext i16 %rows to i64
  %bytes0 = insertelement <16 x i16> poison, i16 %bytes, i32 0
  %bytes1 = shufflevector <16 x i16> %bytes0, <16 x i16> poison, <16 x i32> zeroinitializer
  %inside = icmp ult <16 x i16> <i16 0, i16 4, i16 8, i16 12, i16 16, i16 20, i16 24, i16 28, i16 32, i16 36, i16 40,
                                  i16 44, i16 48, i16 52, i16 56, i16 60>, %bytes1
  br label %loop
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %row, %step
  %place = getelementptr i8, ptr %to, i64 %at
  %source = getelementptr <16 x i32>, ptr %tile, i64 %row
  %value = load <16 x i32>, ptr %source, align 64
  call void @llvm.masked.store.v16i32.p0(<16 x i32> %value, ptr align 1 %place, <16 x i1> %inside)
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
_PRODUCT = """
define internal <256 x i32> @unit.{name}.internal(i16 %m, i16 %n, i16 %k,
                                                  <256 x i32> %c, <256 x i32> %a, <256 x i32> %b) {{
entry:
  %sums = alloca <256 x i32>, align 64
  %left = alloca <256 x i32>, align 64
  %right = alloca <256 x i32>, align 64
  store <256 x i32> %c, ptr %sums, align 64
  store <256 x i32> %a, ptr %left, align 64
  store <256 x i32> %b, ptr %right, align 64
  br label %loop
loop:
  %point = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row = lshr i64 %point, 4
  %group = and i64 %point, 15
  %cat = getelementptr <16 x i32>, ptr %sums, i64 %row
  %bat = getelementptr <16 x i32>, ptr %right, i64 %group
  %aat = getelementptr i32, ptr %left, i64 %point
  %c1 = load <16 x {sum}>, ptr %cat, align 64
  %a1 = load i32, ptr %aat, align 4
  %a2 = insertelement <16 x i32> poison, i32 %a1, i32 0
  %a3 = shufflevector <16 x i32> %a2, <16 x i32> poison, <16 x i32> zeroinitializer
  %b1 = load <16 x i32>, ptr %bat, align 64
  %d = call <16 x {sum}> @unit.{name}.row(<16 x {sum}> %c1, <16 x i32> %a3, <16 x i32> %b1)
  store <16 x {sum}> %d, ptr %cat, align 64
  %next = add i64 %point, 1
  %more = icmp ult i64 %next, 256
  br i1 %more, label %loop, label %done
done:
  %whole = load <256 x i32>, ptr %sums, align 64
  ret <256 x i32> %whole
}}
"""
_TILES = {"tdpbusd": ("z", "s"), "tdpbssd": ("s", "s"), "tdpbuud": ("z", "z"), "tdpbsud": ("s", "z")}


def _integers_row(symbol: str, lanes: int, a: str, b: str, group: int = 4) -> str:
    """`c[j] += a[g j + x] * b[g j + x]` for x < g, of parts of 32 bits that are widened as `z` or `s` say."""
    wide, narrow, kind = f"<{group * lanes} x i32>", f"<{group * lanes} x i{32 // group}>", f"<{lanes} x i32>"
    lines = [
        f"define internal {kind} {symbol}({kind} %c, {kind} %a, {kind} %b) {{",
        f"  %a1 = bitcast {kind} %a to {narrow}",
        f"  %b1 = bitcast {kind} %b to {narrow}",
        f"  %a2 = {a}ext {narrow} %a1 to {wide}",
        f"  %b2 = {b}ext {narrow} %b1 to {wide}",
        f"  %p = mul {wide} %a2, %b2",
    ]
    total = "%c"
    for part in range(group):
        picks = ", ".join(f"i32 {group * lane + part}" for lane in range(lanes))
        lines.append(f"  %s{part} = shufflevector {wide} %p, {wide} poison, <{lanes} x i32> <{picks}>")
        lines.append(f"  %t{part} = add {kind} {total}, %s{part}")
        total = f"%t{part}"
    return "\n".join([*lines, f"  ret {kind} {total}", "}"])


def _halves_row(symbol: str, taken: str) -> str:
    """`c[j] += a[2 j + x] * b[2 j + x]` for x < 2, of bfloat16 in pairs."""
    lines = [f"define internal <16 x float> {symbol}(<16 x float> %c, {taken} %a0, {taken} %b0) {{"]
    for name in "ab":
        lines.append(f"  %{name} = bitcast {taken} %{name}0 to <16 x i32>")
        lines.append(f"  %{name}low = shl <16 x i32> %{name}, splat (i32 16)")
        lines.append(f"  %{name}high = and <16 x i32> %{name}, splat (i32 -65536)")
        lines += [f"  %{name}{part}f = bitcast <16 x i32> %{name}{part} to <16 x float>" for part in ("low", "high")]
    total = "%c"
    for part in ("low", "high"):
        lines.append(f"  %p{part} = fmul <16 x float> %a{part}f, %b{part}f")
        lines.append(f"  %t{part} = fadd <16 x float> {total}, %p{part}")
        total = f"%t{part}"
    return "\n".join([*lines, f"  ret <16 x float> {total}", "}"])


def _functions() -> str:
    parts = [_MOVES, _PRODUCT.format(name="tdpbf16ps", sum="float"), _halves_row("@unit.tdpbf16ps.row", "<16 x i32>")]
    for name, (a, b) in _TILES.items():
        parts += [_PRODUCT.format(name=name, sum="i32"), _integers_row(f"@unit.{name}.row", 16, a, b)]
    parts.append(_halves_row("@unit.avx512bf16.dpbf16ps.512", "<32 x bfloat>"))
    for lanes in (8, 16):
        parts.append(_integers_row(f"@unit.avx512.vpdpbusd.{32 * lanes}", lanes, "z", "s"))
        parts.append(_integers_row(f"@unit.avx512.vpdpwssd.{32 * lanes}", lanes, "s", "s", 2))
    return "\n".join(parts)


def emulated(text: KernelText) -> LlvmExecutable:
    """A kernel for CPUs with matrix units, to run on this one."""
    units = re.compile(r"@llvm\.x86\.(?=tile|tdp|avx512)")
    lines = [line for line in text.source.splitlines() if not (line.startswith("declare") and units.search(line))]
    source = units.sub("@unit.", "\n".join(lines)).replace("x86_amx", _TILE).split("\nattributes #0")[0]
    attributes = "\nattributes #0" + text.source.split("\nattributes #0")[1]
    made = compile_text(source + _functions() + attributes)
    known = (text.name, text.arguments, text.workspace_bytes, text.threads)
    return LlvmExecutable(Artifact(*known, made.object_code, text.accesses, made.features))
