"""Flat and hierarchical algorithms on nodes of several processes: which kind a source chooses, and at what cost.

A flat algorithm treats all processes in the same way. A hierarchical algorithm treats the processes of one node
differently from processes of other nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.models.switch_points import picked_seconds
from collwise.simulator.execution.launchers import parameter_variables
from collwise.simulator.execution.targets import ExecutionTarget, ModifiedTarget
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.hierarchy.space import SIMULATED, WITHIN
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.times import State, Times

POINT = ("target", "collective", "procs", "message_bytes")
"""The columns that identify a point. The target is the target of the measurement."""
FLAT, HIERARCHICAL = "flat", "hierarchical"
KINDS = (FLAT, HIERARCHICAL)
COMPONENTS: Mapping[str, Mapping[str, str]] = {"tuned": {"coll": "^han"}, "han": {"coll_han_priority": "100"}}
"""Open MPI's components that are compared on nodes of several processes, each with the parameters that choose it."""


def with_component(target: ExecutionTarget, name: str) -> ExecutionTarget:
    """The target with one of COMPONENTS for MPI's own collectives."""
    return ModifiedTarget(target, {"component": name}, environment=parameter_variables(COMPONENTS[name]))


def can_be_simulated(collective: str, choice: Choice) -> bool:
    """True if engines can simulate the choice. They simulate neither shared memory nor MPI's own collectives."""
    entry = Catalogue.load().algorithm(collective, choice.algorithm)
    return not entry.real_mpi_only and not (entry.count_parameter == "within" and choice.parameter not in SIMULATED)


def label(choice: Choice) -> str:
    """The algorithm's name, and how processes of a node communicate if not by messages: 'tasks_chain, shared memory'.

    The text is empty for the MPI library's own collective.
    """
    if choice == LIBRARY_DECIDES:
        return ""
    return choice.algorithm + (f", {WITHIN[choice.parameter]}" if choice.parameter else "")


def point(right: Times, procs: int, message_bytes: int) -> dict[str, Any]:
    """A point of measured times as plain data, with the place where they were measured."""
    return dict(zip(POINT, (right.platform, right.collective, procs, message_bytes), strict=True))


def kind_of(collective: str, choice: Choice) -> str:
    """The kind of a choice, one of KINDS."""
    return KINDS[Catalogue.load().algorithm(collective, choice.algorithm).by_node]


def of_kind(times: Times, kind: str) -> Times:
    """The times of only the algorithms of one kind."""
    return times.where(np.array([kind_of(times.collective, choice) == kind for choice in times.choices])[:, None, None])


def best_of_kinds(times: Times) -> Times:
    """The times of the best algorithm of each kind, as two choices with the names of the kinds."""
    alone = [of_kind(times, kind) for kind in KINDS]
    seconds = np.stack([item.best_seconds.values for item in alone])
    widths = np.stack([picked_seconds(item.half_widths.values, item.best.values) for item in alone])
    state = np.where(np.isfinite(seconds), State.TIMED, State.NOT_ASKED).astype(np.int8)
    values = {"seconds": seconds, "half_width_seconds": widths, "state": state}
    grid = replace(times.grid, choices=tuple(map(Choice, KINDS)))
    return Times.of_values(grid, values, times.platform, times.source, times.maker)


def choices_of_kind(every: AllScores, source: str) -> pd.DataFrame:
    """The cost of each choice between the two kinds. Each point at which the source predicts both kinds has a row.

    `chosen` is the kind of the algorithm that the source predicts to be the fastest, and `best` is the kind of the
    fastest measured algorithm. `slowdown` compares the measured times of the fastest algorithm of each kind, so that it
    does not depend on which algorithm of a kind the source picks. `certain` is true if the slowdown exceeds the
    intervals of these times.
    """
    found = []
    for scores in every.values():
        right = scores.right.of_grid(replace(scores.right.grid, besides=()))
        predicted = scores.times[source].of_grid(right.grid).known_to(right)
        found.append(Scores(best_of_kinds(right), {source: best_of_kinds(predicted)}).pick_rows())
    rows = pd.concat(found).rename(columns={"platform": "target", "pick": "chosen"})
    rows = rows[rows.candidates == len(KINDS)]
    named = {name: [choice.algorithm for choice in rows[name]] for name in ("chosen", "best")}
    return rows.assign(**named)[[*POINT, "chosen", "best", "slowdown", "certain"]]


def component_table(every: AllScores, components: Mapping[str, Mapping[str, Times]], source: str) -> pd.DataFrame:
    """The measured seconds of the best algorithm of each kind, of the source's pick, and of components, by point.

    `components` has the times of MPI's own collectives by component and collective. The algorithms' names are in
    columns such as 'flat algorithm'. Points that lack one of the algorithms are left out.
    """
    found = []
    columns = [f"{name}{part}" for name in (*KINDS, "pick") for part in (" algorithm", "")]
    for collective, scores in every.items():
        right = scores.right.of_grid(replace(scores.right.grid, besides=()))
        alone = {kind: of_kind(right, kind) for kind in KINDS}
        for (i, j), at in zip(np.ndindex(*right.best.shape), right.grid.points, strict=True):
            choices = {kind: item.best_choice(*at) for kind, item in alone.items()}
            choices["pick"] = scores.pick(source, i, j).choice
            row = point(right, *at)
            row |= {name: float(times[collective].best_seconds.values[i, j]) for name, times in components.items()}
            for name, choice in choices.items():
                if choice is not None:
                    row |= {f"{name} algorithm": label(choice), name: right.seconds_of(choice, *at)}
            if None not in choices.values():
                found.append(row)
    return pd.DataFrame(found, columns=[*POINT, *components, *columns])


def ways_within(every: AllScores) -> pd.DataFrame:
    """The measured time of each algorithm that shares or reads memory in nodes, divided by its time with messages."""
    columns = ["collective", "algorithm", "way", "message_bytes", "ratio"]
    found = []
    for collective, scores in every.items():
        right = scores.right
        for procs, size in right.grid.points:
            for choice in right.choices:
                by_messages = right.seconds_of(replace(choice, parameter=0), procs, size)
                ratio = right.seconds_of(choice, procs, size) / by_messages
                if choice.parameter and not math.isnan(ratio):
                    found.append((collective, choice.algorithm, WITHIN[choice.parameter], size, ratio))
    return pd.DataFrame(found, columns=columns)
