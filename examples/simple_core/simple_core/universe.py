"""The passes of the package for xDSL's tools, imported when first used; loopwright takes primitives from here."""

from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _strip_mine() -> type[ModulePass]:
    from .strip_mine import StripMine

    return StripMine


UNIVERSE = Universe(all_passes={"simple-core-strip-mine": _strip_mine})
