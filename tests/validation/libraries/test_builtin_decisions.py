"""Open MPI's decisions exactly at their thresholds."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.validation.libraries.openmpi_3 import decide, decide_as_listed
from collwise.validation.times.choice import Choice


def listing_1(procs: int, message_bytes: int, count: int = 2) -> str:
    """Listing 1 of Nuriyev & Lastovetsky 2021, line by line."""
    if message_bytes < 2048 or count <= 1:
        return "binomial"
    if message_bytes < 370728:
        return "split_binary"
    if procs < 1.6134e-6 * message_bytes + 2.1102:
        return "chain"
    if procs < 2.3679e-6 * message_bytes + 1.1787:
        return "chain"
    if procs < 3.2118e-6 * message_bytes + 8.7936:
        return "chain"
    return "chain"


@pytest.mark.parametrize("procs", [2, 3, 12, 13, 60, 124, 5000])
def test_broadcast_thresholds(procs: int) -> None:
    algorithms = [decide_as_listed("bcast", procs, size) for size in (0, 1, 2047, 2048, 370727, 370728, 4194304)]
    assert algorithms == ["binomial"] * 3 + ["split_binary"] * 2 + ["chain"] * 2
    assert decide("bcast", procs, 2047) == Choice("binomial", 0)
    assert decide("bcast", procs, 2048) == Choice("split_binary", 1024)
    assert decide("bcast", procs, 370727) == Choice("split_binary", 1024)


@given(st.integers(1, 5000), st.integers(0, 2**28))
def test_broadcast_follows_the_listing(procs: int, message_bytes: int) -> None:
    assert decide_as_listed("bcast", procs, message_bytes) == listing_1(procs, message_bytes)
    if message_bytes < 370728 or procs >= 13:
        assert decide("bcast", procs, message_bytes).algorithm == listing_1(procs, message_bytes)


@pytest.mark.parametrize("message_bytes", [370728, 1048576, 4194304, 16777216, 67108864])
def test_segments_of_the_pipeline(message_bytes: int) -> None:
    """The lines bound the process count strictly; 13 processes is the least that never splits."""
    lines = ((1.6134e-6, 2.1102), (2.3679e-6, 1.1787), (3.2118e-6, 8.7936))
    bounds = [slope * message_bytes + intercept for slope, intercept in lines]
    for procs in range(2, 300):
        choice = decide("bcast", procs, message_bytes)
        if procs < bounds[0]:
            assert choice == Choice("chain", 131072)
        elif procs < 13:
            assert choice == Choice("split_binary", 8192)
        elif procs < bounds[1]:
            assert choice == Choice("chain", 65536)
        elif procs < bounds[2]:
            assert choice == Choice("chain", 16384)
        else:
            assert choice == Choice("chain", 8192)


def test_the_pipelines_segments_at_four_mebibytes() -> None:
    segments = {procs: decide("bcast", procs, 4194304).segment_bytes for procs in (8, 13, 14, 22, 23, 200)}
    assert segments == {8: 131072, 13: 16384, 14: 16384, 22: 16384, 23: 8192, 200: 8192}


@pytest.mark.parametrize(
    ("procs", "block_bytes", "choice"),
    [
        (2, 92161, Choice("linear_sync", 32768)),
        (2, 92160, Choice("linear_sync", 1024)),
        (2, 6001, Choice("linear_sync", 1024)),
        (2, 6000, Choice("linear")),
        (60, 6001, Choice("linear_sync", 1024)),
        (61, 6001, Choice("linear_sync", 1024)),
        (61, 92161, Choice("linear_sync", 32768)),
        (61, 6000, Choice("binomial")),
        (60, 6000, Choice("linear")),
        (60, 1024, Choice("linear")),
        (60, 1023, Choice("binomial")),
        (11, 1023, Choice("binomial")),
        (11, 1024, Choice("linear")),
        (10, 1023, Choice("linear")),
        (10, 0, Choice("linear")),
        (11, 0, Choice("binomial")),
        (61, 0, Choice("binomial")),
    ],
)
def test_gather_thresholds(procs: int, block_bytes: int, choice: Choice) -> None:
    assert decide("gather", procs, block_bytes) == choice
    assert decide_as_listed("gather", procs, block_bytes) == choice.algorithm


@given(st.sampled_from(["bcast", "gather"]), st.integers(1, 10000), st.integers(0, 2**30))
def test_every_choice_is_in_the_catalogue_and_can_be_chosen(collective: str, procs: int, message_bytes: int) -> None:
    choice = decide(collective, procs, message_bytes)
    entry = Catalogue.load().algorithm(collective, choice.algorithm)
    assert entry.selectable
    assert entry.part_parameter or choice.segment_bytes == 0
    assert decide_as_listed(collective, procs, message_bytes) in Catalogue.load().collective(collective).selectable


def test_other_collectives() -> None:
    with pytest.raises(UsageError, match="no fixed decision of Open MPI for collective 'reduce'; valid: bcast, gather"):
        decide("reduce", 4, 1)
