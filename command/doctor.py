"""Say which targets and front ends work on this machine, or what each of them lacks."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["runs", "compiles", "installed", "missing", "not supported"]


@dataclass(frozen=True)
class Finding:
    """The finding about one package, driver or device."""

    name: str
    status: Status
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    findings = list(examine())
    if options.json:
        print(json.dumps({f.name: asdict(f) for f in findings}))
    else:
        width = max(len(f.status) for f in findings)
        print("\n".join(f"{f.name:<8}{f.status:<{width}}  {f.text}" for f in findings))
    return 0 if findings[0].status == "runs" else 1


def examine() -> Iterator[Finding]:
    """Look at each target and front end; what has a package that may crash is only looked for, not imported."""
    yield _llvm()
    yield _cuda()
    yield _opencl()
    yield _package("onnx", "onnx", "reading ONNX models")
    yield _package("torch", "torch", "torch.compile and programs of torch.export")
    yield _package("fleet", "distributed", "measuring on many devices")


def _llvm() -> Finding:
    """Compile and run a kernel, as an installed package may still not work on this CPU."""
    try:
        import numpy as np

        from .. import te
        from ..backends.build import build

        data = te.placeholder((64,), name="data")
        kernel = build(te.create_module([data, te.compute((64,), lambda i: data[i] + 1.0, name="next")]))
        result = kernel(np.zeros(64, np.float32))
        if not np.array_equal(result, np.ones(64, np.float32)):
            return Finding("llvm", "not supported", "a kernel that adds 1 gives something else on this CPU")
    except (ImportError, OSError, RuntimeError) as error:
        return Finding("llvm", "missing", f"{_one_line(error)}: pip install llvmlite")
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    return Finding("llvm", "runs", f"LLVM {version}, CPU {llvm.get_host_cpu_name()}: compiled a kernel and ran it")


def _cuda() -> Finding:
    driver = _library("libcuda.so.1")
    devices = _cuda_devices(driver) if driver is not None else 0
    versions = {name: _version(name) for name in ("pycuda", "nvidia-cuda-nvrtc", "cuda-bindings")}
    found = ["no driver" if driver is None else f"driver with {devices} device(s)"]
    found += [f"{name} {version}" if version else f"no {name}" for name, version in versions.items()]
    compiles = bool(versions["nvidia-cuda-nvrtc"] and versions["cuda-bindings"])
    return _device_finding("cuda", compiles, bool(compiles and versions["pycuda"] and devices), found)


def _cuda_devices(driver: ctypes.CDLL) -> int:
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def _opencl() -> Finding:
    version, loader = _version("pyopencl"), _library("libOpenCL.so.1")
    platforms = _opencl_platforms(loader) if loader is not None else 0
    found = [f"pyopencl {version}" if version else "no pyopencl", f"{platforms} platform(s) of the system"]
    found += _opencl_devices() if version else []
    return _device_finding("opencl", bool(version), bool(version), found)


def _opencl_devices() -> list[str]:
    """Find OpenCL platforms through pyopencl, which has a loader of its own, and drivers that it is not told of."""
    from ..backends.opencl.platform import MissingOpenCl, describe, devices, unregistered_driver

    try:
        found = devices()
    except MissingOpenCl as error:
        return [_one_line(error)]
    more = unregistered_driver([device.platform.name for device in found])
    return [*(describe(device) for device in found), *([more] if more else [])]


def _device_finding(name: str, compiles: bool, runs: bool, found: list[str]) -> Finding:
    """Say for each target whether the packages and devices found suffice for it."""
    text = ", ".join(found)
    if not compiles:
        return Finding(name, "missing", f"{text}: pip install 'loopwright[{name}]'")
    return Finding(name, "runs" if runs else "compiles", text)


def _opencl_platforms(loader: ctypes.CDLL) -> int:
    count = ctypes.c_uint()
    return 0 if loader.clGetPlatformIDs(0, None, ctypes.byref(count)) else count.value


def _package(name: str, module: str, use: str) -> Finding:
    """Look for a package that something optional is built on."""
    version = _version(module) if importlib.util.find_spec(module) is not None else None
    if version is None:
        return Finding(name, "missing", f"for {use}: pip install 'loopwright[{name}]'")
    return Finding(name, "installed", f"{module} {version}, for {use}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
