"""Coefficients of critical paths against those of the formulas that were derived from the same code by hand."""

from __future__ import annotations

import numpy as np
import pytest
from path_against_formulas import (
    REASONS,
    SEGMENTS,
    SHAPES,
    Shape,
    algorithms_with_both,
    counted,
)

EAGER, RENDEZVOUS, EAGER_SEGMENTS, RENDEZVOUS_SEGMENTS = SHAPES
PROCS = range(2, 34)
LATER = SEGMENTS - 1
SAME = (0, 0)
# By how many latencies and multiples of m the path has more than the formula, from the least to the most over PROCS.
# REASONS says why.
DIFFERENCES: dict[tuple[str, str], dict[Shape, tuple[tuple[float, float], tuple[float, float]]]] = {
    ("bcast", "split_binary"): {
        EAGER: (SAME, (0, 2)),
        RENDEZVOUS: ((0, 4), (-0.5, 0)),
        EAGER_SEGMENTS: ((1 - SEGMENTS / 2, 0), (0, 0.25)),
        RENDEZVOUS_SEGMENTS: ((0, 4), (-1 / SEGMENTS, 0)),
    },
    ("bcast", "scatter_allgather"): {EAGER: ((0, 1), (0, 1.546)), RENDEZVOUS: ((0, 3), (-0.223, 0.001))},
    ("bcast", "scatter_ring_allgather"): {EAGER: (SAME, (0, 1.466))},
    ("bcast", "two_tree"): {
        EAGER: ((-4, 0), (0, 2.5)),
        RENDEZVOUS: ((-1, 0), (-0.5, 0)),
        EAGER_SEGMENTS: ((-1, 0), (-1 / SEGMENTS, 0)),
        RENDEZVOUS_SEGMENTS: ((-1, 0), (-1 / SEGMENTS, 0)),
    },
    ("gather", "linear_sync"): {EAGER: ((1, 32), (0.5, 16)), RENDEZVOUS: ((1, 32), SAME)},
    ("reduce", "chain"): {
        EAGER: ((-2, 0), (-1, 0)),
        RENDEZVOUS: ((-2, 0), (-1, 0)),
        EAGER_SEGMENTS: ((-2 * SEGMENTS, 0), (-1 / SEGMENTS, 0)),
        RENDEZVOUS_SEGMENTS: ((-2 * SEGMENTS, 0), (-1 / SEGMENTS, 0)),
    },
    ("reduce", "binary"): {
        EAGER: ((-5, 0), (-2, 0)),
        RENDEZVOUS: ((-5, 0), (-2, 0)),
        EAGER_SEGMENTS: ((-20, 0), (-2 / SEGMENTS, 0)),
        RENDEZVOUS_SEGMENTS: ((-17, 0), (-2 / SEGMENTS, 1.8125)),
    },
    ("reduce", "binomial"): {
        EAGER: ((-1, 0), SAME),
        RENDEZVOUS: ((-1, 0), SAME),
        EAGER_SEGMENTS: ((-46, 0), (0, 1 / SEGMENTS)),
        RENDEZVOUS_SEGMENTS: ((-46, 0), (0, 1 / SEGMENTS)),
    },
}


@pytest.mark.parametrize(
    ("collective", "algorithm", "shape"),
    [pytest.param(*one, id=f"{one[0]} {one[1]} {one[2]}") for one in algorithms_with_both()],
)
def test_a_path_has_the_coefficients_of_the_formula_or_differs_by_what_is_known(
    collective: str, algorithm: str, shape: Shape
) -> None:
    found = counted(collective, algorithm, shape, PROCS)
    expected = DIFFERENCES.get((collective, algorithm), {}).get(shape, (SAME, SAME))
    for differences, known in zip(zip(*(one.differences for one in found), strict=True), expected, strict=True):
        assert (min(differences), max(differences)) == pytest.approx(known, abs=2e-3)
    assert all(one.equal for one in found) == (expected == (SAME, SAME))


def test_every_difference_has_a_reason() -> None:
    assert set(REASONS) == set(DIFFERENCES)


def test_gather_linear_sync_asks_for_each_block() -> None:
    """A request more for each of the P - 1 blocks, whatever the protocol."""
    for shape in (EAGER, RENDEZVOUS):
        for one in counted("gather", "linear_sync", shape, PROCS):
            assert one.differences[0] == one.procs - 1


def test_where_messages_leave_when_they_are_sent_later_segments_add_no_latency() -> None:
    for algorithm in ("chain", "k_chain", "binary", "binomial", "knomial"):
        for one in counted("bcast", algorithm, EAGER_SEGMENTS, PROCS, receives_first=False):
            assert one.differences == pytest.approx((-LATER, 0), abs=1e-9)


def test_a_chain_has_the_coefficients_of_formula_8() -> None:
    found = counted("bcast", "chain", EAGER_SEGMENTS, PROCS)
    assert [one.path_latencies for one in found] == [p + SEGMENTS - 2 for p in PROCS]
    assert np.allclose([one.path_messages for one in found], [(p + SEGMENTS - 2) / SEGMENTS for p in PROCS])
