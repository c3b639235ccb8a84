"""Portable artifacts of StableHLO: bytecode of MLIR, read by the StableHLO of JAX where that is installed."""

from __future__ import annotations

from typing import Any

from .errors import MlirImportError

_MAGIC = b"ML\xefR"


def is_artifact(data: bytes) -> bool:
    """True for bytecode of MLIR."""
    return data.startswith(_MAGIC)


def text_of(data: bytes, program: str) -> str:
    """Return a program's bytes as text; MlirImportError where they are neither text nor bytecode."""
    if is_artifact(data):
        return text_of_artifact(data, program)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        reason = "it is neither text nor bytecode of MLIR; of what jax.export gives, take `mlir_module_serialized`"
        raise MlirImportError(program, [reason]) from None


def text_of_artifact(data: bytes, program: str) -> str:
    """Return bytecode as text in the generic form; MlirImportError where it cannot be read, or nothing reads it."""
    try:
        from jax.extend.mlir import ir
        from jax.extend.mlir.dialects import stablehlo
    except ImportError:
        raise MlirImportError(program, ["it is bytecode, which JAX reads: pip install jax, or give its text"]) from None
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        try:
            module: Any = stablehlo.deserialize_portable_artifact(context, data)
        except Exception as error:
            reason = f"its bytecode is no portable artifact of StableHLO ({error}): give its text"
            raise MlirImportError(program, [reason]) from error
        text: str = module.operation.get_asm(print_generic_op_form=True)
        return text
