"""Measures HAN's tasks, whole collectives and Open MPI's component han under real Open MPI, for the page luo2020.md.

    .venv/bin/python docs/han_on_a_bed.py    # writes studies/papers/luo2020/measured.toml, and all times: times.csv.gz

It measures on a test bed in this machine, for about 10 minutes, and needs the right to make network namespaces.
Finished experiments are in results/measured-han.sqlite: a command that was stopped resumes.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import median

from methods_on_a_bed import head
from models_against_measured import undisturbed

import collwise
from collwise import session
from collwise.common.errors import CollwiseError
from collwise.common.project import results_folder
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure_launches
from collwise.studies.papers import luo2020
from collwise.validation.hierarchy.space import PREFIX, label
from collwise.validation.testbed.bed import temporarily_up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import robust

SHAPE = Shape(nodes=4, ranks_per_node=2, bits_per_second=25e6)
PROCS, PER_NODE = SHAPE.nodes * SHAPE.ranks_per_node, SHAPE.ranks_per_node
COLLECTIVES, SIZES = ("bcast", "allreduce"), (6144, 24576, 98304, 393216)
HOW = Method(precision=Precision(3, 8, 0.95, 0.05), warmup=1, launches=3)
UNTUNED, HAN, HAN_TUNED = "untuned", "han", "han, tuned"
"""Ways to run MPI's own collectives: as installed, by component han, and by han with the rules of the search."""
LIBRARY = f"{PREFIX}library"
"""MPI's own non-blocking collectives between nodes: HAN's submodule Libnbc."""
RESULTS = Path(luo2020.__file__).with_name("measured.toml")


def own_seconds(bed: ExecutionTarget, parameters: Mapping[str, str], store: Store) -> dict[tuple[str, int], float]:
    """Seconds of MPI's own collectives with these MCA parameters, by collective and message size.

    They are nan where Open MPI ends with an error.
    """
    words = [word for name, value in parameters.items() for word in ("--mca", name, value)]
    facts = {"parameters": " ".join(words)} if words else {}
    target = bed.modified(facts, launcher_args=words)
    found = {}
    for name, size in product(COLLECTIVES, SIZES):
        case = case_of(name, LIBRARY_DECIDES, PROCS, size, PER_NODE)
        try:
            found[name, size] = robust([one for (one,) in measure_launches(target, [case], store, HOW)]).seconds
        except CollwiseError as problem:
            print(f"{name} of {size} bytes: {problem}", file=sys.stderr)
            found[name, size] = math.nan
    return found


def write_times(store: Path) -> None:
    """Writes every time of the store beside the results, as compressed CSV."""
    times = collwise.results(store).drop(columns=["details", "made_at"])
    times.to_csv(RESULTS.with_name("times.csv.gz"), index=False, compression={"method": "gzip", "mtime": 0})


def main() -> None:
    """Measures everything, and writes a table for each collective and size."""
    undisturbed()
    lines = head("Times under Open MPI 4.1.4 on a test bed of 4 nodes of 2 processes at 25 Mbit/s")
    with temporarily_up(SHAPE, "han") as up, session(results_folder() / "measured-han.sqlite") as context:
        bed = TestBed(up)
        found = collwise.search_tasks(
            COLLECTIVES, target=bed, sizes=SIZES, segments="4KiB,16KiB,64KiB",
            algorithms="chain,binary,binomial,library", within="point-to-point,shared-memory",
            searches="exhaustive,tasks", method=HOW, context=context,
        )  # fmt: skip
        rules = collwise.export(found.decisions, format_name="han", output=results_folder() / "measured-han.rules")
        parameters = dict(re.findall(r"#   (\w+) = (\S+)", rules.text))
        parameters["coll_han_dynamic_rules_filename"] = str(Path(rules.path or "").resolve())
        alone = {"coll_han_priority": "100"}
        ways = {UNTUNED: {}, HAN: alone, HAN_TUNED: parameters}
        own = {name: own_seconds(bed, one, context.store) for name, one in ways.items()}
        write_times(context.store.path)
    for collective, tuning in found.items():
        exhaustive, tasks = (tuning.found[name] for name in ("exhaustive", "tasks"))
        for one, whole in exhaustive.by_input.items():
            assumed = tasks.by_input[one]
            error = median(abs(assumed[choice] / whole[choice] - 1) for choice in whole)
            best, pick = exhaustive.best[one], tasks.best[one]
            library = min((choice for choice in whole if choice.algorithm == LIBRARY), key=whole.__getitem__)
            lines += ["", "[[measured]]", f'collective = "{collective}"', f"message_bytes = {one.message_bytes}"]
            lines += [f"configurations = {len(whole)}", f"model_error = {error:.3g}"]
            for what, choice in (("best", best), ("library", library), ("pick", pick)):
                lines += [f'{what} = "{label(choice)}"', f"{what}_seconds = {whole[choice]:.4g}"]
            lines += ["[measured.own_seconds]"]
            lines += [f'"{name}" = {seconds[collective, one.message_bytes]:.4g}' for name, seconds in own.items()]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
