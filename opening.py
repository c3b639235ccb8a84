"""Networks given as a file: what takes a network of ours takes the path of an ONNX model, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from .dialects.classic_words import knows_classic_words
from .dialects.shown_text import one_line
from .frontends.onnx.importer import from_onnx
from .graph import compiler, tasks, template_tasks
from .graph.network import Network

P = ParamSpec("P")
R = TypeVar("R")

AnyNetwork = Network | str | os.PathLike[str]
"""A network, or the path of an ONNX model."""


def opened(net: AnyNetwork) -> Network:
    """The network itself, or that of the ONNX model at a path (`lw.from_onnx`); TypeError for anything else."""
    if isinstance(net, Network):
        return net
    if isinstance(net, str | os.PathLike) and Path(net).suffix == ".onnx":
        return from_onnx(net)
    how = "give the path of a model (.onnx), or what lw.from_onnx, lw.from_mlir or lw.testing.network gives"
    raise TypeError(f"{one_line(repr(net), 60)} is no network: {how}")


def opens(function: Callable[Concatenate[Network, P], R]) -> Callable[Concatenate[AnyNetwork, P], R]:
    """Let a function of a network take the path of an ONNX model in its place."""

    @wraps(function)
    def opening(net: Any, *arguments: P.args, **options: P.kwargs) -> R:
        network = opened(net)
        if not network.outputs:
            raise ValueError(f"network '{one_line(network.name)}' has no output: name its results by net.output(...)")
        return function(network, *arguments, **options)

    return cast(Callable[Concatenate[AnyNetwork, P], R], knows_classic_words(opening))


compile = opens(compiler.compile)
extract_tasks = opens(tasks.extract_tasks)
extract_template_tasks = opens(template_tasks.extract_template_tasks)
