"""Options of how candidates are measured: those of a builder and a runner."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UserError
from ._inputs import from_zero, positive, seconds

if TYPE_CHECKING:
    from ..search.measure.local import MeasureOption, Runner


def add_measure_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `lw.LocalBuilder` and `lw.LocalRunner`; what is not given is as usual for the target."""
    group = parser.add_argument_group("measuring (what is not given is as usual for the target)")
    group.add_argument("--builders", type=positive, metavar="N", help="processes that build (default: one a core)")
    group.add_argument("--build-timeout", type=seconds, metavar="S", help="seconds for a build (default: 30)")
    group.add_argument("--number", type=positive, metavar="N", help="runs in a repeat, at least")
    group.add_argument("--repeat", type=positive, metavar="N", help="repeats of a measurement (default: 3)")
    group.add_argument("--min-repeat-ms", type=from_zero, metavar="MS", help="length of a repeat (50, on a GPU 10)")
    group.add_argument("--run-timeout", type=seconds, metavar="S", help="seconds for a measurement (default: 10)")
    group.add_argument("--cooldown", type=from_zero, metavar="S", help="seconds of rest before each (default: 0)")
    group.add_argument("--tracker", metavar="HOST:PORT", help="run on the devices of a fleet (`loopwright fleet`)")
    group.add_argument("--key", help="kind of device of the fleet to run on")
    group.add_argument("--priority", type=int, metavar="N", help="before tuners of a lower one there (default: 0)")
    group.add_argument("--tls-dir", type=Path, metavar="DIR", help="folder of the fleet's certificates")


def measure_option_of(options: argparse.Namespace) -> MeasureOption:
    """The builder and the runner that are asked for; UserError where they make no sense."""
    from ..search.measure.local import LocalBuilder, measure_option

    try:
        builder = LocalBuilder(timeout=options.build_timeout, n_parallel=options.builders)
        runner = _runner(
            options,
            number=options.number,
            repeat=options.repeat,
            min_repeat_ms=options.min_repeat_ms,
            timeout=options.run_timeout,
            cooldown=options.cooldown,
        )
    except ValueError as error:
        raise UserError(str(error)) from None
    return measure_option(builder, runner)


def _runner(options: argparse.Namespace, **terms: Any) -> Runner:
    """The runner: this machine's, or where a tracker is named that of the fleet, which is asked if it serves the key.

    To ask later is too late: what comes before the first trial takes seconds. A device of this machine that is named by
    its kind alone has to be here for the same reason, and would be taken for another one's.
    """
    from ..backends.targets import require_device
    from ..search.measure.local import LocalRunner

    if options.tracker is None and options.key is None:
        if target := vars(options).get("target"):
            require_device(target)
        return LocalRunner(**terms)
    if options.tracker is None or options.key is None:
        raise UserError("a fleet is named by both --tracker HOST:PORT and --key KEY")
    from ..fleet.manage import require_served
    from ..fleet.runner import FleetRunner

    runner = FleetRunner(options.key, options.tracker, priority=options.priority or 0, tls_dir=options.tls_dir, **terms)
    require_served(options.key, options.tracker, tls_dir=options.tls_dir)
    return runner
