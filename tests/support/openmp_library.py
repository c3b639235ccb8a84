"""An OpenMP runtime for teams that stands for PyTorch's."""

import ctypes
import glob
import importlib.util
import os


def openmp_library() -> ctypes.CDLL:
    """Return the runtime in scikit-learn's wheel, else the system's."""
    found = importlib.util.find_spec("sklearn")
    site = os.path.dirname(os.path.dirname(found.origin)) if found is not None and found.origin else ""
    bundled = sorted(glob.glob(os.path.join(site, "scikit_learn.libs", "libgomp*.so*")))
    return ctypes.CDLL(bundled[0] if bundled else "libgomp.so.1")
