"""A fleet inside one process: a tracker and devices for tests, documentation, and several GPUs of one machine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .builder import FleetBuilder
from .device import Device, DeviceOptions
from .member import Member
from .register import register
from .security import require_distributed, security_of
from .tracker import address_of, tracker


class LocalFleet:
    """A tracker, devices and builders in a thread of this process, each device with a runner process of its own.

    A context manager: `tracker` is the address, `devices` are the devices; at the end nothing is left.
    """

    def __init__(
        self,
        devices: Sequence[DeviceOptions],
        tls_dir: str | None = None,
        port: int = 0,
        builders: Sequence[FleetBuilder] = (),
    ) -> None:
        require_distributed()
        self._builders = list(builders)
        self._options, self._port = list(devices), port
        self._security = security_of(tls_dir)
        self.tracker = ""
        self.devices: list[Device] = []
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._restart: asyncio.Event | None = None
        self._undo = contextlib.ExitStack()
        self._thread = threading.Thread(target=self._run, name="local fleet", daemon=True)

    def __enter__(self) -> LocalFleet:
        try:
            self.devices = [self._undo.enter_context(Device(options)) for options in self._options]
            for builder in self._builders:
                self._undo.enter_context(builder)
            self._thread.start()
            self._ready.wait()
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.stopped.set()
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(timeout=30)
        self._undo.close()

    @property
    def _members(self) -> list[Member]:
        return [*self.devices, *self._builders]

    def restart_tracker(self) -> None:
        """End the tracker, and start it again at the same address; its devices find it."""
        assert self._loop is not None and self._restart is not None
        self._ready.clear()
        self._loop.call_soon_threadsafe(self._restart.set)
        self._ready.wait()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # it belongs to who waits
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        registered: list[asyncio.Task[None]] = []
        while not self._end.is_set():
            self._restart = asyncio.Event()
            async with tracker("127.0.0.1", self._port, self._security) as scheduler:
                self.tracker = address_of(scheduler)
                self._port = int(self.tracker.rpartition(":")[2])
                if not registered:
                    registered = [
                        asyncio.create_task(register(each, self.tracker, self._security)) for each in self._members
                    ]
                await _until_registered(scheduler, len(registered), self._end)
                self._ready.set()
                waits = [asyncio.create_task(event.wait()) for event in (self._end, self._restart)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for each in waits:
                    each.cancel()
                if self._end.is_set():
                    await asyncio.wait(registered, timeout=10) if registered else None


async def _until_registered(scheduler: Any, count: int, end: asyncio.Event) -> None:
    while len(scheduler.workers) < count and not end.is_set():
        await asyncio.sleep(0.02)
