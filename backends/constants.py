"""Constants of a kernel: given once when it is built, or with each call; either way in the layout the kernel wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from .arrays import aligned_copy, as_array
from .signature import Argument

Array = npt.NDArray[Any]


class Constants:
    """Completes the arrays of a call to the arguments of a kernel.

    `params` are constants by name, copied and packed here, once. A constant that is not among them comes with each call
    in its original layout, and is packed anew in each, as it may have been changed in between.

    TypeError or ValueError names the parameter, what it must be and what came.
    """

    def __init__(self, kernel: str, arguments: Sequence[Argument], params: Mapping[str, Any] | None = None) -> None:
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(f"params of kernel {kernel} are arrays by name, got {type(params).__name__}")
        given = dict(params or {})
        _refuse_strangers(kernel, arguments, given)
        self._kernel = kernel
        self.fixed: dict[int, Array] = {}
        """The constants among `params` as the kernel takes them, by position."""
        self._packings = []
        for position, argument in enumerate(arguments):
            if argument.name in given:
                array = _checked(kernel, argument, given[argument.name])
                self.fixed[position] = aligned_copy(argument.packing.pack(array) if argument.packing else array)
            elif argument.packing is not None:
                self._packings.append((position, argument.packing))
        self._packed: dict[int, tuple[Array, Array]] = {}
        self.open = tuple(a for position, a in enumerate(arguments) if position not in self.fixed)
        """The arguments that a call gives."""

    def require_packed(self, verb: str) -> None:
        """ValueError where a constant is packed at each call, which only this package does: to `verb` the kernel."""
        for argument in self.open:
            if argument.packing is not None:
                raise ValueError(
                    f"kernel {self._kernel}: constant '{argument.name}' has a layout of its own: to {verb} the kernel "
                    f"build it with params={{'{argument.name}': ...}}"
                )

    def complete(self, arrays: Sequence[Array], again: bool = False) -> Sequence[Array]:
        """Return arrays for all arguments; `again` where arrays that came last time are known to be as they were."""
        if not self.fixed and not self._packings:
            return arrays
        result = list(arrays)
        for position, array in self.fixed.items():
            result.insert(position, array)
        for position, packing in self._packings:
            array = result[position]
            known = self._packed.get(position)
            if known is None or known[0] is not array or not again:
                known = self._packed[position] = (array, aligned_copy(packing.pack(array)))
            result[position] = known[1]
        return result


def _refuse_strangers(kernel: str, arguments: Sequence[Argument], params: Mapping[str, Any]) -> None:
    constants = [argument.name for argument in arguments if argument.constant]
    inputs = [argument.name for argument in arguments if not argument.is_output]
    for name in params:
        if name in constants:
            continue
        if name in inputs:
            fix = f"declare it with te.placeholder(..., name='{name}', constant=True)"
            raise ValueError(f"kernel {kernel}: input '{name}' is no constant; {fix}")
        have = f"it has {', '.join(constants)}" if constants else "it has none"
        raise ValueError(f"kernel {kernel}: there is no constant '{name}'; {have}")


def _checked(kernel: str, argument: Argument, value: Any) -> Array:
    array = as_array(value, f"kernel {kernel}: constant '{argument.name}'")
    argument.require_fit(kernel, array, "constant")
    return array
