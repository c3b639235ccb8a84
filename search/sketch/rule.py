"""Sketch rules: what a rule is, and those there are: found by file name in `rules/`, registered, or installed."""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

from ...dialects.plugins import SKETCH_RULES, PluginError, leave_out, load_plugin, plugins, shown_plugin
from ...dialects.target import Target
from .draft import Draft
from .foreign_rules import registered_rules

_FOLDER = "rules"
_GPU_RULES = "gpu_"
"""Begins the names of files of rules for GPUs: for CPUs they are not loaded."""


class SketchRuleWarning(UserWarning):
    """A step of a sketch rule is refused for a workload: its sketches are left out, those of other rules are not."""


class SketchRule(ABC):
    """One way to schedule part of a computation.

    Rules run one after the other, by `order`. Each gets every draft that the one before gave, schedules in it what it
    knows how to, and returns the drafts to go on with: the same one, or several, where there is a choice.

    The rules that come with loopwright keep to: 50 rewrite whole computations, 100 inline, 300 tile reductions with
    data reuse, 500 what is left of reductions, 700 blocks without a reduction.
    """

    order: ClassVar[int] = 200
    of_unsettled: ClassVar[bool] = False
    """True for a rule that schedules blocks that no rule has settled, and leaves all others as they are."""

    @property
    def name(self) -> str:
        """The class's name as a file would have it: `MultiLevelTiling` -> `multi_level_tiling`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def when(self, target: Target) -> bool:
        """True where the rule is for this kind of target."""
        return True

    @abstractmethod
    def apply(self, draft: Draft, target: Target) -> Iterable[Draft]:
        """The drafts to go on with instead of `draft`, which may be changed and returned; none gives this way up.

        Blocks that need no further rule go into `settled`, structures that were chosen into `names`, and what is
        known of their cost into `models`.
        """

    def __repr__(self) -> str:
        return f"<sketch rule {self.name}, order {self.order}>"


def register_sketch_rule(rule: SketchRule | type[SketchRule]) -> SketchRule | type[SketchRule]:
    """Add a rule, or a class of one, to those of every task made from now on; also a decorator of the class.

    A rule of a name that is registered already takes its place. TypeError for what is no rule, ValueError for the name
    of a rule that comes with loopwright: leave that out of `SearchTask(..., rules=...)` instead.
    """
    made = _instance(rule, "register_sketch_rule")
    if made.name in rule_stems():
        raise ValueError(
            f"sketch rule '{made.name}' comes with loopwright; give yours another name, and leave that one out with "
            f"SearchTask(..., rules=[r for r in lw.sketch_rules() if r.name != '{made.name}'])"
        )
    registered_rules()[made.name] = made
    return rule


def sketch_rules(target: Target | None = None) -> list[SketchRule]:
    """The rules there are, in the order they run in; with a target those for it."""
    if target is not None and not isinstance(target, Target):
        raise TypeError(
            f"sketch_rules takes a Target, as lw.resolve_target({target!r}) gives, got {type(target).__name__}"
        )
    found = {rule.name: rule for rule in (*_own(target), *_installed(), *registered_rules().values())}
    rules = sorted(found.values(), key=lambda rule: (rule.order, rule.name))
    return rules if target is None else [rule for rule in rules if rule.when(target)]


def checked_rules(rules: Sequence[SketchRule | type[SketchRule]]) -> list[SketchRule]:
    """Rules that somebody gives, classes among them instantiated, in their order; TypeError for what is no rule."""
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        raise TypeError(f"rules are a list of sketch rules, got {rules!r:.40}")
    return [_instance(rule, "rules") for rule in rules]


def rule_stems() -> list[str]:
    """The names of the modules in `rules/` that hold a rule; those with a leading underscore do not."""
    folder = Path(__file__).parents[1] / _FOLDER
    return sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))


def _own(target: Target | None) -> list[SketchRule]:
    """The rules that come with loopwright; with a target those that may be for it."""
    rules = []
    for stem in rule_stems():
        if target is not None and not target.is_gpu and stem.startswith(_GPU_RULES):
            continue
        module = importlib.import_module(f"..{_FOLDER}.{stem}", __package__)
        rules.append(_instance(getattr(module, "".join(word.capitalize() for word in stem.split("_"))), stem))
    return rules


def _installed() -> list[SketchRule]:
    """The rules of other packages; one that is broken is left out with a warning."""
    rules = []
    for point in plugins(SKETCH_RULES).values():
        try:
            rules.append(_installed_rule(point))
        except PluginError as error:
            leave_out(error)
    return rules


def _installed_rule(point: EntryPoint) -> SketchRule:
    found = load_plugin(point)
    try:
        return _instance(found, shown_plugin(point))
    except TypeError as error:
        raise PluginError(str(error)) from None


def _instance(rule: object, where: str) -> SketchRule:
    made = rule() if isinstance(rule, type) and issubclass(rule, SketchRule) else rule
    if not isinstance(made, SketchRule):
        raise TypeError(f"{where}: a sketch rule must be a lw.SketchRule, got {type(made).__name__}")
    return made
