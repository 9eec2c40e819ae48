"""Nodes that are played one after another: their times against those of a play of all nodes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from collwise.algorithms.catalogue import Algorithm
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.tables import ACKNOWLEDGED, EAGER
from tests.simulator.schedule.test_recording import ALGORITHMS, case_of
from tests.simulator.schedule.test_symmetry import network

TREES = [
    one
    for one in ALGORITHMS
    if one.collective in ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv", "scan", "exscan")
]
"""Most of these send messages in one direction."""


@settings(max_examples=300)
@given(
    st.sampled_from(TREES),
    st.integers(2, 48),
    st.integers(1, 4),
    st.integers(1, 50),
    st.integers(0, 47),
    st.sampled_from((0.0, 0.05)),
    st.booleans(),
    st.sampled_from((EAGER, ACKNOWLEDGED)),
)
def test_times_are_those_of_a_play_of_all_nodes_together(
    algorithm: Algorithm,
    procs: int,
    per_node: int,
    elements: int,
    root: int,
    share: float,
    is_apart: bool,
    protocol: int,
) -> None:
    assume(not algorithm.objection(procs))
    schedule = Schedule(case_of(algorithm, procs, 8 * procs * elements, root % procs))
    tables = network(schedule, per_node, over_ports=True, protocol=protocol, apart=is_apart)
    tables = replace(tables, acknowledgement_share=share)
    alone = schedule.play(tables)
    # What logs its comparisons plays all nodes together.
    together, _ = schedule.play_compared(tables)
    assert alone.ends == pytest.approx(together.ends, rel=1e-12)
    assert alone.root_seconds == pytest.approx(together.root_seconds, rel=1e-12)
    within = schedule.play_within(tables, alone.seconds)
    assert within is not None
    assert within.seconds == alone.seconds
    less = schedule.play_within(tables, alone.seconds / 2)
    assert less is None or np.array_equal(less.ends, alone.ends)
