"""List the devices of this machine that kernels can be made for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from ..backends.missing import MissingRequirement
from ..dialects.target import Target
from ._report import limits_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measure", action="store_true", help="measure the CPU's GFLOP/s and copy bandwidth too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    found = [_cpu(options.measure), *_cuda(), *_opencl()]
    print(json.dumps({"devices": found}) if options.json else "\n".join(map(_as_text, found)))
    return 0


def _cpu(measure: bool) -> dict[str, Any]:
    from ..backends.llvm.device import device_name
    from ..backends.llvm.host import host_target

    target = host_target()
    cpu: dict[str, Any] = {
        "kind": "llvm",
        "name": device_name(),
        "target": str(target),
        "cores": target.cores,
        "vector_bits": target.vector_bytes * 8,
        "vector_registers": target.vector_registers,
        "l1_bytes": target.l1_bytes,
        "l2_bytes": target.l2_bytes,
        "l3_bytes": target.l3_bytes,
        "l3_cores": target.l3_cores,
    }
    if measure:
        limits = limits_for(target, ["float32"])
        assert limits is not None, "this machine's own"
        cpu["peak_gflops_per_s"] = limits.peak("float32")
        cpu["copy_gbytes_per_s"] = limits.gbytes_per_s
    return cpu


def _cuda() -> Iterator[dict[str, Any]]:
    from ..backends.cuda import driver

    try:
        count = driver.device_count()
    except MissingRequirement:
        return
    for index in range(count):
        yield _gpu(driver.describe(index), driver.target_of_device(index))


def _opencl() -> Iterator[dict[str, Any]]:
    from ..backends.opencl import platform

    try:
        devices = platform.devices()
    except MissingRequirement:
        return
    for index, device in enumerate(devices):
        yield _gpu(platform.describe(device), platform.target_of_device(index))


def _gpu(name: str, target: Target) -> dict[str, Any]:
    return {
        "kind": target.kind,
        "name": name,
        "target": str(target),
        "cores": target.cores,
        "l2_bytes": target.l2_bytes,
        "max_threads_per_block": target.max_threads_per_block,
        "max_shared_bytes": target.max_shared_bytes,
    }


def _as_text(device: dict[str, Any]) -> str:
    lines = [f"{device['kind']}: {device['name']}"]
    if device["kind"] == "llvm":
        lines.append(
            f"  {device['cores']} cores for this process, {device['vector_registers']} vectors of "
            f"{device['vector_bits']} bits, L1 {device['l1_bytes'] >> 10} KiB, L2 {device['l2_bytes'] >> 10} KiB a core"
            + (f", L3 {device['l3_bytes'] >> 20} MiB for {device['l3_cores'] or 'all'}" if device["l3_bytes"] else "")
        )
    else:
        lines.append(
            f"  {device['cores']} multiprocessors, L2 {device['l2_bytes'] >> 10} KiB; a block has at most "
            f"{device['max_threads_per_block']} threads and {device['max_shared_bytes'] >> 10} KiB of shared memory"
        )
    if "peak_gflops_per_s" in device:
        peak, copy = device["peak_gflops_per_s"], device["copy_gbytes_per_s"]
        lines.append(f"  measured on all cores: {peak:.0f} GFLOP/s (float32 FMA), copying {copy:.1f} GB/s")
    lines.append(f"  --target '{device['target']}'")
    return "\n".join(lines)
