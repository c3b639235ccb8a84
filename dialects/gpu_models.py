"""GPUs by their names: what their makers and drivers say of them, each with its source."""

from __future__ import annotations

from dataclasses import replace

from .multiprocessor import MAX_THREADS_PER_BLOCK, MULTIPROCESSORS
from .target import WARP, WIDEST_ACCESS_BYTES, Target

MAX_VTHREADS = 8
"""A thread's virtual threads: a quarter of a warp, the limit that Ansor searches with (Zheng et al., OSDI 2020)."""

_NVIDIA: dict[str, tuple[int, int, int]] = {
    # NVIDIA GeForce GTX 1080 (white paper) and the 1080 Ti's product page.
    "gtx1080ti": (61, 28, 2816),
    # NVIDIA Tesla V100 GPU Architecture (white paper).
    "v100": (70, 80, 6144),
    # NVIDIA Jetson AGX Xavier and Xavier NX data sheets (512 and 384 cores), Xavier's technical brief (512 KB L2).
    "jetson-agx-xavier": (72, 8, 512),
    "jetson-xavier-nx": (72, 6, 512),
    # NVIDIA Turing GPU Architecture (white paper); the T4's L2 as its driver reports it.
    "t4": (75, 40, 4096),
    "rtx2070": (75, 36, 4096),
    "rtx2080": (75, 46, 4096),
    "rtx2080ti": (75, 68, 5632),
    # NVIDIA's product pages (1920, 2560 and 3072 cores; width of the memory); as above 512 KB of L2 for each 32 bits.
    "rtx2060": (75, 30, 3072),
    "rtx2070super": (75, 40, 4096),
    "rtx2080super": (75, 48, 4096),
    # NVIDIA A100 Tensor Core GPU Architecture (white paper).
    "a100": (80, 108, 40960),
    # NVIDIA A30 data sheet (3584 cores); it does not say how large the L2 is.
    "a30": (80, 56, 0),
    # NVIDIA Ampere GA102 GPU Architecture (white paper 2.0).
    "a40": (86, 84, 6144),
    "rtxa6000": (86, 84, 6144),
    "rtx3070": (86, 46, 4096),
    "rtx3080": (86, 68, 5120),
    "rtx3090": (86, 82, 6144),
    # NVIDIA's product pages (cores, 128 a multiprocessor; width of the memory); as above 512 KB of L2 for each 32 bits.
    "a10": (86, 72, 6144),
    "rtx3060": (86, 28, 3072),
    "rtx3060ti": (86, 38, 4096),
    "rtx3070ti": (86, 48, 4096),
    "rtx3080ti": (86, 80, 6144),
    "rtx3090ti": (86, 84, 6144),
    # NVIDIA Jetson AGX Orin Series Technical Brief; data sheets of Orin NX (16 GB) and Nano (8 GB), which name no L2.
    "jetson-agx-orin": (87, 16, 4096),
    "jetson-orin-nx": (87, 8, 0),
    "jetson-orin-nano": (87, 8, 0),
    # NVIDIA Ada GPU Architecture (white paper, appendices).
    "rtx4090": (89, 128, 73728),
    "rtx4080": (89, 76, 65536),
    "rtx4070ti": (89, 60, 49152),
    # NVIDIA's product pages (cores, 128 a multiprocessor); its announcement of the 4060 family says how large L2 is.
    "rtx4070": (89, 46, 0),
    "rtx4060ti": (89, 34, 32768),
    "rtx4060": (89, 24, 24576),
    # NVIDIA L4, L40 and L40S data sheets (7424 and 18176 cores); L2 as AD104's and AD102's in the white paper.
    "l4": (89, 58, 49152),
    "l40": (89, 142, 98304),
    "l40s": (89, 142, 98304),
    # NVIDIA H100 Tensor Core GPU Architecture (white paper): SXM5, and PCIe.
    "h100": (90, 132, 51200),
    "h100-pcie": (90, 114, 51200),
    # NVIDIA H200 Tensor Core GPU data sheet (132 multiprocessors); L2 as its driver reports it.
    "h200": (90, 132, 61440),
    # NVIDIA GH200 Grace Hopper Superchip data sheet (16896 cores); it does not say how large the L2 is.
    "gh200": (90, 132, 0),
    # CUDA's Blackwell Tuning Guide (126 MB L2); multiprocessors as its driver reports them.
    "b200": (100, 148, 129024),
    # NVIDIA RTX Blackwell GPU Architecture (white paper, appendix).
    "rtx5090": (120, 170, 98304),
    "rtx5080": (120, 84, 65536),
    "rtx5070ti": (120, 70, 49152),
    "rtx5070": (120, 48, 49152),
}
"""Compute capability, multiprocessors, KB of L2 (0 where no source says): all else follows from the capability."""


def of_capability(capability: int) -> Target:
    """Return what GPUs of NVIDIA's of a compute capability have in common, with the multiprocessors of the first above.

    ValueError where it is not in the table of multiprocessors.
    """
    if capability not in MULTIPROCESSORS:
        known = ", ".join(f"sm_{known}" for known in MULTIPROCESSORS)
        limits = "max_threads_per_block= and max_shared_bytes="
        raise ValueError(f"what sm_{capability} has is not known, say {limits}; known: {known}")
    has = MULTIPROCESSORS[capability]
    nearest = max(known for known, _, _ in _NVIDIA.values() if known <= capability)
    return Target(
        kind="cuda",
        cores=next(cores for known, cores, _ in _NVIDIA.values() if known == nearest),
        vector_bytes=WIDEST_ACCESS_BYTES,
        l1_bytes=has.l1_bytes,
        l2_bytes=0,
        max_threads_per_block=MAX_THREADS_PER_BLOCK,
        max_shared_bytes=has.block_shared_bytes,
        warp_size=WARP,
        max_vthreads=MAX_VTHREADS,
        compute_capability=capability,
    )


def _cuda() -> dict[str, Target]:
    return {
        model: replace(of_capability(capability), model=model, cores=cores, l2_bytes=l2_kb << 10)
        for model, (capability, cores, l2_kb) in _NVIDIA.items()
    }


_OPENCL = Target(
    kind="opencl", vector_bytes=WIDEST_ACCESS_BYTES, max_vthreads=4, max_shared_bytes=32 << 10, l1_bytes=0, l2_bytes=0
)
"""Of a GPU of a phone; local memory as a full profile has at least (OpenCL 1.2, table 4.3), other figures unknown."""

_MOBILE: dict[str, tuple[int, int]] = {
    # As drivers report them through clinfo: a Mali-G52 with 2 units, and that of a HiKey 960 (256 in a dimension).
    "mali-g52": (2, 384),
    "mali-g71": (8, 256),
    # As the driver of a Rockchip RK3588 reports it through OpenCV.
    "mali-g610": (4, 1024),
}
"""Compute units, as the maker of the chip chose them, and work-items of a group."""


def _opencl() -> dict[str, Target]:
    mobile = {
        model: replace(_OPENCL, model=model, cores=cores, max_threads_per_block=threads)
        for model, (cores, threads) in _MOBILE.items()
    }
    return mobile | {
        # The OpenCL driver of the same device offers 48 KB of local memory, and no shuffles by a standard extension.
        "h200": Target(
            kind="opencl",
            model="h200",
            cores=132,
            vector_bytes=WIDEST_ACCESS_BYTES,
            max_threads_per_block=1024,
            max_shared_bytes=48 << 10,
            max_vthreads=8,
            l1_bytes=256 << 10,
            l2_bytes=60 << 20,
        ),
        # Rockchip RK3399 TRM (Mali-T860 MP4, 256 KB L2); Arm Mali Midgard OpenCL Developer Guide: at most 256
        # work-items a group, 128-bit vectors, local memory of 32 KB that lives in global memory.
        "mali-t860": replace(
            _OPENCL, model="mali-t860", cores=4, max_threads_per_block=256, l1_bytes=16 << 10, l2_bytes=256 << 10
        ),
        # PoCL on a CPU, as its driver reports: 4096 work-items a group; local memory is part of the L2 cache.
        "pocl": Target(
            kind="opencl",
            model="pocl",
            vector_bytes=WIDEST_ACCESS_BYTES,
            max_threads_per_block=4096,
            max_shared_bytes=512 << 10,
            max_vthreads=8,
            l1_bytes=32 << 10,
            l2_bytes=512 << 10,
        ),
    }


GPUS: dict[str, dict[str, Target]] = {"cuda": _cuda(), "opencl": _opencl()}
"""By the kind of target, and the name of the model."""
ALIASES = {
    "rk3399": "mali-t860",
    "rk3588": "mali-g610",
    "4090": "rtx4090",
    "1080ti": "gtx1080ti",
    "a6000": "rtxa6000",
}
DEFAULTS = {"cuda": GPUS["cuda"]["t4"], "opencl": GPUS["opencl"]["mali-t860"]}
"""The GPU that code is for where none is named and none is here: of the oldest architecture that CUDA 13 compiles for,
and of the tightest limits of OpenCL's above, which other devices keep too."""
