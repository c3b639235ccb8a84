"""Devices that trials can run on, beside this CPU."""

from loopwright.backends.cuda.driver import MissingCuda, device_count
from loopwright.backends.opencl.platform import MissingOpenCl, device_at


def has_opencl() -> bool:
    """Return true where an OpenCL device can run kernels."""
    try:
        return device_at(0) is not None
    except MissingOpenCl:
        return False


def has_cuda() -> bool:
    """Return true where there is a CUDA device."""
    try:
        return device_count() > 0
    except MissingCuda:
        return False
