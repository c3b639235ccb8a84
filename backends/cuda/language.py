"""CUDA C: the words of the shared printer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from ...dialects import kernel
from ...passes.analysis.unrolling import UNROLLED_INSTRUCTIONS
from ..c_family.expression import ATOM, UNARY, Expr, call, cast_to
from ..c_family.language import Language
from ..c_family.types import bytes_of
from ..unsupported import UnsupportedError
from .arrival import HELPERS as ARRIVAL_HELPERS
from .async_copy import helper as async_copy_helper
from .bulk_copy import helper as bulk_copy_helper
from .dependent import SINCE, WAIT
from .matrix import helper as matrix_helper
from .narrow import NARROW
from .ptx import SHARED_PLACE
from .remainder import HELPER as REMAINDER_HELPER
from .transpose import HELPER as TRANSPOSE_HELPER
from .warp_group import helper as warp_group_helper

STATIC_SHARED_BYTES = 48 << 10
"""More than this must be asked for at the launch (CUDA C++ Programming Guide, compute capabilities)."""

_VALUES = {
    **{kind: narrow.type_name for kind, narrow in NARROW.items()},
    "f32": "float",
    "f64": "double",
    "i1": "bool",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
}
_VECTORS = {
    **{("f32", n): f"float{n}" for n in (2, 4)},
    **{("i32", n): f"int{n}" for n in (2, 4)},
    **{("i8", n): f"char{n}" for n in (2, 4)},
    **{("i16", n): f"short{n}" for n in (2, 4)},
    ("f64", 2): "double2",
    ("i64", 2): "longlong2",
}
"""CUDA's own vectors, whose lanes are x, y, z, w; others are structures that the preamble defines."""
_NAN_FREE = {"maxnumf": ("fmax", "__hmax"), "minnumf": ("fmin", "__hmin")}
_NAN_PASSING = {"maximumf": ("maximum", ">", "__hmax_nan"), "minimumf": ("minimum", "<", "__hmin_nan")}

_TENSOR_MAP = """\
// What the copy engine knows of an array, made by the driver.
struct __align__(64) TensorMap { unsigned long long opaque[16]; };"""
_EXTREMUM = """\
// The {word} of two, NaN where either is.
__device__ __forceinline__ {type} {name}({type} a, {type} b) {{
    return a {sign} b || a != a ? a : b;
}}"""
_EXTREMUM_PTX = """\
// The {word} of two, NaN where either is.
__device__ __forceinline__ float {name}(float a, float b) {{
    float r;
    asm("{instruction}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}}"""
_NEAR = {
    "exp_near": ("The exponential by the unit for powers of 2: within 2^-17, and 0 below 2^-126.", "x * 1.44269504f"),
    "exp2_near": ("A power of 2 by its unit: within 2^-22, and 0 below 2^-126.", "x"),
}
_NEAR_HELPER = """\
// {comment}
__device__ __forceinline__ float {name}(float x) {{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"({power}));
    return r;
}}"""
_FMA_BF16 = """\
__device__ __forceinline__ __nv_bfloat16 fma_bf16(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
    return __float2bfloat16(fmaf(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c)));
}"""
_PLAIN_HELPERS = {
    **ARRIVAL_HELPERS,
    "fma": _FMA_BF16,
    "transpose_quad": TRANSPOSE_HELPER,
    "remainder_of": REMAINDER_HELPER,
    "shared_place": SHARED_PLACE,
}
BFLOAT_ARITHMETIC = 80
"""Compute capability from which bfloat16 has a multiply-add of its own (CUDA Math API, bfloat16 arithmetic)."""
_DIVISION = {
    "floordiv": "return a / b - (a % b != 0 && (a < 0) != (b < 0));",
    "ceildiv": "return a / b + (a % b != 0 && (a < 0) == (b < 0));",
}


class Cuda(Language):
    """CUDA C for one compute capability, such as 90 for sm_90."""

    title = "CUDA C"
    value_types = _VALUES
    memory_types: Mapping[str, str] = {}
    long_suffix = "LL"
    thread_axes = {axis: f"(int){axis}" for axis in kernel.THREAD_AXES}
    zeros = "{}"
    unrolled_instructions = UNROLLED_INSTRUCTIONS

    def __init__(self, compute_capability: int = 0) -> None:
        self.compute_capability = compute_capability
        self.launch_wait = WAIT if compute_capability >= SINCE else ""

    def narrow_literal(self, literal: Expr, kind: str) -> Expr:
        return call(NARROW[kind].from_single, literal) if kind in NARROW else literal

    def special_float(self, value: float, kind: str) -> Expr:
        if kind == "f64":
            bits = "7ff8" if math.isnan(value) else "7ff0" if value > 0 else "fff0"
            return Expr(f"__longlong_as_double(0x{bits}000000000000LL)")
        bits = "7fc0" if math.isnan(value) else "7f80" if value > 0 else "ff80"
        return self.narrow_literal(Expr(f"__int_as_float(0x{bits}0000)"), kind)

    def function(self, name: str, kind: str) -> str:
        return name if kind == "f64" else f"{name}f"

    def vector_widths(self, kind: str) -> Sequence[int]:
        return [n for n in (16, 8, 4, 2) if n * bytes_of(kind) <= 16]

    def vector_type(self, kind: str, lanes: int) -> str:
        element = NARROW[kind].vector if kind in NARROW else _VALUES[kind].split()[-1]
        return _VECTORS.get((kind, lanes)) or f"{element}_x{lanes}"

    def vector_load(self, pointer: str, place: str, kind: str, lanes: int, shared: bool) -> str:
        return f"*reinterpret_cast<const {self.vector_type(kind, lanes)}*>({_address(pointer, place)})"

    def vector_zero(self, kind: str, lanes: int) -> str:
        return "{}"

    def vector_lane(self, name: str, kind: str, lanes: int, lane: int) -> str:
        return f"{name}.{'xyzw'[lane]}" if (kind, lanes) in _VECTORS else f"{name}.at[{lane}]"

    def vector_store(
        self, pointer: str, place: str, values: Sequence[Expr], whole: str | None, kind: str, shared: bool
    ) -> str:
        vector = self.vector_type(kind, len(values))
        texts = ", ".join(value.text for value in values)
        made = f"make_{vector}({texts})" if (kind, len(values)) in _VECTORS else f"{vector}{{{{{texts}}}}}"
        return f"*reinterpret_cast<{vector}*>({_address(pointer, place)}) = {whole or made};"

    def shared_declaration(self, kind: str, name: str, size: int, offset: int | None, align: int) -> str:
        element = self.memory_type(kind)
        if offset is None:
            return f"__shared__ __align__({align}) {element} {name}[{size}];"
        return f"{element}* const {name} = reinterpret_cast<{element}*>(shared_memory + {offset});"

    def kernel_head(
        self,
        name: str,
        parameters: Sequence[str],
        block: tuple[int, int, int],
        blocks_per_sm: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> str:
        bounds = f"{math.prod(block)}, {blocks_per_sm}" if blocks_per_sm else f"{math.prod(block)}"
        clusters = f" __cluster_dims__{cluster}" if math.prod(cluster) > 1 else ""
        head = f'extern "C" __global__ void{clusters} __launch_bounds__({bounds})'
        return f"{head}\n{name}({', '.join(parameters)}) {{"

    def parameter(self, kind: str, name: str, is_read_only: bool, is_restrict: bool) -> str:
        constant, restrict = "const " if is_read_only else "", "__restrict__ " if is_restrict else ""
        return f"{constant}{self.memory_type(kind)}* {restrict}{name}"

    def counters_declaration(self, name: str, size: int) -> str:
        return f"__device__ unsigned {name}[{size}];"

    def tensor_map_parameter(self, name: str) -> str:
        return f"const __grid_constant__ TensorMap {name}"

    def barrier(self, global_memory: bool) -> str:
        return "__syncthreads();"  # orders global memory, too (CUDA C++ Programming Guide)

    def preamble(self, kinds: Set[str], vectors: Set[tuple[str, int]], helpers: Set[str]) -> list[str]:
        lines = [f"#include <{narrow.header}>" for kind, narrow in NARROW.items() if kind in kinds]
        for kind, lanes in sorted(vectors):
            if (kind, lanes) not in _VECTORS:
                size, name = lanes * bytes_of(kind), self.vector_type(kind, lanes)
                lines.append(f"struct __align__({size}) {name} {{ {self.memory_type(kind)} at[{lanes}]; }};")
        if "tensor_map -" in helpers:
            lines.append(_TENSOR_MAP)
        dynamic = [int(helper.split()[1]) for helper in helpers if helper.startswith("dynamic ")]
        if dynamic:
            lines.append(f"extern __shared__ __align__({max(dynamic)}) unsigned char shared_memory[];")
        first = ("dynamic ", "tensor_map ")
        lines += [self._helper(*helper.split()) for helper in sorted(helpers) if not helper.startswith(first)]
        return lines

    def _helper(self, name: str, kind: str) -> str:
        element = self.value_types.get(kind, "")
        if name.startswith("copy_async"):
            return async_copy_helper(name, kind)
        if name in ("product", "pack") or name.startswith("load_matrices"):
            return matrix_helper(name, kind)
        if name.startswith(("barrier_", "copy_box", "copy_walk")):
            return bulk_copy_helper(name, kind)
        if name in ("shared_matrix", "hold", "end_block", "group_product"):
            return warp_group_helper(name, kind)
        if name in _PLAIN_HELPERS:
            return _PLAIN_HELPERS[name]
        if name in _NEAR:
            comment, power = _NEAR[name]
            return _NEAR_HELPER.format(comment=comment, name=name, power=power)
        if name in _DIVISION:
            head = f"__device__ __forceinline__ {element} {name}_{kind}({element} a, {element} b) {{"
            return f"{head}\n    {_DIVISION[name]}\n}}"
        word, sign = {"maximum": ("greater", ">"), "minimum": ("smaller", "<")}[name]
        full = f"{name}_{kind}"
        if kind == "f32" and self.compute_capability >= 80:
            return _EXTREMUM_PTX.format(word=word, name=full, instruction=name[:3])
        return _EXTREMUM.format(word=word, type=element, name=full, sign=sign)

    def convert(self, value: Expr, source: str, result: str, long_index: bool) -> Expr:
        if source == result:
            return value
        if source in NARROW:
            value = call(NARROW[source].to_single, value)
            return value if result == "f32" else self.convert(value, "f32", result, long_index)
        if result in NARROW:
            return call(NARROW[result].source(source, self._is_long(source, long_index)), value)
        if source[0] == "f" and result in ("i8", "i16"):
            low, high = (-128, 127) if result == "i8" else (-32768, 32767)
            clamped = Expr(f"min(max((int){value.at_least(UNARY)}, {low}), {high})", ATOM, value.reads)
            return cast_to(self.value_types[result], clamped)
        return super().convert(value, source, result, long_index)

    def float_to_unsigned(self, type_name: str, value: Expr) -> Expr:
        limit = {"unsigned char": 0xFF, "unsigned short": 0xFFFF}.get(type_name)
        if limit is None:
            return super().float_to_unsigned(type_name, value)
        clamped = Expr(f"min((unsigned){value.at_least(UNARY)}, {limit}u)", ATOM, value.reads)
        return cast_to(type_name, clamped)

    def nan_becomes_zero(self, source: str, result: str, long_index: bool) -> bool:
        """True from 32 bits to 32 bits or fewer: else `cvt` gives the least integer (PTX ISA 9.0)."""
        return source != "f64" and not self._is_long(result, long_index)

    def _is_long(self, kind: str, long_index: bool) -> bool:
        return kind == "i64" or (kind == "index" and long_index)

    def extremum(self, helpers: set[str], name: str, kind: str, a: Expr, b: Expr) -> Expr:
        if name in _NAN_FREE:
            word, on_half = _NAN_FREE[name]
            return call(on_half if kind in NARROW else self.function(word, kind), a, b)
        word, _, on_half = _NAN_PASSING[name]
        if kind in NARROW:
            return call(on_half, a, b)
        helpers.add(f"{word} {kind}")
        return call(f"{word}_{kind}", a, b)

    def fma(self, helpers: set[str], kind: str, lanes: Sequence[Expr]) -> Expr:
        if kind == "bf16" and self.compute_capability < BFLOAT_ARITHMETIC:
            helpers.add("fma bf16")
            return call("fma_bf16", *lanes)
        return call("__hfma" if kind in NARROW else self.function("fma", kind), *lanes)

    def fast_exponential(self, helpers: set[str], name: str) -> str:
        helpers.add(f"{name}_near f32")
        return f"{name}_near"

    def bitcast(self, value: Expr, source: str, result: str) -> Expr:
        names = {
            ("f32", "i32"): "__float_as_int",
            ("i32", "f32"): "__int_as_float",
            ("f64", "i64"): "__double_as_longlong",
            ("i64", "f64"): "__longlong_as_double",
            **{(kind, "i16"): narrow.as_short for kind, narrow in NARROW.items()},
            **{("i16", kind): narrow.from_short for kind, narrow in NARROW.items()},
        }
        if (source, result) not in names:
            raise UnsupportedError(f"{self.title} takes no {source} for {result}")
        return call(names[source, result], value)


def _address(pointer: str, place: str) -> str:
    return pointer if place == "0" else f"&{pointer}[{place}]"
