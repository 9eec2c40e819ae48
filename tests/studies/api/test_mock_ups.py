"""Mock-ups of performance guidelines where they are asked for, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.store import Store

ASKED = {"platform": "gros", "collective": "allgather", "procs": 8, "sizes": "1KiB,64KiB"}


def test_times_of_mock_ups_alone_depend_on_the_library(tmp_path: Path) -> None:
    file = tmp_path / "timings.sqlite"
    for library in ("openmpi-4.1", "mpich-4"):
        with collwise.session(file, engine="schedule", library=library) as context:
            times = collwise.simulate(**ASKED, algorithms="guidelines,ring", context=context)  # type: ignore[arg-type]
        assert times["allgather"].grid.names == (*Catalogue.load().collective("allgather").mock_ups, "ring")
        assert times["allgather"].facts["reused"] == (0 if library == "openmpi-4.1" else 2)  # those of ring
    with Store(file) as store:
        details = [dict(one.configuration.details).get("library_decisions", "") for one in store.configurations()]
    assert sorted(one.partition(" ")[0] for one in details) == ["", "mpich-4", "openmpi-4.1"]


def test_memory_leaves_out_long_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLWISE_MESSAGE_BUFFER", "8KiB")
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        made = collwise.simulate(**ASKED, algorithms="gl2_alltoall,gl4_allgatherv", context=context)  # type: ignore[arg-type]
        times = made.frame()
        assert sorted(zip(times.algorithm, times.message_bytes, strict=True)) == [
            ("gl2_alltoall", 1024),
            ("gl4_allgatherv", 1024),
            ("gl4_allgatherv", 65536),
        ]
        with pytest.raises(
            collwise.UsageError, match="gl2_alltoall needs 64 KiB of its message buffer, which has 8 KiB"
        ):
            collwise.simulate("gros", "allgather", 8, "8KiB", algorithms="gl2_alltoall", context=context)


@pytest.mark.parametrize(("wanted", "consumer"), [("mock-ups", "collwise"), (None, None), ("mock-ups", "openmpi-4.1")])
def test_choices_are_made_among_mock_ups_and_algorithms_by_node_only_where_they_are_timed_and_can_be_asked_for(
    tmp_path: Path, wanted: str | None, consumer: str | None
) -> None:
    entry = Catalogue.load().collective("bcast")
    names = (*entry.selectable, *(entry.mock_ups + entry.by_node if wanted else ()))
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        times = collwise.simulate(
            "gros", "bcast", 32, "256KiB", ppn=8, algorithms=names, segments="8KiB", context=context
        )
    chosen = collwise.select(times, consumer=consumer, tolerance=0).choose("bcast", 32, "256KiB").algorithm
    assert (chosen in entry.mock_ups + entry.by_node) == (consumer == "collwise")


def test_what_cannot_be_asked_for_is_named() -> None:
    with pytest.raises(
        collwise.UsageError,
        match="barrier has no algorithms in the group guidelines; valid collectives: bcast, gather, scatter",
    ):
        collwise.simulate("gros", "barrier", 8, algorithms="guidelines")
