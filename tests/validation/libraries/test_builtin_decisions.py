"""Open MPI's decisions at their thresholds and between them, against the paper's listing and the sources."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.validation.libraries.openmpi_3 import decide, decide_allreduce, decide_as_listed
from collwise.validation.times.choice import Choice

LINES = ((1.6134e-6, 2.1102, 128), (2.3679e-6, 1.1787, 64), (3.2118e-6, 8.7936, 16))


def bcast(procs: int, message_bytes: int) -> Choice:
    """Listing 1 of Nuriyev & Lastovetsky 2021; of 3.1's sources also its segments, and what few processes do."""
    if message_bytes < 2048:
        return Choice("binomial")
    if message_bytes < 370728:
        return Choice("split_binary", 1024)
    fitting = [kib for slope, intercept, kib in LINES if procs < slope * message_bytes + intercept]
    if procs < 13 and 128 not in fitting:
        return Choice("split_binary", 8 * 1024)
    return Choice("chain", max(fitting, default=8) * 1024)


def gather(procs: int, block_bytes: int) -> Choice:
    if block_bytes > 6000:
        return Choice("linear_sync", 32768 if block_bytes > 92160 else 1024)
    return Choice("binomial" if procs > 60 or (procs > 10 and block_bytes < 1024) else "linear")


def allreduce(procs: int, message_bytes: int) -> Choice:
    """On floats, up to 4.0."""
    if message_bytes < 10000:
        return Choice("recursive_doubling")
    if message_bytes // 4 <= procs:
        return Choice("non_overlapping")
    return Choice("ring") if message_bytes <= procs * 2**20 else Choice("segmented_ring", 2**20)


PROCS = st.integers(1, 100) | st.integers(1, 5000) | st.sampled_from((10, 11, 12, 13, 60, 61))


@pytest.mark.parametrize(
    ("expected", "decided", "thresholds"),
    [
        (bcast, lambda procs, size: decide("bcast", procs, size), (2048, 370728)),
        (gather, lambda procs, size: decide("gather", procs, size), (1024, 6000, 92160)),
        (allreduce, decide_allreduce, (10000, 2**20)),
    ],
)
@given(data=st.data(), procs=PROCS)
def test_decisions_are_those_of_the_listing_and_the_sources(
    expected: Callable[[int, int], Choice],
    decided: Callable[[int, int], Choice],
    thresholds: tuple[int, ...],
    data: st.DataObject,
    procs: int,
) -> None:
    near = {size + by for size in (*thresholds, procs * 2**20, 4 * procs) for by in (-1, 0, 1, 4)}
    lines = {int((procs - intercept) / slope) + by for slope, intercept, _ in LINES for by in (0, 1)}
    for size in {*near, *(size for size in lines if size >= 0), data.draw(st.integers(0, 2**28))}:
        assert decided(procs, size) == expected(procs, size), size


@given(st.sampled_from(["bcast", "gather"]), st.integers(1, 10000), st.integers(0, 2**30))
def test_every_choice_is_in_the_catalogue_and_can_be_chosen(collective: str, procs: int, message_bytes: int) -> None:
    choice = decide(collective, procs, message_bytes)
    entry = Catalogue.load().algorithm(collective, choice.algorithm)
    assert entry.selectable
    assert entry.part_parameter or choice.segment_bytes == 0
    listed = decide_as_listed(collective, procs, message_bytes)
    assert listed == ("chain" if collective == "bcast" and message_bytes >= 370728 else choice.algorithm)


def test_other_collectives_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no fixed decision .* 'scan'; valid: bcast, gather"):
        decide("scan", 4, 8)
