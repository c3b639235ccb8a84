"""The tasks of a network for templates: its kernels that some template schedules, each with its number of uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dialects.caller import warn_caller
from ..dialects.classic_words import knows_classic_words
from ..dialects.target import Target
from ..search.measure.measurement import headline
from ..search.task import SearchTask
from ..search.template.epilogues import anchor_hash
from ..search.template.knobs.knob import ConfigError
from ..search.template.operator import only_reduction
from ..search.template.registry import operators
from ..search.template.task import TemplateTask
from .network import Network
from .tasks import extract_tasks


class NoTemplateWarning(UserWarning):
    """Kernels of a network are left out of its template tasks."""


@knows_classic_words
def extract_template_tasks(
    net: Network,
    target: str | Target = "llvm",
    ops: Sequence[str] = (),
    templates: Mapping[str, str] | None = None,
    layout: str | None = None,
    winograd: bool | Sequence[int] = False,
    precision: str | None = None,
) -> tuple[list[TemplateTask], list[int]]:
    """Extract the kernels of a network that templates schedule, and how often each appears in it.

    A kernel is an operator with what is fused around it. Kernels of the same operator and shapes are one task, of the
    first of them: `lw.compile` takes the config on record for all of them, each with its own epilogue, unless one has a
    record of its own. Kernels without a template are named in a warning (NoTemplateWarning), with why.
    `ops` restricts it to some operators: `"conv2d"` stands for both of its layouts. `templates` names the template of
    an operator where it is not the shipped one; it is called with one argument, the text of a te-level module.
    `layout`, `winograd` and `precision` are as in `lw.extract_tasks`, which also has the kernels without a template.
    ConfigError for an operator not known.
    """
    named = dict(templates or {})
    for name in (*ops, *named):
        if not any(_stands_for(name, known) for known in operators()):
            raise ConfigError(f"templates know the operators {', '.join(sorted(operators()))}, got '{name}'")
    tasks: dict[str, TemplateTask] = {}
    task_of: dict[str, TemplateTask] = {}
    weights: dict[str, int] = {}
    left: list[str] = []
    found = list(zip(*extract_tasks(net, target, layout=layout, winograd=winograd, precision=precision), strict=True))
    for task, weight in found:
        operator = operator_of(task)
        if ops and not any(_stands_for(name, operator or "") for name in ops):
            continue
        if operator is None:
            left.append(f"{task.name} ({_why_no_operator(task)})")
            continue
        key = f"{operator} {anchor_hash(task.compute_dag)}"
        try:
            if key not in tasks:
                tasks[key] = templated(task, named.get(operator, operator))
                direct = task_of.get(task.instead_of or "")
                tasks[key].instead_of = task.instead_of if direct is None else direct.compute_dag.hash
            task_of[task.compute_dag.hash] = tasks[key]
            weights[key] = weights.get(key, 0) + weight
        except ConfigError as error:
            left.append(f"{task.name} ({headline(str(error))})")
    if left:
        warn_caller(
            f"network {net.name}: {len(left)} of {len(found)} kernels have no template: {', '.join(left)}",
            NoTemplateWarning,
        )
    return list(tasks.values()), list(weights.values())


def templated(task: SearchTask, template: str | None = None) -> TemplateTask:
    """The same workload with a template, that of its operator unless named; ConfigError where there is none."""
    name = template or operator_of(task)
    if name is None:
        raise ConfigError(f"{task.name} has no template ({_why_no_operator(task)})")
    return TemplateTask(name, (task.compute_dag.text,), task.target, workload_key=task.workload_key)


def _why_no_operator(task: SearchTask) -> str:
    if only_reduction(task.compute_dag.func.body.block.ops) is None:
        return "several reductions"
    return "none for its operator"


def operator_of(task: SearchTask) -> str | None:
    """The operator of a task's only reduction; None where templates know none such, or there are more reductions."""
    reduction = only_reduction(task.compute_dag.func.body.block.ops)
    if reduction is None:
        return None
    return next((name for name, known in operators().items() if known.is_of(reduction)), None)


def _stands_for(name: str, operator: str) -> bool:
    """`conv2d` for `conv2d_nchw`, not for `depthwise_conv2d_nchw`."""
    return operator == name or operator.startswith(f"{name}_n")
