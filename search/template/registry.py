"""Templates by name, of users and of the package, and the operators that those of the package are for."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, overload

from ...dialects.target import Target
from ...schedule import Schedule
from .bound import BoundTemplate
from .function import Function, TemplateFunction
from .history import best_config
from .knobs.knob import ConfigError
from .operator import TemplateOperator

_TEMPLATES: dict[str, Template] = {}
"""Filled by the decorator: a task, here or in another process, is found by its template's name."""

_OPERATORS: dict[str, TemplateOperator] = {}

_FOLDER = "templates"


@dataclass(frozen=True)
class Template(TemplateFunction):
    """A template that is known by its name; called, it gives the schedule of the best config that is known."""

    def __call__(self, *args: Any, target: str | Target = "llvm", config: Any = None) -> Schedule:
        """The schedule for `args`: of `config` (an index, values, or a Config), or what `history.best_config` says."""
        bound = BoundTemplate(self, args, target)
        return bound.instantiate(best_config(bound) if config is None else config)


@overload
def template(function: Function) -> Template: ...
@overload
def template(function: str) -> Callable[[Function], Template]: ...
def template(function: Function | str) -> Template | Callable[[Function], Template]:
    """Make a template of a function under the function's name, or as `@template("name")` under that one.

    ConfigError where another function of a user's has the name; the same one may be defined again.
    """
    if isinstance(function, str):
        name = function
        return lambda decorated: _register(Template(name, decorated))
    if not callable(function):
        raise TypeError(f"a template is a function f(cfg, *args), got {type(function).__name__}")
    return _register(Template(function.__name__, function))


def _register(made: Template) -> Template:
    known = _TEMPLATES.get(made.name)
    if known is not None and _origin(known) != _origin(made):
        if _is_shipped(made):
            return known  # a user's takes the place of the shipped one, whichever comes first
        if not _is_shipped(known):
            raise ConfigError(f"template '{made.name}' is defined already, in {'.'.join(_origin(known))}")
    _TEMPLATES[made.name] = made
    return made


def register_operator(made: TemplateOperator) -> None:
    """Add an operator that comes with the package."""
    _OPERATORS[made.name] = made


def operators() -> dict[str, TemplateOperator]:
    """The operators that templates come for, by name; those that ask for more than loops come first."""
    _load_shipped()
    return dict(sorted(_OPERATORS.items(), key=lambda item: (item[1].when is None, item[0])))


def _origin(made: Template) -> tuple[str, str]:
    return made.function.__module__, made.function.__qualname__


def find_template(name: str, target: Target) -> Template:
    """The template of a name, registered or shipped; `conv2d_nchw` also finds `conv2d_nchw_cuda`, by the target.

    ConfigError where there is none.
    """
    names = (name, *(f"{name}_{suffix}" for suffix in suffixes(target)))
    if not any(full in _TEMPLATES for full in names):
        _load_shipped()
    for full in names:
        if full in _TEMPLATES:
            return _TEMPLATES[full]
    known = ", ".join(sorted({*_TEMPLATES, *shipped()}))
    raise ConfigError(f"there is no template '{name}' for target '{target.kind}'; there are: {known or 'none'}")


def registered_in(module: str) -> dict[str, Template]:
    """The templates that a module has registered, by name."""
    return {name: made for name, made in _TEMPLATES.items() if made.function.__module__ == module}


def suffixes(target: Target) -> list[str]:
    """Return the suffixes that a template's name may have for a target, the most special first."""
    if not target.is_gpu:
        return ["cpu"]
    family = target.model.partition("-")[0]
    return [family, target.kind, "gpu"] if family != "generic" else [target.kind, "gpu"]


def shipped() -> list[str]:
    """The names of the templates that come with the package."""
    _load_shipped()
    return sorted(name for name, made in _TEMPLATES.items() if _is_shipped(made))


@cache
def _load_shipped() -> None:
    """Load the folder `templates`, each file of which registers what it has."""
    folder = Path(__file__).parents[2] / _FOLDER
    for file in sorted(folder.glob("[!_]*.py")):
        importlib.import_module(f"...{_FOLDER}.{file.stem}", __package__)


def _is_shipped(made: Template) -> bool:
    return made.function.__module__.startswith(importlib.util.resolve_name(f"...{_FOLDER}.", __package__))
