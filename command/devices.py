"""List the devices of this machine that kernels can be made for."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measure", action="store_true", help="measure peak GFLOP/s and copy bandwidth too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
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
    }
    if options.measure:
        from ..backends.llvm.peak import copy_gbytes_per_s, peak_gflops_per_s

        cpu["peak_gflops_per_s"] = peak_gflops_per_s(target)
        cpu["copy_gbytes_per_s"] = copy_gbytes_per_s(target)
    if options.json:
        print(json.dumps({"devices": [cpu]}))
    else:
        print(_as_text(cpu))
    return 0


def _as_text(cpu: dict[str, Any]) -> str:
    lines = [
        f"llvm: {cpu['name']}",
        f"  {cpu['cores']} cores for this process, {cpu['vector_registers']} vectors of {cpu['vector_bits']} bits, "
        f"L1 {cpu['l1_bytes'] >> 10} KiB, L2 {cpu['l2_bytes'] >> 10} KiB a core",
    ]
    if "peak_gflops_per_s" in cpu:
        peak, copy = cpu["peak_gflops_per_s"], cpu["copy_gbytes_per_s"]
        lines.append(f"  measured on all cores: {peak:.0f} GFLOP/s (float32 FMA), copying {copy:.1f} GB/s")
    lines.append(f"  --target '{cpu['target']}'")
    return "\n".join(lines)
