"""Templates of the user's own: in a file or a module, which is run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..dialects.shown_text import one_line
from ._errors import UserError

_LONGEST_REASON = 300
_PREFIX = "loopwright_own_"
"""Of the names that modules of the user's files get, which may be called as any module is."""


def own_template(text: str) -> Callable[..., Any]:
    """The template that `FILE.py:NAME` or `MODULE:NAME` names, by its variable or by the name it is registered under.

    The file is run, with its folder on the path, as Python would. UserError where there is none, or running it fails.
    """
    from ..search.template.registry import registered_in

    source, _, name = text.rpartition(":")
    if not source or not name:
        raise UserError(f"a template of your own is FILE.py:NAME or MODULE:NAME, got '{one_line(text)}'")
    if not source.endswith(".py") and os.path.isfile(source):
        raise UserError(f"a template of your own is in a file of Python (.py) or a module, got {one_line(source)}")
    module = _run_file(Path(source)) if source.endswith(".py") else _run_module(source)
    known = registered_in(module.__name__)
    found = getattr(module, name, None) or known.get(name)
    if callable(found):
        return found
    raise UserError(f"{source} has no template '{name}'; it has {', '.join(sorted(known)) or 'none'}")


def _run_file(path: Path) -> ModuleType:
    name = _PREFIX + path.stem
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "the suffix is .py"
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.fspath(path.parent.resolve()))
    sys.modules[name] = module
    loader = spec.loader
    _run(os.fspath(path), lambda: loader.exec_module(module))
    return module


def _run_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    _run(name, lambda: importlib.import_module(name))
    return sys.modules[name]


def _run(source: str, load: Callable[[], object]) -> None:
    """Run code of the user's; UserError with its last line, where it fails."""
    try:
        load()
    except (Exception, SystemExit) as error:  # code of the user's
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(source)]
        line = f":{frames[-1].lineno}" if frames else ""
        reason = one_line(f"{type(error).__name__}: {error}", _LONGEST_REASON)
        raise UserError(f"{source}{line} cannot be run: {reason}") from None
