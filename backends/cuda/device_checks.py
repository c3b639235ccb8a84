"""Devices held to what an artifact is for: its architecture, and the shared memory of a block."""

from __future__ import annotations

from ..c_family.artifact import Artifact
from .architecture import Architecture
from .driver import MissingCuda, describe, device_at, pycuda_driver


def check_device(artifact: Artifact, index: int) -> None:
    """MissingCuda where a device does not run what an artifact holds."""
    major, minor = device_at(index).compute_capability()
    if not Architecture.of(artifact.architecture).runs_on(major, minor):
        raise MissingCuda(
            f"kernel '{artifact.kernel.name}' was compiled for {artifact.architecture}, {describe(index)} is "
            f"sm_{major}{minor}: build it for 'cuda compute_capability={major}{minor}'"
        )
    names = pycuda_driver().device_attribute
    limit = device_at(index).get_attribute(names.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    for launch in artifact.kernel.launches:
        shared_bytes = launch.static_shared_bytes + launch.dynamic_shared_bytes
        if shared_bytes > limit:
            raise MissingCuda(
                f"kernel '{launch.name}' has {shared_bytes} shared bytes a block, {describe(index)} allows {limit}"
            )
