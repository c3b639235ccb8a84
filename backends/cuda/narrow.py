"""The two narrow float types of CUDA in the words of their headers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Narrow:
    """One narrow float type in the words of its header; arithmetic is by operators, `__hfma`, `__hmax` and so on."""

    header: str
    type_name: str
    vector: str
    to_single: str
    from_single: str
    from_double: str
    from_int: str
    from_long: str
    as_short: str
    from_short: str

    def source(self, kind: str, is_long: bool) -> str:
        """Return the name of the conversion from a value of another type, rounded to nearest even."""
        if kind in ("f32", "f64"):
            return self.from_single if kind == "f32" else self.from_double
        return self.from_long if is_long else self.from_int


NARROW = {
    "f16": Narrow(
        header="cuda_fp16.h",
        type_name="__half",
        vector="half",
        to_single="__half2float",
        from_single="__float2half",
        from_double="__double2half",
        from_int="__int2half_rn",
        from_long="__ll2half_rn",
        as_short="__half_as_short",
        from_short="__short_as_half",
    ),
    "bf16": Narrow(
        header="cuda_bf16.h",
        type_name="__nv_bfloat16",
        vector="bfloat",
        to_single="__bfloat162float",
        from_single="__float2bfloat16",
        from_double="__double2bfloat16",
        from_int="__int2bfloat16_rn",
        from_long="__ll2bfloat16_rn",
        as_short="__bfloat16_as_short",
        from_short="__short_as_bfloat16",
    ),
}
