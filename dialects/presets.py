"""Targets of well-known devices, by kind and model; the limits that schedules must respect."""

from __future__ import annotations

from dataclasses import replace

from .target import Target, parse_target

_CUDA = Target(kind="cuda", max_threads_per_block=1024, warp_size=32, max_vthreads=8, vector_bytes=16)
"""Threads and warps: CUDA C++ Programming Guide, technical specifications per compute capability. A thread's virtual
threads are limited to a quarter of a warp, the limit that Ansor searches with (Zheng et al., OSDI 2020)."""

PRESETS: dict[tuple[str, str], Target] = {
    # NVIDIA H200 Tensor Core GPU data sheet (132 multiprocessors); the other figures as its driver reports them.
    ("cuda", "h200"): replace(
        _CUDA,
        model="h200",
        compute_capability=90,
        cores=132,
        max_shared_bytes=227 << 10,
        l1_bytes=256 << 10,
        l2_bytes=60 << 20,
    ),
    # NVIDIA H100 Tensor Core GPU Architecture (white paper, SXM5): 132 multiprocessors, 50 MB L2, 256 KB L1 each.
    ("cuda", "h100"): replace(
        _CUDA,
        model="h100",
        compute_capability=90,
        cores=132,
        max_shared_bytes=227 << 10,
        l1_bytes=256 << 10,
        l2_bytes=50 << 20,
    ),
    # NVIDIA A100 Tensor Core GPU Architecture (white paper): 108 multiprocessors, 40 MB L2, 192 KB L1 each.
    ("cuda", "a100"): replace(
        _CUDA,
        model="a100",
        compute_capability=80,
        cores=108,
        max_shared_bytes=163 << 10,
        l1_bytes=192 << 10,
        l2_bytes=40 << 20,
    ),
    # NVIDIA Ada GPU Architecture (white paper, appendix A): 128 multiprocessors, 72 MB L2, 128 KB L1 each.
    ("cuda", "rtx4090"): replace(
        _CUDA,
        model="rtx4090",
        compute_capability=89,
        cores=128,
        max_shared_bytes=99 << 10,
        l1_bytes=128 << 10,
        l2_bytes=72 << 20,
    ),
    # NVIDIA GeForce GTX 1080 (white paper) and the 1080 Ti's product page: 28 multiprocessors, 2816 KB L2, 48 KB L1.
    ("cuda", "gtx1080ti"): replace(
        _CUDA,
        model="gtx1080ti",
        compute_capability=61,
        cores=28,
        max_shared_bytes=48 << 10,
        l1_bytes=48 << 10,
        l2_bytes=2816 << 10,
    ),
    # The OpenCL driver of the same device offers 48 KB of local memory, and no shuffles by a standard extension.
    ("opencl", "h200"): Target(
        kind="opencl",
        model="h200",
        cores=132,
        vector_bytes=16,
        max_threads_per_block=1024,
        max_shared_bytes=48 << 10,
        max_vthreads=8,
        l1_bytes=256 << 10,
        l2_bytes=60 << 20,
    ),
    # Rockchip RK3399 TRM (Mali-T860 MP4, 256 KB L2); Arm Mali Midgard OpenCL Developer Guide: at most 256 work-items a
    # group, 128-bit vectors, local memory of 32 KB that lives in global memory.
    ("opencl", "mali-t860"): Target(
        kind="opencl",
        model="mali-t860",
        cores=4,
        vector_bytes=16,
        max_threads_per_block=256,
        max_shared_bytes=32 << 10,
        max_vthreads=4,
        l1_bytes=16 << 10,
        l2_bytes=256 << 10,
    ),
    # PoCL on a CPU, as its driver reports: 4096 work-items a group; local memory is part of the L2 cache.
    ("opencl", "pocl"): Target(
        kind="opencl",
        model="pocl",
        vector_bytes=16,
        max_threads_per_block=4096,
        max_shared_bytes=512 << 10,
        max_vthreads=8,
        l1_bytes=32 << 10,
        l2_bytes=512 << 10,
    ),
}
CPU_LEVELS: dict[str, Target] = {
    # System V ABI for AMD64, table 3.1: all CPUs with SSE2, SSE4.2, AVX2 or AVX-512, whoever made them.
    **{model: Target(model=model, vector_bytes=16) for model in ("x86-64", "x86-64-v2")},
    "x86-64-v3": Target(model="x86-64-v3", vector_bytes=32),
    "x86-64-v4": Target(model="x86-64-v4", vector_bytes=64, vector_registers=32),
}
_ALIASES = {"rk3399": "mali-t860", "4090": "rtx4090", "1080ti": "gtx1080ti"}


def preset_target(text: str) -> Target:
    """Parse a target; `cuda model=h200` has the preset's limits, and options beside the model change them.

    ValueError names what is wrong; a model that no preset knows is a name and nothing more.
    """
    given = parse_target(text)
    preset = PRESETS.get((given.kind, _ALIASES.get(given.model, given.model)))
    if given.kind == "llvm":
        preset = CPU_LEVELS.get(given.model)
    if preset is None:
        return given
    named = [option.partition("=")[0] for option in text.split()[1:]]
    return replace(preset, **{name: getattr(given, name) for name in named if name != "model"})
