"""Versions of installed packages."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence


def package_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return versions of those that make code beside a backend's own `packages`, of which it has what is installed."""
    found: dict[str, str] = {}
    for package in ("loopwright", "xdsl", "numpy", *packages):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
