"""A random PyTorch network through loopwright beside PyTorch in double precision; where it is wrong, fewer outputs.

`python tests/support/torch_trials.py llvm SEED` shows one trial again.
"""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from random_torch import Sample, random_network

import loopwright as lw

Run = Callable[[Sample], Sequence[Any]]


class UnexportedError(Exception):
    """PyTorch itself cannot bring a network into the form that loopwright reads."""


@dataclass(frozen=True)
class Outcome:
    """The end of a trial: `right`, `wrong`, `traceback`, `refused`, or `unexported`: PyTorch does not get so far."""

    kind: str
    text: str = ""
    example: str = ""

    @staticmethod
    def of_error(error: Exception, said: str = "", schedule: str = "") -> Outcome:
        """The end by an error that is no sentence, with its innermost places; an example of what is said, if any."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        places = " < ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in reversed(frames))
        text = f"{type(error).__name__} at {places}: {str(error)[:600]}"
        return Outcome("traceback", text, f"{said}: {text}{schedule}" if said else "")


def try_network(kind: str, seed: int, most: int = 9) -> Outcome:
    """One network in one of the ways of `WAYS`."""
    sample = random_network(seed, most)
    run = WAYS[kind](seed)
    ended = attempt(run, sample)
    if ended.kind in ("right", "refused", "unexported"):
        return ended
    for place in range(len(sample.wanted)):
        if len(sample.wanted) > 1 and (found := attempt(run, sample.part([place]))).kind == ended.kind:
            ended, sample = found, sample.part([place])
            break
    return replace(ended, example=f"{kind} {seed}: {ended.text}\n{sample.text()}")


def attempt(run: Run, sample: Sample) -> Outcome:
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            got = run(sample)
    except UnexportedError as error:
        return Outcome("unexported", str(error))
    except lw.TorchImportError as error:
        return Outcome("refused", str(error))
    except lw.OnnxImportError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # whatever it is, it is no sentence
        return Outcome.of_error(error)
    wrong = sample.first_wrong(got)
    return Outcome("wrong", wrong) if wrong else Outcome("right")


def _exported(sample: Sample) -> Any:
    try:
        return torch.export.export(sample.network, tuple(sample.inputs))
    except Exception as error:
        raise UnexportedError(f"{type(error).__name__}: {str(error)[:200]}") from error


def _compiled(target: str) -> Run:
    """torch.export, `lw.from_exported` and `lw.compile`."""

    def run(sample: Sample) -> Sequence[Any]:
        net = lw.from_exported(_exported(sample))
        made = lw.compile(net, target, processes=1)
        given = {f"inputs_{n}": x for n, x in enumerate(sample.inputs)}
        found = made(
            **{
                port.name: given[port.name].numpy() if port.dtype != "bfloat16" else _bits(given[port.name])
                for port in made.plan.inputs
            }
        )
        return [_tensor(x) for x in (found if isinstance(found, list | tuple) else [found])]

    return run


def _bits(x: torch.Tensor) -> Any:
    """A tensor of bfloat16 as an array."""
    import ml_dtypes

    return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def _tensor(x: Any) -> torch.Tensor:
    if str(x.dtype) == "bfloat16":
        return torch.from_numpy(x.view("int16").copy()).view(torch.bfloat16)
    return torch.from_numpy(x.copy())


def _in_torch(device: str, dynamic: bool) -> Run:
    """torch.compile with the backend, on the inputs as they are; where extents are open, also on twice as many rows."""

    def run(sample: Sample) -> Sequence[Any]:
        from loopwright.frontends.torch.backend import backend

        torch._dynamo.reset()
        network = sample.network.to(device)
        try:
            compiled = torch.compile(network, backend=backend, dynamic=dynamic)
            found = [_called(compiled, sample, device) for _ in range(2)][-1]
            wide = sample.doubled() if dynamic else None
            if wide is not None and (wrong := wide.first_wrong(_called(compiled, wide, device))):
                raise AssertionError(f"twice as many rows: {wrong}")
            return found
        finally:
            sample.network.to("cpu")

    return run


def _called(compiled: Any, sample: Sample, device: str) -> list[torch.Tensor]:
    return [x.cpu() for x in compiled(*(x.to(device) for x in sample.inputs))]


def _by_onnx(target: str) -> Run:
    """torch.onnx.export, ONNX's backend interface."""

    def run(sample: Sample) -> Sequence[Any]:
        import onnx
        import onnxruntime

        from loopwright import onnx_backend

        file = io.BytesIO()
        try:
            torch.onnx.export(sample.network, tuple(sample.inputs), file, dynamo=False, opset_version=17)
            model = onnx.load_from_string(file.getvalue())
            names = [info.name for info in model.graph.input]
            onnx.checker.check_model(model, full_check=True)
            session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UnexportedError(f"{type(error).__name__}: {str(error)[:200]}") from error
        if sample.dtype == torch.bfloat16 or len(names) != len(sample.inputs):
            raise UnexportedError("inputs that nothing reads")
        feeds = {name: x.numpy() for name, x in zip(names, sample.inputs, strict=True)}
        if said := sample.first_wrong(session.run(None, feeds)):  # the model is not what it was exported from
            raise UnexportedError(f"onnxruntime: {said}")
        got = [_tensor(x) for x in onnx_backend.prepare(model, target=target, processes=1).run(feeds)]
        if sample.first_wrong(got) and _standard_agrees(model, feeds, got):
            raise UnexportedError("ONNX's reference implementation gives what loopwright does")
        return got

    return run


def _standard_agrees(model: Any, feeds: dict[str, Any], got: Sequence[torch.Tensor]) -> bool:
    """True where the standard's implementation gives the same: PyTorch's export and onnxruntime take it otherwise.

    They resize by a scale to so many whole pixels; by the standard corners are aligned to a part of one.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        wanted = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # it does not know everything, and says so in many ways
        return False
    return all(
        x.shape == y.shape and np.allclose(x.numpy(), y, rtol=1e-3, atol=1e-4) for x, y in zip(got, wanted, strict=True)
    )


WAYS: dict[str, Callable[[int], Run]] = {
    "llvm": lambda seed: _compiled(f"llvm cores={1 + seed % 2}"),
    "opencl": lambda seed: _compiled("opencl"),
    "cuda": lambda seed: _compiled("cuda"),
    "torch": lambda seed: _in_torch("cpu", seed % 3 == 0),
    "torch-cuda": lambda seed: _in_torch("cuda", seed % 3 == 0),
    "onnx": lambda seed: _by_onnx(f"llvm cores={1 + seed % 2}"),
    "onnx-cuda": lambda seed: _by_onnx("cuda"),
}
"""From a seed, a way to run a network."""

if __name__ == "__main__":
    ended = try_network(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:]))
    print(ended.kind, ended.text, ended.example, sep="\n")
