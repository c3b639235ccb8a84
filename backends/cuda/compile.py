"""From a kernel-level module to an artifact with a cubin for the target's architecture."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ...dialects.gpu_models import DEFAULTS
from ...dialects.kernel import WarpGroupProductOp
from ...dialects.target import target_of
from ...dialects.walk import operations_in
from ...passes.lower.assemble_products import assemble_products
from ..c_family.artifact import Artifact
from ..c_family.kernel_source import KernelSource
from ..c_family.source import print_apart, print_module
from .architecture import Architecture
from .cubins import joined_cubins
from .language import STATIC_SHARED_BYTES, Cuda
from .nvrtc import Cubin, compile_cubin
from .operations import own_operations


def print_cuda(module: ModuleOp) -> KernelSource:
    """Print a kernel-level module as CUDA C; products become PTX in it."""
    return print_for(module, _capability(module))


def print_for(module: ModuleOp, capability: int) -> KernelSource:
    """Print a kernel-level module as CUDA C for a compute capability, such as 90; products become PTX in it."""
    assemble_products(module)
    return print_module(module, Cuda(capability), own_operations(capability), STATIC_SHARED_BYTES)


def compile_module(module: ModuleOp) -> Artifact:
    """Compile a kernel-level module; raises CompileError with the compiler's log."""
    kernel, made_for = print_cuda(module), architecture_of(module)
    return _artifact(kernel, made_for, [_cubin(kernel.source, made_for)])


def compile_apart(module: ModuleOp) -> Artifact:
    """Compile each kernel of a module alone, as one of many candidates of which several have some kernels in common.

    A kernel that was compiled before is in the cache then. Its machine code is the same either way.
    """
    assemble_products(module)
    made_for = architecture_of(module)
    own = own_operations(made_for.capability)
    kernel, sources = print_apart(module, Cuda(made_for.capability), own, STATIC_SHARED_BYTES)
    return _artifact(kernel, made_for, [_cubin(source, made_for) for source in sources])


def _cubin(source: str, made_for: Architecture) -> Cubin:
    return compile_cubin(source, made_for.capability, exact=made_for.exact)


def _artifact(kernel: KernelSource, made_for: Architecture, cubins: Sequence[Cubin]) -> Artifact:
    by_name = {each.name: each for cubin in cubins for each in cubin.resources}
    resources = tuple(by_name[launch.name] for launch in kernel.launches if launch.name in by_name)
    return Artifact("cuda", str(made_for), kernel, resources, joined_cubins([cubin.code for cubin in cubins]))


def architecture_of(module: ModuleOp) -> Architecture:
    """Return what a kernel-level module is compiled for: the target's, exactly where an intrinsic is of one alone."""
    products = (op for op in operations_in(module) if isinstance(op, WarpGroupProductOp))
    return Architecture(_capability(module), any(op.meaning().exact for op in products))


def _capability(module: ModuleOp) -> int:
    return target_of(module).compute_capability or DEFAULTS["cuda"].compute_capability
