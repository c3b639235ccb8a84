"""PyTorch's models in onnxruntime, on a CPU."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

OPSET = 17
"""Of models that torch.jit traces: the last that PyTorch 2.11 and 2.14 both write."""


def session_of(model: Any, inputs: Sequence[Any], threads: int) -> Callable[[], list[Any]]:
    """Return a call of onnxruntime that computes the model on these inputs, by so many threads.

    The model is exported as torch.jit traces it, which needs no package beside PyTorch, and as Dynamo does where that
    fails.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = threads, 4
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        _export(model, tuple(inputs), path)
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    feeds = {given.name: x.numpy() for given, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feeds)


def _export(model: Any, inputs: tuple[Any, ...], path: str) -> None:
    import torch

    with _words_of_exporters(copy.deepcopy(model)) as plain:
        try:
            torch.onnx.export(plain, inputs, path, dynamo=False, opset_version=OPSET)
        except Exception:  # of any kind: an operator, control flow, a tracer's limit
            program = torch.onnx.export(plain, inputs, dynamo=True, verbose=False)
            program.save(path, external_data=True)  # one file has a limit of 2 GiB


@contextmanager
def _words_of_exporters(model: Any) -> Iterator[Any]:
    """The model with the attention of transformers written out, and its masks without a look at packed sequences."""
    attending = [part for part in model.modules() if hasattr(part, "set_attn_implementation")]
    if not attending:
        yield model
        return
    from transformers import masking_utils

    before = masking_utils.find_packed_sequence_indices
    masking_utils.find_packed_sequence_indices = lambda *given, **named: None
    for part in attending:
        part.set_attn_implementation("eager")
    try:
        yield model
    finally:
        masking_utils.find_packed_sequence_indices = before
