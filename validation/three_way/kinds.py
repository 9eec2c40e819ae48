"""Flat and hierarchical algorithms on nodes of several processes: which kind a source chooses, and at what cost.

A flat algorithm treats all processes alike, a hierarchical one those of a node differently from others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.mpirun import parameter_variables
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.validation.compare.scores import AllScores, Scores, distinguishable
from collwise.validation.hierarchy.space import SIMULATED, WITHIN
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.slowdown import slowdown
from collwise.validation.times.times import Times

POINT = ("target", "collective", "procs", "message_bytes")
"""The names of what a point is; the target is that of the measurement."""
FLAT, HIERARCHICAL = "flat", "hierarchical"
KINDS = (FLAT, HIERARCHICAL)
COMPONENTS: Mapping[str, Mapping[str, str]] = {"tuned": {"coll": "^han"}, "han": {"coll_han_priority": "100"}}
"""Open MPI's components that are compared on nodes of several processes, with the parameters that choose each."""


def with_component(target: ExecutionTarget, name: str) -> ExecutionTarget:
    """The target with one of COMPONENTS for MPI's own collectives."""
    return ModifiedTarget(target, {"component": name}, environment=parameter_variables(COMPONENTS[name]))


def can_be_simulated(collective: str, choice: Choice) -> bool:
    """Whether engines can simulate it: neither memory that processes share nor MPI's own collectives within ours."""
    entry = Catalogue.load().algorithm(collective, choice.algorithm)
    return not entry.real_mpi_only and not (entry.count_parameter == "within" and choice.fanout not in SIMULATED)


def label(choice: Choice) -> str:
    """The algorithm's name, with the way within nodes if that is not messages: 'tasks_chain, shared memory'.

    Empty for the MPI library's own collective.
    """
    if choice == LIBRARY_DECIDES:
        return ""
    return choice.algorithm + (f", {WITHIN[choice.fanout]}" if choice.fanout else "")


def point(right: Times, procs: int, message_bytes: int) -> dict[str, Any]:
    """A point of measured times as plain data, with the place where they were measured."""
    return dict(zip(POINT, (right.platform, right.collective, procs, message_bytes), strict=True))


def kind_of(collective: str, choice: Choice) -> str:
    """The kind of a choice, one of KINDS."""
    return KINDS[Catalogue.load().algorithm(collective, choice.algorithm).by_node]


def by_kind(every: AllScores) -> list[tuple[Scores, dict[str, Scores]]]:
    """The scores of collectives that have algorithms of both kinds, and those among each kind alone."""
    found = []
    for scores in every.values():
        kinds = {choice: kind_of(scores.right.collective, choice) for choice in scores.right.choices}
        if len({*kinds.values()}) == len(KINDS):
            of_kind = {kind: {choice for choice in kinds if kinds[choice] == kind} for kind in KINDS}
            alone = {kind: scores.only(choices.__contains__) for kind, choices in of_kind.items()}
            found.append((scores, alone))
    return found


def choices_of_kind(every: AllScores, source: str) -> pd.DataFrame:
    """What each choice between the two kinds costs: a row for each point at which the source predicts both.

    The source chooses the kind of its fastest algorithm, `chosen`. `best` is the kind of the fastest measured one.
    `slowdown` compares the measured times of the fastest algorithm of either kind, so that it does not depend on which
    algorithm of a kind the source picks. It is `certain` if it exceeds their intervals.
    """
    found = []
    for scores, kinds in by_kind(every):
        right = scores.right
        predicted = {kind: mine.times[source].at(mine.picks[source]).values for kind, mine in kinds.items()}
        for i, j in np.argwhere(np.isfinite(np.sum([*predicted.values()], axis=0))).tolist():
            procs, size = right.procs[i], right.message_bytes[j]
            measured = {}
            for kind, mine in kinds.items():
                fastest = mine.pick(None, i, j)
                assert fastest.choice is not None
                measured[kind] = fastest.seconds, right.half_width_of(fastest.choice, procs, size)
            chosen = min(KINDS, key=lambda kind: float(predicted[kind][i, j]))
            best = min(KINDS, key=lambda kind: measured[kind][0])
            cost = float(slowdown(measured[chosen][0], measured[best][0]))
            certain = bool(cost > 0 and distinguishable(*measured[chosen], *measured[best]))
            found.append((*point(right, procs, size).values(), chosen, best, cost, certain))
    return pd.DataFrame(found, columns=[*POINT, "chosen", "best", "slowdown", "certain"])


def component_table(every: AllScores, components: Mapping[str, Mapping[str, Times]], source: str) -> pd.DataFrame:
    """The measured seconds at each point of the best algorithm of each kind, of the source's pick, and of components.

    `components` are the times of MPI's own collectives by name and collective. The algorithms' names are in columns
    such as 'flat algorithm'. Points that lack one of the algorithms are left out.
    """
    found = []
    columns = [f"{name}{part}" for name in (*KINDS, "pick") for part in (" algorithm", "")]
    for scores, kinds in by_kind(every):
        for i, j in np.ndindex(*scores.right.best.shape):
            picked = {kind: mine.pick(None, i, j) for kind, mine in kinds.items()} | {"pick": scores.pick(source, i, j)}
            row = point(scores.right, scores.right.procs[i], scores.right.message_bytes[j])
            row |= {
                name: float(times[scores.right.collective].best_seconds.values[i, j])
                for name, times in components.items()
            }
            for name, one in picked.items():
                row |= {f"{name} algorithm": "" if one.choice is None else label(one.choice), name: one.seconds}
            if not any(math.isnan(one.seconds) for one in picked.values()):
                found.append(row)
    return pd.DataFrame(found, columns=[*POINT, *components, *columns])


def ways_within(every: AllScores) -> pd.DataFrame:
    """The ratio of the measured time of each algorithm whose processes share or read memory to that with messages."""
    columns = ["collective", "algorithm", "way", "message_bytes", "ratio"]
    found = []
    for collective, scores in every.items():
        right = scores.right
        for procs, size in right.grid.points:
            for choice in right.choices:
                by_messages = right.seconds_of(replace(choice, fanout=0), procs, size)
                ratio = right.seconds_of(choice, procs, size) / by_messages
                if choice.fanout and not math.isnan(ratio):
                    found.append((collective, choice.algorithm, WITHIN[choice.fanout], size, ratio))
    return pd.DataFrame(found, columns=columns)
