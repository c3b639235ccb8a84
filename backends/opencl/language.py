"""OpenCL C: the words of the shared printer."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from ..c_family.expression import Expr, call
from ..c_family.language import Language
from ..c_family.types import NARROW_FLOATS, bytes_of, is_float
from ..unsupported import UnsupportedError

SHUFFLE_EXTENSION = "cl_khr_subgroup_shuffle"
DOUBLES = "cl_khr_fp64"
"""The extension of devices that compute in float64."""

_VALUES = {
    "f16": "float",
    "bf16": "float",
    "f32": "float",
    "f64": "double",
    "i1": "bool",
    "i8": "char",
    "i16": "short",
    "i32": "int",
    "i64": "long",
}
"""Narrow floats are computed in single: few devices have `cl_khr_fp16`, all can load and store halves."""
_BRIEF = """\
static inline float bf16_to_f32(ushort a) {
    return as_float((uint)a << 16);
}
static inline ushort bf16_from_f32(float a) {
    const uint bits = as_uint(a);
    return a != a ? 0x7fc0 : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}"""
"""bfloat16 is the upper half of a single; to it, values are rounded to nearest even."""
_SATURATING = {"i8": "char", "i16": "short", "i32": "int", "i64": "long"}
_NAN_PASSING = {"maximumf": ("maximum", ">"), "minimumf": ("minimum", "<")}
_NAN_FREE = {"maxnumf": "fmax", "minnumf": "fmin"}
_HELPERS = {
    "maximum": "return a > b || a != a ? a : b;",
    "minimum": "return a < b || a != a ? a : b;",
    "floordiv": "return a / b - (a % b != 0 && (a < 0) != (b < 0));",
    "ceildiv": "return a / b + (a % b != 0 && (a < 0) == (b < 0));",
}


class OpenCl(Language):
    """OpenCL C 1.2, with extensions for double precision and shuffles where a kernel uses them."""

    title = "OpenCL C"
    value_types = _VALUES
    memory_types = {"f16": "half", "bf16": "ushort", "i1": "uchar"}
    thread_axes = {
        **{f"blockIdx.{axis}": f"(int)get_group_id({n})" for n, axis in enumerate("xyz")},
        **{f"threadIdx.{axis}": f"(int)get_local_id({n})" for n, axis in enumerate("xyz")},
    }
    reserved = (
        *("global", "local", "constant", "kernel", "read_only", "write_only", "read_write", "complex", "imaginary"),
        *("image1d_t", "image2d_t", "image3d_t", "sampler_t", "event_t", "vec_step", "convert", "barrier"),
        *("get_global_id", "get_local_id", "get_group_id"),
    )

    def __init__(self, unrolled_statements: int = 0) -> None:
        self.unrolled_statements = unrolled_statements

    def special_float(self, value: float, kind: str) -> Expr:
        name = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
        return Expr(f"((double){name})" if kind == "f64" else name)

    def function(self, name: str, kind: str) -> str:
        return name

    def load(self, pointer: str, place: str, kind: str, shared: bool) -> Expr:
        if kind == "f16":
            return Expr(f"vload_half({place}, {pointer})")
        if kind == "bf16":
            return Expr(f"bf16_to_f32({pointer}[{place}])")
        element = Expr(f"{pointer}[{place}]")
        return Expr(f"({element.text} != 0)") if kind == "i1" else element

    def store(self, pointer: str, place: str, value: Expr, kind: str, shared: bool) -> str:
        if kind == "f16":
            return f"vstore_half({value.text}, {place}, {pointer});"
        if kind == "bf16":
            value = call("bf16_from_f32", value)
        return super().store(pointer, place, value, kind, shared)

    def vector_widths(self, kind: str) -> Sequence[int]:
        return [] if kind == "i1" else [n for n in (16, 8, 4, 2) if n * bytes_of(kind) <= 16]

    def vector_type(self, kind: str, lanes: int) -> str:
        return f"{_VALUES[kind]}{lanes}"

    def vector_load(self, pointer: str, place: str, kind: str, lanes: int, shared: bool) -> str:
        address = _address(pointer, place)
        if kind == "f16":
            return f"vloada_half{lanes}(0, {address})"
        if kind == "bf16":
            bits = f"*(const {_space(shared)} ushort{lanes}*)({address})"
            return f"as_float{lanes}(convert_uint{lanes}({bits}) << 16)"
        return f"*(const {_space(shared)} {self.vector_type(kind, lanes)}*)({address})"

    def vector_zero(self, kind: str, lanes: int) -> str:
        return "0"

    def vector_lane(self, name: str, kind: str, lanes: int, lane: int) -> str:
        return f"{name}.{'xyzw'[lane]}" if lanes <= 4 else f"{name}.s{lane:x}"

    def vector_store(
        self, pointer: str, place: str, values: Sequence[Expr], whole: str | None, kind: str, shared: bool
    ) -> str:
        lanes, address = len(values), _address(pointer, place)
        vector = self.vector_type(kind, lanes)
        if kind == "bf16":
            vector = f"ushort{lanes}"
            values = [call("bf16_from_f32", value) for value in values]
            whole = whole and f"convert_ushort{lanes}(as_uint{lanes}({whole}) >> 16)"
        made = whole or f"({vector})({', '.join(value.text for value in values)})"
        if kind == "f16":
            return f"vstorea_half{lanes}({made}, 0, {address});"
        return f"*({_space(shared)} {vector}*)({address}) = {made};"

    def shared_declaration(self, kind: str, name: str, size: int, offset: int | None, align: int) -> str:
        if kind == "f16":  # Without cl_khr_fp16 there are pointers to halves, but no variables of them.
            bits = f"__local ushort {name}_bits[{size}] __attribute__((aligned({align})));"
            return f"{bits} __local half* const {name} = (__local half*){name}_bits;"
        return f"__local {self.memory_type(kind)} {name}[{size}] __attribute__((aligned({align})));"

    def kernel_head(
        self,
        name: str,
        parameters: Sequence[str],
        block: tuple[int, int, int],
        blocks_per_sm: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> str:
        x, y, z = block
        return f"__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {name}({', '.join(parameters)}) {{"

    def parameter(self, kind: str, name: str, is_read_only: bool, is_restrict: bool) -> str:
        constant, restrict = "const " if is_read_only else "", "restrict " if is_restrict else ""
        return f"__global {constant}{self.memory_type(kind)}* {restrict}{name}"

    def barrier(self, global_memory: bool) -> str:
        return f"barrier(CLK_LOCAL_MEM_FENCE{' | CLK_GLOBAL_MEM_FENCE' if global_memory else ''});"

    def preamble(self, kinds: Set[str], vectors: Set[tuple[str, int]], helpers: Set[str]) -> list[str]:
        lines = [f"#pragma OPENCL EXTENSION {DOUBLES} : enable"] if "f64" in kinds else []
        lines += [_BRIEF] if "bf16" in kinds else []
        lines += [_helper(*helper.split()) for helper in sorted(helpers) if helper.partition(" ")[0] in _HELPERS]
        if "shuffle i32" in helpers:
            lines.append(f"#pragma OPENCL EXTENSION {SHUFFLE_EXTENSION} : enable")
        return lines

    def convert(self, value: Expr, source: str, result: str, long_index: bool) -> Expr:
        if is_float(source) and result in (*_SATURATING, "index"):
            kind = result if result != "index" else "i64" if long_index else "i32"
            return call(f"convert_{_SATURATING[kind]}_sat_rtz", value)
        return super().convert(value, source, result, long_index)

    def float_to_unsigned(self, type_name: str, value: Expr) -> Expr:
        name = type_name.removeprefix("unsigned").strip() or "int"
        return call(f"convert_u{name}_sat_rtz", value)

    def extremum(self, helpers: set[str], name: str, kind: str, a: Expr, b: Expr) -> Expr:
        if name in _NAN_FREE:
            return call(_NAN_FREE[name], a, b)
        word, _ = _NAN_PASSING[name]
        kind = "f32" if kind in NARROW_FLOATS else kind
        helpers.add(f"{word} {kind}")
        return call(f"{word}_{kind}", a, b)

    def fma(self, helpers: set[str], kind: str, lanes: Sequence[Expr]) -> Expr:
        return call("mad" if kind in (*NARROW_FLOATS, "f32") else "fma", *lanes)

    def bitcast(self, value: Expr, source: str, result: str) -> Expr:
        if any(kind in NARROW_FLOATS for kind in (source, result)) or bytes_of(source) != bytes_of(result):
            raise UnsupportedError(f"{self.title} takes no {source} for {result}")
        return call(f"as_{_VALUES[result]}", value)


def _helper(name: str, kind: str) -> str:
    element = _VALUES[kind]
    return f"static inline {element} {name}_{kind}({element} a, {element} b) {{\n    {_HELPERS[name]}\n}}"


def _space(shared: bool) -> str:
    return "__local" if shared else "__global"


def _address(pointer: str, place: str) -> str:
    return pointer if place == "0" else f"&{pointer}[{place}]"
