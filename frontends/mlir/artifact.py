"""Portable artifacts of StableHLO: bytecode of MLIR, read by the StableHLO of JAX where that is installed."""

from __future__ import annotations

from typing import Any

from .errors import MlirImportError

_MAGIC = b"ML\xefR"


def is_artifact(data: bytes) -> bool:
    """True for bytecode of MLIR."""
    return data.startswith(_MAGIC)


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
            raise MlirImportError(program, [f"its bytecode is no portable artifact of StableHLO: {error}"]) from error
        text: str = module.operation.get_asm(print_generic_op_form=True)
        return text
