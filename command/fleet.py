"""Share measuring devices: a tracker, the devices registered with it, and who uses them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from ..fleet.address import DEFAULT_PORT
from ._errors import UserError
from ._inputs import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    tracker = actions.add_parser(
        "tracker", help="start a tracker, which tuners and devices meet at", allow_abbrev=False
    )
    tracker.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    tracker.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"(default: {DEFAULT_PORT}; 0: any)")
    device = actions.add_parser("device", help="register what this machine has under a key", allow_abbrev=False)
    _add_tracker(device)
    device.add_argument("--key", required=True, help="name of the kind of device, as h200")
    device.add_argument("--target", help="'llvm', 'cuda' or 'opencl' (default: cuda where there is one, else llvm)")
    device.add_argument(
        "--devices", default="0", metavar="N,M|all", help="GPUs to register, each by itself (default: 0)"
    )
    device.add_argument("--name", help="name of the device (default: host and number)")
    device.add_argument("--host", help="address that the device listens at (default: the one that the tracker reaches)")
    device.add_argument("--backend", help="dotted path of another backend module to run (for tests)")
    builder = actions.add_parser(
        "builder", help="have this machine, without a device, build candidates for tuners", allow_abbrev=False
    )
    _add_tracker(builder)
    builder.add_argument("--builders", type=positive, metavar="N", help="builds at once (default: one a core)")
    builder.add_argument("--name", help="name of the builder (default: that of the host)")
    builder.add_argument("--host", help="address that it listens at (default: the one that the tracker reaches)")
    builder.add_argument("--backend", help="dotted path of another backend module to build for (for tests)")
    device.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    status = actions.add_parser("status", help="show keys, devices and queues", allow_abbrev=False)
    stop = actions.add_parser("stop", help="end the devices under a key, or the whole fleet", allow_abbrev=False)
    for each in (status, stop):
        _add_tracker(each)
    status.add_argument("--json", action="store_true", help="print one JSON object")
    stop.add_argument("--key", help="end the devices under this key only, and no tracker")
    for each in (tracker, device, builder, status, stop):
        each.add_argument("--tls-dir", type=Path, metavar="DIR", help="folder of certificates, which a tracker makes")
    for each in (tracker, device, builder):
        each.add_argument(
            "--insecure", action="store_true", help="listen at an address that strangers reach, without TLS"
        )


def _add_tracker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tracker", required=True, metavar="HOST:PORT", help="address of the tracker")


def run(options: argparse.Namespace) -> int:
    from ..fleet.security import require_distributed

    require_distributed()
    actions = {"tracker": _tracker, "device": _device, "builder": _builder, "status": _status, "stop": _stop}
    return actions[options.action](options)


def _tracker(options: argparse.Namespace) -> int:
    from ..fleet.security import make_certificates, require_closed, security_of

    if options.tls_dir is not None:
        make_certificates(options.tls_dir)
    security = security_of(options.tls_dir)
    require_closed(options.host, security, options.insecure)
    return asyncio.run(_run_tracker(options, security))


async def _run_tracker(options: argparse.Namespace, security: Any) -> int:
    from ..fleet.address import certificates
    from ..fleet.tracker import address_of, has_dashboard, tracker

    ended = _ended_by_signals()
    async with tracker(options.host, options.port, security, dashboard=True) as scheduler:
        at = address_of(scheduler)
        dashboard = "none (pip install bokeh)"
        if has_dashboard() and "dashboard" in scheduler.services:
            dashboard = f"http://{options.host}:{scheduler.services['dashboard'].port}/status"
        more = certificates(options.tls_dir)
        print(f"tracker at {at}\ndashboard: {dashboard}", flush=True)
        print(f"register devices: loopwright fleet device --tracker {at} --key KEY{more}", flush=True)
        waits = [asyncio.create_task(ended.wait()), asyncio.create_task(scheduler.finished())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    return 0


def _ended_by_signals() -> asyncio.Event:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


def _device(options: argparse.Namespace) -> int:
    from ..fleet.address import host_and_port, require_tracker
    from ..fleet.hardware import describe_device, device_numbers, usual_kind
    from ..fleet.register import take_plain_data_only
    from ..fleet.security import require_closed, security_of

    security = security_of(options.tls_dir)
    require_closed(options.host or host_and_port(options.tracker)[0], security, options.insecure)
    target = options.target or usual_kind()
    try:
        numbers = device_numbers(options.devices, target.split()[0])
        described = [describe_device(options.key, target, n, options.name, options.backend or "") for n in numbers]
    except ValueError as error:
        raise UserError(str(error)) from None
    if options.parent is None:
        require_tracker(options.tracker, security)
    if len(numbers) > 1:
        return _each_in_a_process(options, numbers)
    take_plain_data_only()
    return asyncio.run(_run_device(options, described[0], security))


def _builder(options: argparse.Namespace) -> int:
    from ..fleet.address import host_and_port, require_tracker
    from ..fleet.builder import FleetBuilder
    from ..fleet.hardware import host_name
    from ..fleet.register import take_plain_data_only
    from ..fleet.security import require_closed, security_of

    security = security_of(options.tls_dir)
    require_closed(options.host or host_and_port(options.tracker)[0], security, options.insecure)
    require_tracker(options.tracker, security)
    count = options.builders or len(os.sched_getaffinity(0))
    made = FleetBuilder(options.name or host_name(), count, options.backend or "")
    print(f"builder '{made.name}': {count} at once", flush=True)
    take_plain_data_only()
    return asyncio.run(_run_builder(options, made, security))


async def _run_builder(options: argparse.Namespace, builder: Any, security: Any) -> int:
    with builder:
        return await _serve(options, builder, security, _ended_by_signals())


async def _run_device(options: argparse.Namespace, described: Any, security: Any) -> int:
    ended = _ended_by_signals()
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as undo:
        device = undo.enter_context(await loop.run_in_executor(None, _opened, described))
        print(f"device '{described.name}': {device.description['device']}, target '{described.target}'", flush=True)
        return await _serve(options, device, security, ended, _orphaned(options.parent))


async def _serve(
    options: argparse.Namespace, member: Any, security: Any, ended: asyncio.Event, *others: Coroutine[Any, Any, None]
) -> int:
    """Have a device or builder serve until it is told to stop, a signal comes or one of `others` returns."""
    from ..fleet.register import register

    def say(text: str) -> None:
        print(text, flush=True)

    serving = asyncio.create_task(register(member, options.tracker, security, options.host, say))
    waits = [serving, asyncio.create_task(ended.wait()), *map(asyncio.create_task, others)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    member.stopped.set()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(serving, 10)
    return 0


def _opened(described: Any) -> Any:
    """A device whose runner has started; opened again by its `with` statement, it stays as it is."""
    from ..fleet.device import Device

    return Device(described).__enter__()


async def _orphaned(parent: int | None) -> None:
    """Return once the process that started this one is no more; never where none did."""
    while parent is None or os.getppid() == parent:
        await asyncio.sleep(0.5)


def _each_in_a_process(options: argparse.Namespace, numbers: list[int]) -> int:
    """Register each device from a process of its own, and end all of them when this one ends."""
    own = [
        [*options.command_line, "--devices", str(number), "--parent", str(os.getpid())]
        + ([] if options.name is None else ["--name", f"{options.name}-{number}"])
        for number in numbers
    ]
    started = [subprocess.Popen([sys.executable, "-m", "loopwright", *each]) for each in own]
    try:
        while any(process.poll() is None for process in started):
            time.sleep(0.2)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
    return max(process.returncode for process in started)


def _status(options: argparse.Namespace) -> int:
    from ..fleet.manage import fleet_status

    found = fleet_status(options.tracker, tls_dir=options.tls_dir)
    print(json.dumps(found.as_json()) if options.json else found)
    return 0


def _stop(options: argparse.Namespace) -> int:
    from ..fleet.manage import stop_fleet

    ended, left = stop_fleet(options.tracker, key=options.key, tls_dir=options.tls_dir)
    what = f"devices under '{options.key}'" if options.key else "devices and the tracker"
    print(f"ended {what} at {options.tracker}: {', '.join(ended) or 'no device'}")
    if left:
        print(f"busy, and not ended: {', '.join(left)}", file=sys.stderr)
    return 1 if left else 0
