"""Rounds of experiments that run side by side on disjoint processes: nearly as few as possible, found quickly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.common.experiments import Experiment


def plan_rounds(experiments: Sequence[Experiment], in_parallel: bool) -> list[list[Experiment]]:
    """The experiments by rounds; one per round unless `in_parallel`.

    In a round all are of one kind and about one size, so that none waits long for another.
    """
    if not in_parallel:
        return [[experiment] for experiment in experiments]
    alike: dict[object, list[Experiment]] = {}
    for one in experiments:
        size = (one.message_bytes + one.reply_bytes).bit_length()
        alike.setdefault((one.kind, one.count, one.delay_seconds, size), []).append(one)
    return [made for group in alike.values() for made in _pack(group)]


def _pack(experiments: list[Experiment]) -> list[list[Experiment]]:
    """Fills round after round, always with the experiment whose processes have most left to do.

    Among equals the sum of ranks modulo P decides: pairs of one sum are disjoint, so that all pairs take P rounds or
    P - 1.
    """
    procs = 1 + max(rank for one in experiments for rank in one.processes)
    experiments = sorted(experiments, key=lambda one: sum(one.processes) % procs)
    takes = np.zeros((len(experiments), procs), dtype=bool)
    for number, one in enumerate(experiments):
        takes[number, list(one.processes)] = True
    left = np.ones(len(experiments), dtype=bool)
    rounds: list[list[Experiment]] = []
    while left.any():
        busiest = takes @ takes[left].sum(axis=0)
        free = left.copy()
        rounds.append([])
        while free.any():
            chosen = int(np.argmax(np.where(free, busiest, -1)))
            rounds[-1].append(experiments[chosen])
            left[chosen] = False
            free &= ~takes[:, takes[chosen]].any(axis=1)
    return rounds
