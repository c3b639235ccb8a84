"""Run a network once, on given or random inputs; --profile shows where the time goes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import one_line, printable
from ..storage.ownership import require_ours
from ..storage.whole_file import whole_file
from ._errors import UserError
from ._inputs import drawn, file_name, read_arrays
from ._network import add_compile_options, add_trust_option, as_json, compiled_network, executor_of

if TYPE_CHECKING:
    from ..graph.runtime.executor import Executor
    from ..graph.runtime.plan import Port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_options(parser)
    add_trust_option(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="values of an input (others are random); may be given several times",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs (default: 0)")
    parser.add_argument("-o", "--output", type=file_name, help="write the outputs to this .npz file")
    parser.add_argument("--profile", action="store_true", help="print the time of each step")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    import numpy as np

    if options.output is not None:
        _require_output(options.output)
    given = read_arrays(options.input, "--input")
    net = compiled_network(options)
    executor = executor_of(net)
    _feed(executor, net.plan.inputs, given, options.seed)
    executor.run()
    outputs: dict[str, Any] = {name: executor.get_output(name) for name in executor.output_names}
    if options.output is not None:
        try:
            with whole_file(options.output) as file:
                np.savez(file, **outputs)
        except OSError as error:
            raise UserError(f"cannot write {options.output}: {error.strerror}") from None
    profile = executor.profile() if options.profile else None
    if options.json:
        print(json.dumps({**as_json(net), "results": {n: _summary(a) for n, a in outputs.items()}, **_rows(profile)}))
        return 0
    for name, array in outputs.items():
        shown = ", ".join(f"{key} {value:.6g}" for key, value in _summary(array).items() if isinstance(value, float))
        print(f"{one_line(name)}: {array.dtype}{list(array.shape)}, {shown or 'no elements'}")
    if profile is not None:
        print(printable(f"\n{profile}"))
    return 0


def _require_output(path: Path) -> None:
    """UserError where outputs cannot go to a file, before anything is compiled."""
    if path.suffix != ".npz":
        raise UserError(f"-o takes a file of arrays (.npz), not {path}")
    try:
        require_ours(path, "file of arrays", [b"PK"])
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _feed(executor: Executor, ports: tuple[Port, ...], given: dict[str, Any], seed: int) -> None:
    names = [port.name for port in ports]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise UserError(f"there is no input '{unknown[0]}'; inputs are {', '.join(names)}")
    for name, array in {**drawn(ports, seed), **given}.items():
        try:
            executor.set_input(name, array)
        except (TypeError, ValueError) as error:
            raise UserError(str(error)) from None


def _summary(array: Any) -> dict[str, Any]:
    import numpy as np

    if not array.size:
        return {"shape": list(array.shape)}
    wide = np.asarray(array).astype(np.float64)
    return {
        "shape": list(array.shape),
        "min": float(wide.min()),
        "max": float(wide.max()),
        "mean": float(wide.mean()),
    }


def _rows(profile: Any) -> dict[str, Any]:
    if profile is None:
        return {}
    rows = [
        {
            "step": row.label,
            "operators": row.kernel.label,
            "time_s": row.time_s,
            "gflops_per_s": row.gflops_per_s,
            "tuned": row.kernel.tuned,
            "schedule": row.kernel.schedule,
        }
        for row in profile
    ]
    return {"profile": rows, "total_s": profile.total_s}
