"""Flat and hierarchical algorithms on nodes of several processes: which kind a source chooses, and at what cost.

A flat algorithm treats all processes alike, a hierarchical one those of a node differently from others.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.mpirun import parameter_variables
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.simulator.timing import Case
from collwise.validation.hierarchy.space import SIMULATED, WITHIN
from collwise.validation.three_way.table import LABEL_SEPARATOR, POINT, distinguishable, fastest, predicted_by
from collwise.validation.times.slowdown import slowdown

FLAT, HIERARCHICAL = "flat", "hierarchical"
KINDS = (FLAT, HIERARCHICAL)
_KIND_AT_POINT = [*POINT, "kind"]
COMPONENTS: Mapping[str, Mapping[str, str]] = {"tuned": {"coll": "^han"}, "han": {"coll_han_priority": "100"}}
"""Open MPI's components that are compared on nodes of several processes, with the parameters that choose each."""


def with_component(target: ExecutionTarget, name: str) -> ExecutionTarget:
    """The target with one of COMPONENTS for MPI's own collectives."""
    return ModifiedTarget(target, {"component": name}, environment=parameter_variables(COMPONENTS[name]))


def can_be_simulated(case: Case) -> bool:
    """Whether engines can simulate it: neither memory that processes share nor MPI's own collectives within ours."""
    entry = Catalogue.load().algorithm(case.collective, case.algorithm)
    return not entry.real_mpi_only and not (entry.count_parameter == "within" and case.fanout not in SIMULATED)


def with_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of our algorithms with a column `kind`, one of KINDS."""
    catalogue = Catalogue.load()

    def kind_of(collective: str, label: str) -> str:
        return KINDS[catalogue.algorithm(collective, label.partition(LABEL_SEPARATOR)[0]).by_node]

    return rows.assign(kind=[kind_of(*key) for key in zip(rows.collective, rows.algorithm, strict=True)])


def choices_of_kind(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """What each choice between the two kinds costs: a row for each point at which the source predicts both.

    The source chooses the kind of its fastest algorithm, `chosen`. `best` is the kind of the fastest measured one.
    `slowdown` compares the measured times of the fastest algorithm of either kind, so that it does not depend on which
    algorithm of a kind the source picks. It is `certain` if it exceeds their intervals.
    """
    rows = with_kind(rows)
    fastest_measured = fastest(rows, "seconds", _KIND_AT_POINT).set_index(_KIND_AT_POINT)
    predicted = fastest(predicted_by(source, rows), source, _KIND_AT_POINT)
    found = []
    for point, both in predicted.groupby(POINT, sort=False):
        if set(both.kind) != set(KINDS):
            continue
        chosen = both.loc[both[source].idxmin()].kind
        measured = {kind: fastest_measured.loc[(*point, kind)] for kind in KINDS}
        best = min(KINDS, key=lambda kind: measured[kind].seconds)
        pair = measured[chosen], measured[best]
        cost = float(slowdown(*(one.seconds for one in pair)))
        found.append((*point, chosen, best, cost, bool(cost > 0 and distinguishable(*pair))))
    return pd.DataFrame(found, columns=[*POINT, "chosen", "best", "slowdown", "certain"])


def component_table(rows: pd.DataFrame, components: pd.DataFrame, source: str) -> pd.DataFrame:
    """The measured seconds at each point of the best algorithm of each kind, of the source's pick, and of components.

    The MPI library's components are the columns of `components` besides those of a point. The algorithms' names are in
    columns such as 'flat algorithm'.
    """
    rows = with_kind(rows)
    table = components
    for kind, mine in fastest(rows, "seconds", _KIND_AT_POINT).groupby("kind", sort=False):
        best = mine[[*POINT, "algorithm", "seconds"]]
        table = table.merge(best.rename(columns={"algorithm": f"{kind} algorithm", "seconds": kind}), on=POINT)
    picks = fastest(predicted_by(source, rows), source)
    picked = picks[[*POINT, "algorithm", "seconds"]].rename(columns={"algorithm": "pick algorithm", "seconds": "pick"})
    return table.merge(picked, on=POINT)


def ways_within(rows: pd.DataFrame) -> pd.DataFrame:
    """The ratio of the measured time of each algorithm whose processes share or read memory to that with messages."""
    parts = rows.algorithm.str.partition(LABEL_SEPARATOR)
    named = rows.assign(algorithm=parts[0], way=parts[2])
    by_messages = named[named.way == ""][[*POINT, "algorithm", "seconds"]]
    others = named[named.way.isin(WITHIN[1:])]
    others = others.merge(by_messages, on=[*POINT, "algorithm"], suffixes=("", "_by_messages"))
    others = others.assign(ratio=others.seconds / others.seconds_by_messages)
    return others[["collective", "algorithm", "way", "message_bytes", "ratio"]]
