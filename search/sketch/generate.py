"""From a workload to its sketches: every rule in turn on every draft, and what came out made ready for a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import partial
from itertools import count

from xdsl.dialects.builtin import ModuleOp

from ...dialects.caller import warn_caller
from ...dialects.target import Target
from ...passes.collector import collector_paused
from ...passes.parametric.replay import ScheduledNests
from ...passes.primitive import ScheduleError
from ...passes.schedule.tensorize import Tensorize
from ..estimates.nest_model import nest_seconds
from ..features.of_sketch import SketchFeatures
from .draft import Draft
from .rule import SketchRule, SketchRuleWarning, sketch_rules
from .sketch import RefusedSketchError, Sketch


def generate_sketches(
    module: ModuleOp, target: Target, rules: Sequence[SketchRule] | None = None, may_plan: bool = False
) -> list[Sketch]:
    """The sketches of a te-level module for a target; the first one's defaults are the default schedule.

    `rules` run in the order given, those not for the target left out; without, all there are. Sketches of one name are
    numbered from the second on. With `may_plan` steps of some are done when their template is asked for, and may be
    refused then (RefusedSketchError); all are to be made without it then, as a sketch with such steps is left out so.

    A rule whose steps are refused for a draft leaves that one as it was, with a `SketchRuleWarning`. ValueError where a
    rule leaves nothing to go on with, TypeError where what it returns is no drafts.
    """
    wanted = sketch_rules(target) if rules is None else [rule for rule in rules if rule.when(target)]
    with collector_paused():
        drafts = _drafts(module, target, wanted, may_plan)
    distinct = {draft.template if draft.rest is None else id(draft): draft for draft in drafts}
    named = zip(distinct.values(), _names(distinct.values()), strict=True)
    nests = ScheduledNests(module, target)
    sketches = [_finished(draft, name, module, target, nests) for draft, name in named]
    return sorted(sketches, key=lambda sketch: sketch.default_seconds) if len(sketches) > 1 else sketches


def _drafts(
    module: ModuleOp,
    target: Target,
    rules: Sequence[SketchRule],
    may_plan: bool,
    refused: Set[tuple[int, int]] = frozenset(),
) -> list[Draft]:
    """Return the drafts; `refused` are the numbers of rules and of the drafts that they are not tried on.

    A refused step leaves a draft half changed, so that all starts anew: a copy of each draft for each rule would take a
    third of the time for softmax, for what hardly ever comes.
    """
    drafts = [Draft.of(module, may_plan)]
    for number, rule in enumerate(rules):
        grown: list[Draft] = []
        for place, draft in enumerate(drafts):
            if (number, place) in refused:
                grown.append(draft)
                continue
            if rule.of_unsettled and draft.is_planned:
                grown.append(draft)
                continue
            if not draft.finish():
                return _drafts(module, target, rules, False)
            try:
                grown += _grown(rule, draft, target)
            except ScheduleError as error:
                line = str(error).splitlines()[0]
                warn_caller(
                    f"sketch rule '{rule.name}' is left out: it raised {type(error).__name__}: {line}",
                    SketchRuleWarning,
                )
                return _drafts(module, target, rules, may_plan, refused | {(number, place)})
        drafts = grown
        if not drafts:
            raise ValueError(f"sketch rule '{rule.name}' left no draft; return the one given where it has no use")
    return drafts


def _grown(rule: SketchRule, draft: Draft, target: Target) -> list[Draft]:
    """The drafts that a rule makes of one; TypeError for what are none."""
    found = rule.apply(draft, target)
    if not isinstance(found, Iterable):
        raise TypeError(
            f"sketch rule '{rule.name}' returned {'nothing' if found is None else type(found).__name__}: apply returns "
            "the drafts to go on with, [draft] where it has no use for one"
        )
    drafts = list(found)
    for other in drafts:
        if not isinstance(other, Draft):
            raise TypeError(f"sketch rule '{rule.name}' must return drafts, got {type(other).__name__} among them")
    return drafts


def _names(drafts: Iterable[Draft]) -> list[str]:
    """A name for each draft: its structures', with a number where an earlier one is called so."""
    names: list[str] = []
    for draft in drafts:
        name = "_".join(draft.names) or "plain"
        numbered = (f"{name}_{number}" for number in count(2))
        names.append(name if name not in names else next(n for n in numbered if n not in names))
    return names


def _finished(draft: Draft, name: str, module: ModuleOp, target: Target, nests: ScheduledNests) -> Sketch:
    draft.make_defaults_legal()
    prior = draft.estimate if draft.models else None
    estimate = nest_seconds if target.is_gpu and not draft.models else None
    written = partial(_written, draft, name)
    described = SketchFeatures(module, target, name, written, prior, estimate, nests)
    return Sketch(
        name=name,
        written=written,
        holes=tuple(draft.holes),
        derived=tuple(draft.derived),
        limits=tuple(draft.limits),
        describe=described,
        prior=described.prior,
        sure=0 < draft.sure == len(draft.models),
        unseen=draft.unseen > 0,
        tensorized=any(part.startswith(Tensorize.name) for part in draft.parts),
        formulas=draft.formulas,
        written_as_seen=partial(written, as_seen=True) if draft.seen or draft.rest is not None else None,
    )


def _written(draft: Draft, name: str, as_seen: bool = False) -> str:
    """The template of a sketch, or that with the steps that the cost model that ships has seen."""
    if not draft.finish():
        raise RefusedSketchError(name)
    return draft.seen_template if as_seen else draft.template
