"""The stable key of a graph, and the file in the cache folder that its tuning records are in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...storage.folders import cache_folder
from .fx import FxNode, name_of


def records_of(rows: Iterable[str], target: str) -> Path | None:
    """Return the file for the records of a graph on a target, by its rows; None where this user has no home folder."""
    folder = cache_folder("records")
    return None if folder is None else folder / f"{graph_key(rows, target)}.jsonl"


def graph_key(rows: Iterable[str], target: str) -> str:
    """Return a key of a graph on a target, by its rows."""
    return hashlib.sha256("\n".join([target, *rows]).encode()).hexdigest()[:32]


def rows_of(graph: Any) -> list[str]:
    """Return a row for each node of an FX graph: operators, arguments, shapes, types, and neither names nor values."""
    numbers: dict[FxNode, int] = {}
    rows = []
    for node in graph.nodes:
        rows.append(_row(node, numbers))
        numbers[node] = len(numbers)
    return rows


def form_of(node: FxNode) -> str:
    """Return the operator of a node, its arguments, and shapes and types of what it reads and gives, without names."""
    inputs = node.all_input_nodes
    numbers = {each: number for number, each in enumerate(inputs)}
    return " ".join([_row(node, numbers), *map(_kinds, inputs)])


def _row(node: FxNode, numbers: dict[FxNode, int]) -> str:
    operator = name_of(node) if node.op == "call_function" else node.op
    return f"{operator} {_shown(node.args, numbers)} {_shown(node.kwargs, numbers)} {_kinds(node)}"


def _shown(given: Any, numbers: dict[FxNode, int]) -> str:
    if isinstance(given, dict):
        return f"{{{', '.join(f'{name}: {_shown(value, numbers)}' for name, value in sorted(given.items()))}}}"
    if isinstance(given, list | tuple):
        return f"[{', '.join(_shown(each, numbers) for each in given)}]"
    if hasattr(given, "op") and hasattr(given, "users"):
        return f"%{numbers[given]}"
    return repr(given)


def _kinds(node: FxNode) -> str:
    value = node.meta.get("val")
    return " ".join(
        f"{each.dtype}{list(each.shape)}{list(each.stride())}"
        for each in (value if isinstance(value, list | tuple) else [value])
        if hasattr(each, "stride")
    )
