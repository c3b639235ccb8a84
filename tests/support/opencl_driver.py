"""Make sure that this machine has an OpenCL device that runs kernels, for the tests: PoCL where there is none.

Debian's package where this user may install it, else the one from PyPI, which does not know the newest CPUs.
"""

import os
import shutil
import subprocess
import sys

PROBE = """
import sys
import numpy as np
import pyopencl as cl
for platform in cl.get_platforms():
    for device in platform.get_devices():
        if platform.name.lower() == "oclgrind":
            continue
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        values = np.zeros(8, np.int32)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
        source = "__kernel void k(__global int* x) { x[get_global_id(0)] = get_global_id(0); }"
        cl.Program(context, source).build(cache_dir=False).k(queue, (8,), None, buffer)
        cl.enqueue_copy(queue, values, buffer)
        if list(values) == list(range(8)):
            print(f"OpenCL: {device.name.strip()} ({platform.name.strip()})")
            sys.exit(0)
sys.exit(1)
"""


def works() -> bool:
    """Run a kernel in another process: a driver that was just installed is not seen in this one."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROBE], capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    return done.returncode == 0


def install_from_debian() -> None:
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "pocl-opencl-icd"]):
        subprocess.run([apt_get, *arguments], env=environment, stdout=subprocess.DEVNULL, check=False)


def install_from_pypi() -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "pocl-binary-distribution",
    ]
    subprocess.run(command, check=False)


def main() -> int:
    if works():
        return 0
    for install in (install_from_debian, install_from_pypi):
        install()
        if works():
            return 0
    print("no OpenCL device runs kernels here, and PoCL could not be installed: apt-get install pocl-opencl-icd")
    return 0


if __name__ == "__main__":
    sys.exit(main())
