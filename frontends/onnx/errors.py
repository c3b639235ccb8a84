"""Errors of the import: what cannot be imported, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ProgramImportError


class OnnxImportError(ProgramImportError):
    """A model cannot be imported; the text lists everything that stands in the way, a line each where it is more.

    `pending` are those of the reasons that shapes or values of inputs would mend.
    """

    def __init__(self, model: str, reasons: Sequence[str], pending: Sequence[str] = ()) -> None:
        super().__init__(f"model '{model}'", reasons)
        self.pending = tuple(pending)


class UnsupportedNode(Exception):
    """A node cannot be converted; the text says why, without the node."""


class NeedsConstantError(UnsupportedNode):
    """A node's meaning depends on the values of a tensor that is not constant."""

    def __init__(self, tensor: str, what: str) -> None:
        self.tensor = tensor
        super().__init__(f"{what} '{tensor}' must be a constant")


class TooLargeError(UnsupportedNode):
    """A tensor does not fit into memory; the text says how many bytes it takes."""


class EmptyTensorError(UnsupportedNode):
    """A node's input has no elements, so that its result is known once its other inputs are."""


class NeedsInputsError(OnnxImportError):
    """A model could be imported if the values of some of its inputs were known: `inputs`."""

    def __init__(self, model: str, reasons: Sequence[str], inputs: Sequence[str]) -> None:
        super().__init__(model, reasons, reasons)
        self.inputs = tuple(inputs)
