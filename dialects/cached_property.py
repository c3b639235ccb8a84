"""A property that is computed once for each object, and without a lock."""

from __future__ import annotations

import functools
import sys
from typing import Any, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)

if sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property[T_co]):
        """As that of Python 3.12. Before it, one lock for all objects of a class stayed closed in a child forked by
        another thread than the one that computed, and let one thread at a time compute, whatever its object.
        """

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> cached_property[T_co]: ...

        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> T_co: ...

        def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            name = self.attrname
            assert name is not None
            if name not in instance.__dict__:
                instance.__dict__[name] = self.func(instance)
            return instance.__dict__[name]
