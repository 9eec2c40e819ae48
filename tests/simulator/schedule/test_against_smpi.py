"""The schedule engine against SMPI, which nobody here wrote, on a network where both should find the same times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import Calibration, load_description
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from tests.needs import needs

PROCS = (2, 5, 8)
PER_NODE = (2, 3)
SIZES = (800, 100_000)
SEGMENT_BYTES = 8000


def cases() -> list[Case]:
    return [
        Case(
            *(one.collective, one.name, procs, 0 if one.collective == "barrier" else size, cut),
            processes_per_node=per_node,
        )
        for collective in Catalogue.load().collectives.values()
        for one in collective.algorithms.values()
        for procs in PROCS
        for size in SIZES
        for cut in [SEGMENT_BYTES if one.part_parameter == "segment_bytes" else 0]
        for per_node in (1, *(PER_NODE if one.by_node else ()))
        if not one.objection(procs)
    ]


@needs("smpi")
def test_times_are_those_of_smpi_where_nothing_but_latency_and_rate_matters(tmp_path: Path) -> None:
    exact = load_description("exact")
    plain = Calibration(crosstraffic=False, tcp_window=False)
    platform = replace(exact, link_bytes_per_second=1e8, calibration=plain)
    with Store(tmp_path / "timings.sqlite") as store:
        simulated = SimulationContext(store).simulate(platform, cases()).complete()
    differences = []
    for case, timing in simulated.timings.items():
        schedule = Schedule(case)
        played = schedule.play(
            network_tables(platform, case.procs, case.processes_per_node, schedule.sizes, like_smpi=True)
        )
        if played.seconds != pytest.approx(timing.seconds, rel=0.01):
            differences.append(
                (
                    *(case.collective, case.algorithm, case.procs, case.processes_per_node, case.message_bytes),
                    played.seconds / timing.seconds - 1,
                )
            )
    assert differences == []
