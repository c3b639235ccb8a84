"""The ways in which kernels of networks are computed untuned, by kind of computation, beside a table; with no device.

    python benchmarks/network_choices.py                            # what differs from the table: exit code 1 if any
    python benchmarks/network_choices.py --write                    # write the table anew
    python benchmarks/network_choices.py --keep before.jsonl        # of one version, and of another:
    python benchmarks/network_choices.py --beside before.jsonl      # how many tasks are scheduled otherwise

Networks are those of `lw.testing` and of `wild_models.py` (with torch), by name. A kind is what a task's largest
reduction computes (`search/structure/kinds.py`), its way the steps of the untuned schedule that make another program
of it; tiles, threads and slices of sums are `tiles`. So other tiles change no row, and a product that is taken for a
convolution does. A way that is not for a kind is an error whatever the table says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from tables import table_lines

import loopwright as lw
from loopwright.graph.network import Network
from loopwright.search.sketch.draft import Draft
from loopwright.search.structure.kinds import Kind, kind_of_program

TABLE = Path(__file__).parent / "results" / "network-choices-2026-11-28.md"
TARGETS = ("cuda model=h200", "llvm cores=1 vector_bytes=64 vector_registers=32 l2_bytes=1048576")
TESTED = ("resnet-18", "mobilenet_v2", "dcgan", "lstm", "transformer_decoder", "bert_encoder_layer")
WILD = ("hf_bert_base", "tv_vit_b_16", "tv_convnext_tiny", "tv_efficientnet_b0", "tv_resnet50")
"""Networks that are taken without names: of `lw.testing`, and of `wild_models.py` where torch is there."""
STEPS = {
    "lw-winograd": "winograd",
    "lw-col2im": "col2im",
    "lw-im2col": "im2col",
    "lw-collapse": "collapse",
    "lw-online-softmax": "online softmax",
    "lw-tensorize": "units",
}
"""Steps that make another program of a computation, and the names of their ways."""
FOR = {"winograd": {Kind.CONVOLUTION}, "im2col": {Kind.CONVOLUTION}, "col2im": {Kind.TRANSPOSED}}
"""Ways, and the kinds of computations that they are for; others are for any."""
HEAD = ("network", "target", "kind", "way", "kernels")


class Choice(TypedDict):
    """The choice for a kernel of a network."""

    network: str
    target: str
    task: str
    kind: str
    way: str
    schedule: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help="names of `lw.testing` and of `wild_models.py`")
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--write", action="store_true", help="write the table anew")
    parser.add_argument("--keep", type=Path, help="a file for the choices, a line of JSON each")
    parser.add_argument("--beside", type=Path, help="such a file, of another version")
    options = parser.parse_args()
    if options.write and (options.networks or tuple(options.targets) != TARGETS or not _has_torch()):
        parser.error(
            "the table is of all networks on its targets: --write takes neither names nor --targets, but torch"
        )
    if options.beside and not options.beside.is_file():
        parser.error(f"there is no file {options.beside}")
    found: list[Choice] = []
    for name in options.networks or _usual():
        net = _network(name)
        for target in options.targets:
            found += choices(name, net, target)
    if options.keep:
        options.keep.write_text("".join(json.dumps(each) + "\n" for each in found))
    if options.beside:
        print(_compared(found, [json.loads(line) for line in options.beside.read_text().splitlines()]))
    wrong = misplaced(found)
    if options.write and not wrong:
        TABLE.write_text(_page(found))
    listed = [each for each in found if each["target"] in TARGETS]
    differ = differences(rows(listed), _rows_of(TABLE.read_text()) if TABLE.exists() else [])
    print("\n".join([*wrong, *differ]) or "as in the table")
    sys.exit(1 if wrong or differ else 0)


def _usual() -> list[str]:
    """The networks that are taken without names."""
    return [*TESTED, *WILD] if _has_torch() else [*TESTED]


def _has_torch() -> bool:
    return find_spec("torch") is not None


def _network(name: str) -> Network:
    if name in lw.testing.NETWORKS:
        return lw.testing.network(name)
    import torch

    built = import_module("wild_models").built  # with packages that only whoever asks for these networks has
    return lw.from_exported(torch.export.export(*built(name, False)))


def choices(name: str, net: Network, target: str) -> Iterator[Choice]:
    """The kernels of a network with a reduction, each with its kind, its way, and its untuned schedule."""
    for task in lw.extract_tasks(net, target)[0]:
        kind, schedule = kind_of_program(Draft.of(task.module).module), task.default_schedule
        own, key = way_of(schedule), task.compute_dag.hash
        yield Choice(network=name, target=target, task=key, kind=kind.value, way=own, schedule=schedule)


def way_of(schedule: str) -> str:
    """The steps of a schedule that make another program of it; `tiles` for none."""
    found = set(re.findall(r"lw-[a-z0-9-]+", schedule))
    return ", ".join(name for step, name in STEPS.items() if step in found) or "tiles"


def misplaced(found: Iterable[Choice]) -> list[str]:
    """A sentence for each kernel that is computed in a way for another kind."""
    return [
        f"wrong: {each['network']} on {each['target']}: a {each['kind']} ({each['task']}) by {way}"
        for each in found
        for way in each["way"].split(", ")
        if way in FOR and Kind(each["kind"]) not in FOR[way]
    ]


def rows(found: Iterable[Choice]) -> list[str]:
    """The rows of a table: how many kernels of a network and a kind are computed in a way."""
    counted = Counter((e["network"], e["target"].partition(" ")[0], e["kind"], e["way"]) for e in found)
    return [f"| {' | '.join((*key, str(count)))} |" for key, count in sorted(counted.items())]


def differences(own: Sequence[str], others: Sequence[str]) -> list[str]:
    """The rows that are gone, and those that are new, of networks and targets that both have."""
    both = {_where(row) for row in own} & {_where(row) for row in others}
    gone, new = (
        [r for r in of if _where(r) in both and r not in beside] for of, beside in ((others, own), (own, others))
    )
    return [*(f"gone: {row}" for row in gone), *(f"new:  {row}" for row in new)]


def _where(row: str) -> tuple[str, ...]:
    return tuple(row.split(" | ")[:2])


def _rows_of(page: str) -> list[str]:
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [line for line in lines if line.count(" | ") == len(HEAD) - 1][1:]


def _compared(found: Sequence[Choice], others: Iterable[Choice]) -> str:
    """A sentence on how many kernels another version schedules otherwise, and of which networks."""
    known = {(each["network"], each["target"], each["task"]): each["schedule"] for each in others}
    both = [each for each in found if (each["network"], each["target"], each["task"]) in known]
    differ = Counter(e["network"] for e in both if known[e["network"], e["target"], e["task"]] != e["schedule"])
    return f"{len(both)} of {len(found)} kernels are there too, {differ.total()} scheduled otherwise {dict(differ)}"


def _page(found: Sequence[Choice]) -> str:
    lines = [
        "# Ways in which kernels of networks are computed untuned",
        "",
        "2026-11-28, no device. Written by `python benchmarks/network_choices.py --write`, which says what the words",
        "mean; without `--write` it says which rows a change makes others. Batch 1, fp32, networks' own sizes; targets",
        f"{' and '.join(f'`{target}`' for target in TARGETS)}.",
        "",
        *table_lines(f"| {' | '.join(HEAD)} |", rows(found)),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
