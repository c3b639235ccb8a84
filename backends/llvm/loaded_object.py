"""A kernel's machine code in memory."""

from __future__ import annotations

from .jit import LoadedSymbols
from .symbols import RUN_SYMBOL, TIME_SYMBOL, TRAP_SYMBOL
from .team import symbols_of_team


class LoadedObject(LoadedSymbols):
    """A kernel in memory; `run` and `time` are addresses, valid until `close`, and so is `trap` if it is there."""

    def __init__(self, object_code: bytes, threads: int, has_trap: bool = False) -> None:
        symbols = (RUN_SYMBOL, TIME_SYMBOL, *([TRAP_SYMBOL] if has_trap else ()))
        super().__init__(object_code, symbols, symbols_of_team() if threads > 1 else ())
        self.run, self.time = self.addresses[RUN_SYMBOL], self.addresses[TIME_SYMBOL]
        self.trap = self.addresses.get(TRAP_SYMBOL)
